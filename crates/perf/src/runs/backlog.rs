//! `backlog`: a queue is filled while nobody reads, and then drained.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Run, queue};
use crate::consumer::{self, Manner, Settling, What};
use crate::measure::{Until, watch};
use crate::meters::Meters;
use crate::options::Backlog;
use crate::outcome::Outcome;
use crate::producer::{self, Limits};
use crate::tape::Recipe;
use crate::topology::Topology;

/// Deliveries that are acknowledged together, and how many are under way.
const ACK_EVERY: u64 = 1000;
const PREFETCH: u16 = 5000;

/// Messages that are not confirmed yet, when nothing is said of that.
const WINDOW: u64 = 10_000;

/// Fills and drains; an outcome for each.
///
/// # Errors
/// When the broker refuses something or does not finish in time.
pub(super) async fn run(run: &Run<'_>, options: &Backlog) -> Result<Vec<Outcome>> {
    let (messages, count) = (&options.messages, options.count);
    let backlog = queue(format!("{}-backlog", run.common.name), messages);
    let name = backlog.name.clone();
    let is_durable = messages.persistent;
    let topology = Topology { is_durable, exchange: None, queues: vec![backlog] };
    run.declare(&topology).await?;
    let recipe = Recipe {
        routing_keys: vec![name.clone()],
        size: messages.size,
        is_persistent: messages.persistent,
        ..Recipe::default()
    };
    let limits = Limits {
        window: Some(messages.confirm.unwrap_or(WINDOW)),
        messages: Some(count),
        ..Limits::default()
    };
    let within = Duration::from_secs(options.patience);

    let (meters, mut tasks) = (Arc::new(Meters::new()), JoinSet::new());
    let target = run.target.clone();
    let publish =
        producer::run(target, Arc::new(recipe), limits, run.common.seed, Arc::clone(&meters));
    tasks.spawn(publish);
    let until =
        Until::Counts { reached: Box::new(move |counts| counts.confirmed >= count), within };
    let filled = watch(&meters, tasks, until, run.process(), run.common.quiet).await?;

    let settling =
        if options.auto_ack { Settling::NoAck } else { Settling::Ack { every: ACK_EVERY } };
    let manner = Manner { settling, prefetch: PREFETCH, rate: None, what: What::Messages };
    let (meters, mut tasks) = (Arc::new(Meters::new()), JoinSet::new());
    tasks.spawn(consumer::start(&run.target, &[&name], manner, Arc::clone(&meters)).await?);
    let until = Until::Counts { reached: Box::new(move |counts| counts.consumed >= count), within };
    let drained = watch(&meters, tasks, until, run.process(), run.common.quiet).await?;
    topology.clean_up(&run.target).await?;
    Ok(vec![
        Outcome::new("fill", &run.product, filled),
        Outcome::new("drain", &run.product, drained),
    ])
}

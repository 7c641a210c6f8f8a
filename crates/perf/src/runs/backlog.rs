//! `backlog`: a queue is filled while nobody reads, and then drained.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Run, queue};
use crate::consumer::{self, Manner, Settling, What};
use crate::measure::{Measured, Until, watch};
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

/// Fills and drains; an outcome for each. Who interrupts the first gets no second.
///
/// # Errors
/// When the broker refuses something or does not finish in time.
pub(super) async fn run(run: &Run<'_>, options: &Backlog) -> Result<Vec<Outcome>> {
    let backlog = queue(format!("{}-backlog", run.general.name), &options.messages);
    let name = backlog.name.clone();
    let is_durable = options.messages.persistent;
    let topology = Topology { is_durable, exchange: None, queues: vec![backlog] };
    let work = async {
        let filled = fill(run, options, &name).await?;
        let is_interrupted = filled.is_interrupted;
        let mut outcomes = vec![Outcome::new("fill", &run.product, filled)];
        if !is_interrupted {
            let drained = drain(run, options, &name).await?;
            outcomes.push(Outcome::new("drain", &run.product, drained));
        }
        Ok(outcomes)
    };
    run.with(&topology, work).await
}

async fn fill(run: &Run<'_>, options: &Backlog, name: &str) -> Result<Measured> {
    let (messages, count) = (&options.messages, options.count);
    let recipe = Recipe {
        routing_keys: vec![name.to_owned()],
        size: messages.size,
        is_persistent: messages.persistent,
        ..Recipe::default()
    };
    let limits = Limits {
        window: Some(messages.confirm.unwrap_or(WINDOW)),
        messages: Some(count),
        ..Limits::default()
    };
    let (meters, mut tasks) = (Arc::new(Meters::new()), JoinSet::new());
    let (seed, shared) = (run.general.seed, Arc::clone(&meters));
    tasks.spawn(producer::start(&run.target, &recipe, limits, seed, shared).await?);
    let until = Until::Counts {
        reached: Box::new(move |counts| counts.confirmed >= count),
        within: Duration::from_secs(options.patience),
    };
    watch(&meters, tasks, until, run.process(), run.general.quiet).await
}

async fn drain(run: &Run<'_>, options: &Backlog, name: &str) -> Result<Measured> {
    let count = options.count;
    let settling =
        if options.auto_ack { Settling::NoAck } else { Settling::Ack { every: ACK_EVERY } };
    let manner = Manner { settling, prefetch: PREFETCH, rate: None, what: What::Backlog };
    let (meters, mut tasks) = (Arc::new(Meters::new()), JoinSet::new());
    tasks.spawn(consumer::start(&run.target, &[name], manner, Arc::clone(&meters)).await?);
    let until = Until::Counts {
        reached: Box::new(move |counts| counts.consumed >= count),
        within: Duration::from_secs(options.patience),
    };
    watch(&meters, tasks, until, run.process(), run.general.quiet).await
}

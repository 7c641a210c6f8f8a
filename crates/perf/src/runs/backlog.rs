//! `backlog`: a queue is filled without consumers, and then drained.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Run, queue};
use crate::consumer::{self, AckMode, ConsumerOptions, DeliveryKind};
use crate::measurement::{Measured, Until, watch};
use crate::message_template::MessageTemplate;
use crate::metrics::Metrics;
use crate::options::Backlog;
use crate::producer::{self, Limits};
use crate::report::Outcome;
use crate::topology::Topology;

/// Deliveries that are acknowledged together, and the prefetch.
const ACK_EVERY: u64 = 1000;
const PREFETCH: u16 = 5000;

/// Default of the largest number of unconfirmed messages.
const WINDOW: u64 = 10_000;

/// Fills the queue, then drains it, with results for each. An interrupt of the first skips the second.
///
/// # Errors
/// If the broker refuses a method or does not finish in time.
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
    let template = MessageTemplate {
        routing_keys: vec![name.to_owned()],
        size: messages.size,
        is_persistent: messages.persistent,
        ..MessageTemplate::default()
    };
    let limits = Limits {
        window: Some(messages.confirm.unwrap_or(WINDOW)),
        messages: Some(count),
        ..Limits::default()
    };
    let (metrics, mut tasks) = (Arc::new(Metrics::new()), JoinSet::new());
    let (seed, shared) = (run.general.seed, Arc::clone(&metrics));
    tasks.spawn(producer::start(&run.target, &template, limits, seed, shared).await?);
    let until = Until::Counts {
        reached: Box::new(move |counts| counts.confirmed >= count),
        within: Duration::from_secs(options.patience),
    };
    watch(&metrics, tasks, until, run.process(), run.general.quiet).await
}

async fn drain(run: &Run<'_>, options: &Backlog, name: &str) -> Result<Measured> {
    let count = options.count;
    let ack_mode =
        if options.auto_ack { AckMode::NoAck } else { AckMode::Ack { every: ACK_EVERY } };
    let consumer_options =
        ConsumerOptions { ack_mode, prefetch: PREFETCH, rate: None, what: DeliveryKind::Backlog };
    let (metrics, mut tasks) = (Arc::new(Metrics::new()), JoinSet::new());
    tasks.spawn(
        consumer::start(&run.target, &[name], consumer_options, Arc::clone(&metrics)).await?,
    );
    let until = Until::Counts {
        reached: Box::new(move |counts| counts.consumed >= count),
        within: Duration::from_secs(options.patience),
    };
    watch(&metrics, tasks, until, run.process(), run.general.quiet).await
}

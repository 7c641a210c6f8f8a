//! `expiry`: messages expire into a dead-letter queue; how late, whether all, whether once.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Run, queue};
use crate::consumer::{self, AckMode, ConsumerOptions, DeliveryKind};
use crate::dead_letter_check::DeadLetterCheck;
use crate::measurement::{Measured, Until, watch};
use crate::message_template::MessageTemplate;
use crate::metrics::Metrics;
use crate::options::{Expiry, Ttl};
use crate::producer::{self, Limits};
use crate::rate::SendRate;
use crate::report::Outcome;
use crate::topology::{Argument, Topology};

/// Default of the largest number of unconfirmed messages: messages that wait in a socket would count as
/// late.
const WINDOW: u64 = 1000;

/// Publishes messages, and waits until all dead letters have arrived.
///
/// # Errors
/// If the broker refuses a method, or messages are missing at the end.
pub(super) async fn run(run: &Run<'_>, options: &Expiry) -> Result<Outcome> {
    let messages = &options.messages;
    let letters = format!("{}-dead-letters", run.general.name);
    let mut waiting = queue(format!("{}-waiting", run.general.name), messages);
    waiting.arguments.push(Argument::text("x-dead-letter-exchange", ""));
    waiting.arguments.push(Argument::text("x-dead-letter-routing-key", &letters));
    let (queue_ttl_ms, ttl_ms) = match &options.ttl_ms {
        Ttl::Queue(ttl_ms) => (*ttl_ms, None),
        Ttl::Message(range) => (0, Some(range.clone())),
    };
    if ttl_ms.is_none() {
        waiting.arguments.push(Argument::number("x-message-ttl", i64::from(queue_ttl_ms)));
    }
    let template = MessageTemplate {
        routing_keys: vec![waiting.name.clone()],
        size: messages.size,
        is_persistent: messages.persistent,
        ttl_ms,
        ..MessageTemplate::default()
    };
    let queues = vec![waiting, queue(letters.clone(), messages)];
    let topology = Topology { is_durable: messages.persistent, exchange: None, queues };
    let measured =
        run.with(&topology, load(run, options, &letters, &template, queue_ttl_ms)).await?;
    Ok(Outcome::new("expiry", &run.product, measured))
}

/// Publishes messages from the template and consumes the dead letters, until all have arrived.
async fn load(
    run: &Run<'_>,
    options: &Expiry,
    letters: &str,
    template: &MessageTemplate,
    queue_ttl_ms: u32,
) -> Result<Measured> {
    let consumer_options = ConsumerOptions {
        ack_mode: AckMode::NoAck,
        prefetch: 0,
        rate: None,
        what: DeliveryKind::Expired(Arc::new(DeadLetterCheck::new(options.count, queue_ttl_ms))),
    };
    let (metrics, mut tasks) = (Arc::new(Metrics::new()), JoinSet::new());
    tasks.spawn(
        consumer::start(&run.target, &[letters], consumer_options, Arc::clone(&metrics)).await?,
    );
    let limits = Limits {
        pace: options.rate.map(SendRate::start).transpose()?,
        window: Some(options.messages.confirm.unwrap_or(WINDOW)),
        in_flight_max: None,
        messages: Some(options.count),
    };
    let (seed, shared) = (run.general.seed, Arc::clone(&metrics));
    tasks.spawn(producer::start(&run.target, template, limits, seed, shared).await?);
    let count = options.count;
    let publishing_s = options.rate.map_or(0, |rate| count / u64::from(rate));
    let ttl_s = u64::from(options.ttl_ms.max_ms()).div_ceil(1000);
    let until = Until::Counts {
        // A message may die before its confirm has come.
        reached: Box::new(move |counts| counts.dead_lettered >= count && counts.confirmed >= count),
        within: Duration::from_secs(options.patience + publishing_s + ttl_s),
    };
    watch(&metrics, tasks, until, run.process(), run.general.quiet).await
}

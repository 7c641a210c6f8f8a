//! `expiry`: messages expire into a dead-letter queue; how late, whether all, whether once.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Run, queue};
use crate::arrivals::Arrivals;
use crate::consumer::{self, Manner, Settling, What};
use crate::measure::{Measured, Until, watch};
use crate::meters::Meters;
use crate::options::{Expiry, Ttl};
use crate::outcome::Outcome;
use crate::pace::Pace;
use crate::producer::{self, Limits};
use crate::tape::Recipe;
use crate::topology::{Argument, Topology};

/// Messages that are not confirmed yet, when nothing is said of that: what waits in sockets before the
/// broker has it would count as late.
const WINDOW: u64 = 1000;

/// Publishes, and waits until all have arrived.
///
/// # Errors
/// When the broker refuses something, or messages are missing in the end.
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
    let recipe = Recipe {
        routing_keys: vec![waiting.name.clone()],
        size: messages.size,
        is_persistent: messages.persistent,
        ttl_ms,
        ..Recipe::default()
    };
    let queues = vec![waiting, queue(letters.clone(), messages)];
    let topology = Topology { is_durable: messages.persistent, exchange: None, queues };
    let measured = run.with(&topology, load(run, options, &letters, &recipe, queue_ttl_ms)).await?;
    Ok(Outcome::new("expiry", &run.product, measured))
}

/// Publishes what the recipe says and takes what comes to the dead letters, until all is there.
async fn load(
    run: &Run<'_>,
    options: &Expiry,
    letters: &str,
    recipe: &Recipe,
    queue_ttl_ms: u32,
) -> Result<Measured> {
    let manner = Manner {
        settling: Settling::NoAck,
        prefetch: 0,
        rate: None,
        what: What::Expired(Arc::new(Arrivals::new(options.count, queue_ttl_ms))),
    };
    let (meters, mut tasks) = (Arc::new(Meters::new()), JoinSet::new());
    tasks.spawn(consumer::start(&run.target, &[letters], manner, Arc::clone(&meters)).await?);
    let limits = Limits {
        pace: options.rate.map(Pace::start).transpose()?,
        window: Some(options.messages.confirm.unwrap_or(WINDOW)),
        in_flight_max: None,
        messages: Some(options.count),
    };
    let (seed, shared) = (run.general.seed, Arc::clone(&meters));
    tasks.spawn(producer::start(&run.target, recipe, limits, seed, shared).await?);
    let count = options.count;
    let publishing_s = options.rate.map_or(0, |rate| count / u64::from(rate));
    let ttl_s = u64::from(options.ttl_ms.max_ms()).div_ceil(1000);
    let until = Until::Counts {
        reached: Box::new(move |counts| counts.dead_lettered >= count),
        within: Duration::from_secs(options.patience + publishing_s + ttl_s),
    };
    watch(&meters, tasks, until, run.process(), run.general.quiet).await
}

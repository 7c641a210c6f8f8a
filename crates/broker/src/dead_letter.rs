//! What happens to a message when it dies: its history, its headers, and which targets are cycles.
//!
//! Pure functions from a message and a death to a dead letter. Which exchange it goes to, and that it
//! leaves one queue and enters others in one step, is the vhost's business. The rules are spec 3.3 to
//! 3.6: the broker keeps the history itself; death headers that a client sent are data until the first
//! death replaces them.

use std::fmt;
use std::sync::Arc;

use amqp::properties::Properties;
use amqp::table::{ArrayBuilder, Table, TableBuilder, Value};

use crate::message::{Envelope, Message, Name, RoutingKey};

/// Why a message was dead-lettered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DeathReason {
    /// `basic.reject` or `basic.nack` without requeue.
    Rejected,
    /// Its TTL, from whichever source, ran out.
    Expired,
    /// It was over a length limit.
    Maxlen,
    /// It was returned more often than the delivery limit allows.
    DeliveryLimit,
}

impl DeathReason {
    /// All reasons, in the order counters list them.
    pub const ALL: [Self; 4] = [Self::Rejected, Self::Expired, Self::Maxlen, Self::DeliveryLimit];

    /// The word in `x-death.reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Maxlen => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        }
    }
}

impl fmt::Display for DeathReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One entry of `x-death`: all deaths of a message in one queue for one reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Death {
    /// The queue it died in.
    pub queue: Name,
    /// Why.
    pub reason: DeathReason,
    /// How often.
    pub count: u64,
    /// When it first did, in seconds since the Unix epoch.
    pub time_s: u64,
    /// The exchange it had been published to before the first of these deaths.
    pub exchange: Name,
    /// The keys it had been published with before the first of these deaths, without `BCC`.
    pub routing_keys: Box<[RoutingKey]>,
    /// Its `expiration` at the first of these deaths.
    pub original_expiration_ms: Option<u64>,
}

/// The first or the last death, as the flat headers show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeathSummary {
    /// The queue.
    pub queue: Name,
    /// Why.
    pub reason: DeathReason,
    /// The exchange the message had been published to before.
    pub exchange: Name,
}

/// The deaths of a message, most recent first; one entry per queue and reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deaths {
    /// Never changed once set.
    pub first: DeathSummary,
    /// Overwritten by each death.
    pub last: DeathSummary,
    /// What `x-death` lists.
    pub entries: Vec<Death>,
}

/// Where and how a dead letter is published: the dead-letter exchange as it stands at death, and the
/// queue's dead-letter routing key if it has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadLetterTarget {
    /// Name of the dead-letter exchange.
    pub exchange: Name,
    /// Replaces every key of the message.
    pub routing_key: Option<RoutingKey>,
}

/// The dead letter of `message`, which dies in `queue` for `reason` at wall-clock second `time_s`.
pub fn die(
    message: &Message,
    queue: &Name,
    reason: DeathReason,
    time_s: u64,
    target: &DeadLetterTarget,
) -> Message {
    let old = message.envelope();
    let summary =
        DeathSummary { queue: Arc::clone(queue), reason, exchange: Arc::clone(&old.exchange) };
    let deaths = Arc::new(record(message, summary, time_s));
    let envelope = match &target.routing_key {
        Some(key) => Envelope::new(Arc::clone(&target.exchange), key.clone()),
        None => Envelope { exchange: Arc::clone(&target.exchange), ..(**old).clone() },
    };
    let properties = rewritten_properties(message.properties(), &deaths);
    message.dead_letter(Arc::new(envelope), &properties, deaths)
}

fn record(message: &Message, death: DeathSummary, time_s: u64) -> Deaths {
    let envelope = message.envelope();
    let fresh = || Death {
        queue: Arc::clone(&death.queue),
        reason: death.reason,
        count: 1,
        time_s,
        exchange: Arc::clone(&envelope.exchange),
        routing_keys: std::iter::once(&envelope.routing_key).chain(&envelope.cc).cloned().collect(),
        original_expiration_ms: message.facts().expiration_ms,
    };
    let Some(before) = message.deaths() else {
        return Deaths { first: death.clone(), entries: vec![fresh()], last: death };
    };
    let mut entries = before.entries.clone();
    let same = |d: &Death| d.queue == death.queue && d.reason == death.reason;
    match entries.iter().position(same) {
        Some(at) => {
            entries[..=at].rotate_right(1);
            entries[0].count = entries[0].count.saturating_add(1);
        }
        None => entries.insert(0, fresh()),
    }
    Deaths { first: before.first.clone(), last: death, entries }
}

/// Whether the dead letter may not enter `target` again: it has been there, and every death since
/// then was automatic (spec 3.6). Call it with the history that holds the death at hand.
pub fn is_cycle(deaths: &Deaths, target: &str) -> bool {
    if deaths.last.reason == DeathReason::Rejected {
        return false;
    }
    for death in &deaths.entries {
        if death.reason == DeathReason::Rejected {
            return false;
        }
        if &*death.queue == target {
            return true;
        }
    }
    false
}

/// The properties without `expiration` and with the broker's death headers instead of whatever
/// stood there under their names.
fn rewritten_properties(properties: &[u8], deaths: &Deaths) -> Vec<u8> {
    // Properties were validated when the message was published.
    let mut properties = Properties::parse(properties).unwrap_or_default();
    let headers = death_headers(deaths);
    let mut merged: Vec<(&[u8], Value<'_>)> = Vec::new();
    if let Some(old) = properties.headers {
        merged.extend(old.iter().filter(|(key, _)| !is_death_header(key)));
    }
    merged.extend(headers.as_ref().iter());
    merged.sort_by_key(|(key, _)| *key);
    let mut table = TableBuilder::new();
    for (key, value) in merged {
        table.insert(key, value);
    }
    let table = table.finish();
    properties.headers = Some(table.as_ref());
    properties.expiration = None;
    let mut out = Vec::new();
    properties.encode(&mut out);
    out
}

fn is_death_header(key: &[u8]) -> bool {
    matches!(
        key,
        b"x-death"
            | b"x-first-death-queue"
            | b"x-first-death-reason"
            | b"x-first-death-exchange"
            | b"x-last-death-queue"
            | b"x-last-death-reason"
            | b"x-last-death-exchange"
    )
}

fn death_headers(deaths: &Deaths) -> Table {
    let mut list = ArrayBuilder::new();
    for death in &deaths.entries {
        list.push(Value::Table(death_entry(death).as_ref()));
    }
    let list = list.finish();
    let mut headers = TableBuilder::new();
    headers.insert("x-death", Value::Array(list.as_ref()));
    for (first_or_last, summary) in [("first", &deaths.first), ("last", &deaths.last)] {
        for (field, value) in [
            ("queue", &*summary.queue),
            ("reason", summary.reason.as_str()),
            ("exchange", &*summary.exchange),
        ] {
            let key = format!("x-{first_or_last}-death-{field}");
            headers.insert(&key, Value::LongStr(value.as_bytes()));
        }
    }
    headers.finish()
}

/// One entry of `x-death`, fields in RabbitMQ's order with its wire types (spec 3.4).
fn death_entry(death: &Death) -> Table {
    let mut keys = ArrayBuilder::new();
    for key in &death.routing_keys {
        keys.push(Value::LongStr(key.as_bytes()));
    }
    let keys = keys.finish();
    let mut entry = TableBuilder::new();
    let expiration = death.original_expiration_ms.map(|millis| millis.to_string());
    if let Some(text) = &expiration {
        entry.insert("original-expiration", Value::LongStr(text.as_bytes()));
    }
    entry.insert("count", Value::I64(i64::try_from(death.count).unwrap_or(i64::MAX)));
    entry.insert("reason", Value::LongStr(death.reason.as_str().as_bytes()));
    entry.insert("queue", Value::LongStr(death.queue.as_bytes()));
    entry.insert("time", Value::Timestamp(death.time_s));
    entry.insert("exchange", Value::LongStr(death.exchange.as_bytes()));
    entry.insert("routing-keys", Value::Array(keys.as_ref()));
    entry.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deaths(list: &[(&str, DeathReason)]) -> Deaths {
        let (queue, reason) = list[0];
        let summary = DeathSummary { queue: queue.into(), reason, exchange: "".into() };
        let entry = |(queue, reason): &(&str, DeathReason)| Death {
            queue: (*queue).into(),
            reason: *reason,
            count: 1,
            time_s: 0,
            exchange: "".into(),
            routing_keys: Box::default(),
            original_expiration_ms: None,
        };
        Deaths { first: summary.clone(), last: summary, entries: list.iter().map(entry).collect() }
    }

    #[test]
    fn only_a_wholly_automatic_way_back_is_a_cycle() {
        use DeathReason::{DeliveryLimit, Expired, Maxlen, Rejected};
        for (list, target, cycle) in [
            (&[("a", Expired)][..], "a", true),
            (&[("a", Rejected)], "a", false),
            (&[("a", Expired)], "b", false),
            (&[("b", Maxlen), ("a", Expired)], "a", true),
            (&[("b", Rejected), ("a", Expired)], "a", false),
            (&[("b", Expired), ("a", Rejected)], "a", false),
            (&[("b", Expired), ("c", Rejected), ("a", Expired)], "a", false),
            (&[("b", Expired), ("a", Expired), ("c", Rejected)], "a", true),
            (&[("a", DeliveryLimit)], "a", true),
        ] {
            assert_eq!(is_cycle(&deaths(list), target), cycle, "{list:?} into {target}");
        }
    }
}

//! Redriving: what becomes of a dead message that somebody sends back, and where it is to go.
//!
//! Pure functions from a message to another. A redriven message is a fresh one: the broker's history of
//! its deaths is gone, so that no target is a cycle and counts begin anew. What it has been through
//! stands in headers that the broker writes and never acts upon: `x-redrive-count` and `x-redrives`.
//! That it leaves one queue and enters others in one step is the vhost's business.

use std::fmt;
use std::sync::Arc;

use amqp::properties::Properties;
use amqp::table::{ArrayBuilder, TableBuilder, TableRef, Value};

use crate::access::Access;
use crate::death_headers::{self, DEATH_HEADERS_FRAME_BYTES};
use crate::death_history::{Death, DeathSummary};
use crate::ids::QueueId;
use crate::limits::{REDRIVES_BYTES_MAX, REDRIVES_KEPT_MAX};
use crate::message::{Envelope, Facts, Message, Name, RoutingKey};
use crate::refusal::Refusal;

/// How often a message was redriven.
pub const REDRIVE_COUNT: &str = "x-redrive-count";

/// What a message had been through each time, most recent first.
pub const REDRIVES: &str = "x-redrives";

/// Where redriven messages go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RedriveTo {
    /// Each into the queue it died in last.
    Origin,
    /// Each into the queue it died in first.
    First,
    /// All into this queue.
    Queue(Name),
    /// All through this exchange.
    Exchange {
        /// Its name.
        exchange: Name,
        /// Replaces the keys that each had before it died.
        routing_key: Option<RoutingKey>,
    },
}

impl fmt::Display for RedriveTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Origin => f.write_str("origin"),
            Self::First => f.write_str("first"),
            Self::Queue(queue) => write!(f, "queue '{queue}'"),
            Self::Exchange { exchange, routing_key: None } => write!(f, "exchange '{exchange}'"),
            Self::Exchange { exchange, routing_key: Some(key) } => {
                write!(f, "exchange '{exchange}' with key '{key}'")
            }
        }
    }
}

/// Who redrives messages of a queue, and where to.
#[derive(Clone, Copy, Debug)]
pub struct Redrive<'a> {
    /// The queue they leave.
    pub queue: QueueId,
    /// Where they go.
    pub to: &'a RedriveTo,
    /// On whose behalf, and what he may do.
    pub access: &'a Access,
}

/// What became of a message that was to be redriven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Redriven {
    /// It is where it was sent.
    Moved,
    /// Nothing took it, or one of its targets is full and refuses publishes; it stays where it is.
    Unroutable,
    /// It waits no more, or is about to expire.
    Gone,
    /// Its key is one that the user may not publish with; it stays where it is.
    Refused(Refusal),
}

/// How often a message was redriven, as its header says.
pub fn redrive_count(message: &Message) -> u64 {
    let properties = Properties::parse(message.properties()).unwrap_or_default();
    properties.headers.map_or(0, count)
}

fn count(headers: TableRef<'_>) -> u64 {
    // Clients may send a header of that name, too.
    headers
        .get(REDRIVE_COUNT)
        .and_then(|value| value.as_integer())
        .map_or(0, |count| u64::try_from(count).unwrap_or_default())
}

/// Where one message goes, and what it takes along.
#[derive(Debug)]
pub(crate) struct Way {
    /// The queue that takes it; without one it goes through its exchange.
    pub(crate) queue: Option<Name>,
    envelope: Envelope,
    expiration_ms: Option<u64>,
}

/// The way of `message`; none if it never died and has nowhere to go back to.
pub(crate) fn way(message: &Message, to: &RedriveTo) -> Option<Way> {
    let deaths = message.deaths();
    let of = |summary: &DeathSummary| {
        let same = |death: &&Death| death.queue == summary.queue && death.reason == summary.reason;
        deaths.and_then(|deaths| deaths.entries.iter().find(same))
    };
    let last = deaths.and_then(|deaths| of(&deaths.last));
    let before = last.map_or_else(|| (**message.envelope()).clone(), envelope_before);
    let expiration_ms = message.facts().expiration_ms;
    let back = |death: &Death| Way {
        queue: Some(Arc::clone(&death.queue)),
        envelope: envelope_before(death),
        expiration_ms: death.original_expiration_ms,
    };
    Some(match to {
        RedriveTo::Origin => back(last?),
        RedriveTo::First => back(of(&deaths?.first)?),
        RedriveTo::Queue(queue) => {
            Way { queue: Some(Arc::clone(queue)), envelope: before, expiration_ms }
        }
        RedriveTo::Exchange { exchange, routing_key } => {
            let exchange = Arc::clone(exchange);
            let envelope = match routing_key {
                Some(key) => Envelope::new(exchange, key.clone()),
                None => Envelope { exchange, ..before },
            };
            Way { queue: None, envelope, expiration_ms }
        }
    })
}

/// The envelope that a message had before it died.
fn envelope_before(death: &Death) -> Envelope {
    let keys = death.routing_keys.split_first();
    let (key, cc) = keys.map_or_else(|| ("".into(), &[][..]), |(key, cc)| (key.clone(), cc));
    Envelope { cc: cc.into(), ..Envelope::new(Arc::clone(&death.exchange), key) }
}

/// A redrive as the messages tell of it afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'a> {
    /// The queue that the messages leave.
    pub(crate) queue: &'a str,
    /// On whose behalf.
    pub(crate) user: &'a str,
    /// When, in seconds since the Unix epoch.
    pub(crate) time_s: u64,
    /// Somebody may have seen the redriven message before a restart, and nobody knows.
    pub(crate) maybe_seen: bool,
}

impl Way {
    /// What `message` is on its way.
    pub(crate) fn redriven(self, message: &Message, told: Told<'_>) -> Message {
        let Self { envelope, expiration_ms, .. } = self;
        let properties = rewritten(message, told, expiration_ms);
        let facts = Facts { expiration_ms, ..message.facts() };
        message.retold(Arc::new(envelope), facts, &properties, told.maybe_seen)
    }
}

/// The properties of a message that is redriven. Death headers that the broker wrote are gone; those of
/// a message that never died here are a client's data.
fn rewritten(message: &Message, told: Told<'_>, expiration_ms: Option<u64>) -> Vec<u8> {
    // They were validated when the message was published.
    let properties = Properties::parse(message.properties()).unwrap_or_default();
    let old = properties.headers.unwrap_or(TableRef::EMPTY);
    let has_died = message.deaths().is_some();
    let is_replaced = |key: &[u8]| {
        let is_told = key == REDRIVE_COUNT.as_bytes() || key == REDRIVES.as_bytes();
        is_told || has_died && death_headers::is_death_header(key)
    };
    let mut others = old.iter().filter(|(key, _)| !is_replaced(key)).collect::<Vec<_>>();
    others.sort_by_key(|(key, _)| *key);
    let behind = others.partition_point(|(key, _)| *key < REDRIVE_COUNT.as_bytes());
    let (before, behind) = others.split_at(behind);
    let mut headers = TableBuilder::new();
    for (key, value) in before {
        headers.insert(key, *value);
    }
    let count = i64::try_from(count(old).saturating_add(1)).unwrap_or(i64::MAX);
    headers.insert(REDRIVE_COUNT, Value::I64(count));
    let sent = others.iter().map(|(key, value)| key.len() + value_bytes(*value)).sum::<usize>();
    let room = DEATH_HEADERS_FRAME_BYTES.saturating_sub(sent + REDRIVE_COUNT_BYTES);
    let room = room.min(REDRIVES_BYTES_MAX);
    headers.array(REDRIVES, |list| fill_redrives(list, (message, told), old, room));
    for (key, value) in behind {
        headers.insert(key, *value);
    }
    let expiration = expiration_ms.map(|millis| millis.to_string());
    let mut out = Vec::new();
    Properties {
        headers: Some(headers.as_ref()),
        expiration: expiration.as_deref().map(str::as_bytes),
        ..properties
    }
    .encode(&mut out);
    out
}

/// What a redriven message has in its headers beside the list and what its publisher sent, in octets:
/// names, types, lengths and the count.
const REDRIVE_COUNT_BYTES: usize = 64;

/// Octets of a header's value and of the length of its name.
fn value_bytes(value: Value<'_>) -> usize {
    let mut octets = ArrayBuilder::new();
    octets.push(value);
    octets.finish().as_ref().as_bytes().len() + 1
}

/// This redrive and those before it, as far as they are not too many and fit into so many octets.
fn fill_redrives(
    list: &mut ArrayBuilder,
    (message, told): (&Message, Told<'_>),
    old: TableRef<'_>,
    bytes_max: usize,
) {
    let entry = |with_deaths| {
        let mut entry = TableBuilder::new();
        entry.insert("queue", Value::LongStr(told.queue.as_bytes()));
        entry.insert("time", Value::Timestamp(told.time_s));
        entry.insert("user", Value::LongStr(told.user.as_bytes()));
        if let Some(deaths) = message.deaths().filter(|_| with_deaths) {
            entry.array("x-death", |list| death_headers::fill_all(list, deaths));
        }
        entry.finish()
    };
    let is_short = |entry: &amqp::table::Table| entry.as_ref().as_bytes().len() <= bytes_max;
    let newest = Some(entry(true)).filter(is_short).unwrap_or_else(|| entry(false));
    let mut bytes = newest.as_ref().as_bytes().len();
    list.push(Value::Table(newest.as_ref()));
    let Some(Value::Array(before)) = old.get(REDRIVES) else { return };
    for entry in before.iter().take(REDRIVES_KEPT_MAX - 1) {
        let Value::Table(table) = entry else { return };
        bytes += table.as_bytes().len();
        if bytes > bytes_max {
            return;
        }
        list.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::death_history::{DeathReason, Deaths};
    use crate::message::{Content, SharedProperties};

    const TOLD: Told<'static> = Told { queue: "dlq", user: "u", time_s: 7, maybe_seen: false };

    /// A message that died in so many queues with long names.
    fn dead(queues: usize) -> Message {
        let name = |at: usize| Name::from(format!("{at:0>200}"));
        let death = |at| Death {
            queue: name(at),
            reason: DeathReason::Expired,
            count: 1,
            time_s: 0,
            exchange: "".into(),
            routing_keys: Arc::default(),
            original_expiration_ms: None,
        };
        let summary =
            DeathSummary { queue: name(0), reason: DeathReason::Expired, exchange: "".into() };
        let entries = (0..queues).map(death).collect();
        let deaths = Deaths { first: summary.clone(), last: summary, entries };
        let envelope = Arc::new(Envelope::new("".into(), "k".into()));
        let content = Content::Assembled { properties: vec![0, 0].into(), body: "b".into() };
        let message = Message::new(Arc::clone(&envelope), Facts::default(), content, None);
        message.dead_letter(
            envelope,
            SharedProperties::new(message.properties()),
            Arc::new(deaths),
            false,
        )
    }

    fn redriven(message: &Message) -> Message {
        way(message, &RedriveTo::Origin).unwrap().redriven(message, TOLD)
    }

    /// The octets of the list, and for each entry whether it has kept its deaths.
    fn told(message: &Message) -> (usize, Vec<bool>) {
        let properties = Properties::parse(message.properties()).unwrap();
        let Some(Value::Array(list)) = properties.headers.unwrap().get(REDRIVES) else {
            panic!("no list");
        };
        let has_deaths = |entry| {
            let Value::Table(entry) = entry else { panic!("{entry:?}") };
            entry.get("x-death").is_some()
        };
        (list.as_bytes().len(), list.iter().map(has_deaths).collect())
    }

    #[test]
    fn a_long_history_is_cut_short() {
        let few = redriven(&dead(20));
        assert_eq!(told(&few).1, [true]);
        // One alone is too long: that it was redriven is told all the same.
        let many = redriven(&dead(200));
        assert_eq!(told(&many).1, [false]);
        assert_eq!(redrive_count(&many), 1);
        // Each fits, and all of them do not.
        let mut message = few;
        for count in 2..20 {
            let died = dead(20);
            let deaths = Arc::clone(died.deaths().unwrap());
            let properties = SharedProperties::new(message.properties());
            let again =
                message.dead_letter(Arc::clone(message.envelope()), properties, deaths, false);
            message = redriven(&again);
            let (bytes, entries) = told(&message);
            assert!(bytes <= REDRIVES_BYTES_MAX + 64, "{bytes} octets");
            assert!(entries.len() <= 3 && entries[0], "{entries:?}");
            assert_eq!(redrive_count(&message), count);
        }
    }

    #[test]
    fn what_clients_call_so_counts_for_nothing() {
        for (value, expected) in [
            (Value::LongStr(b"5"), 0),
            (Value::I32(-1), 0),
            (Value::U8(3), 3),
            (Value::I64(i64::MAX), i64::MAX as u64),
        ] {
            let mut headers = TableBuilder::new();
            headers.insert(REDRIVE_COUNT, value);
            assert_eq!(count(headers.as_ref()), expected, "{value:?}");
        }
    }
}

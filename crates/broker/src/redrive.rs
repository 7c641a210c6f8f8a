//! Redriving: the message and the destination that a dead message gets when a user sends it back.
//!
//! Pure functions from one message to another. A redriven message is a new message: the broker's history of
//! its deaths is gone, so that no target is a cycle and counts start again. The broker writes the past of the
//! message into the headers `x-redrive-count` and `x-redrives` and never reads them to decide anything. The
//! vhost moves the message from one queue to others in one step.

use std::fmt;
use std::sync::Arc;

use amqp::properties::Properties;
use amqp::table::{ArrayBuilder, TableBuilder, TableRef, Value};

use crate::access::Access;
use crate::death_headers::{self, DEATH_HEADERS_FRAME_BYTES};
use crate::death_history::{Death, DeathSummary};
use crate::ids::QueueId;
use crate::limits::{REDRIVES_BYTES_MAX, REDRIVES_KEPT_MAX};
use crate::message::{Envelope, Message, MessageMeta, Name, RoutingKey};
use crate::refusal::Refusal;

/// Header with the number of redrives of a message.
pub const REDRIVE_COUNT: &str = "x-redrive-count";

/// Header with the history of a message at each redrive, most recent first.
pub const REDRIVES: &str = "x-redrives";

/// The destination of redriven messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RedriveTo {
    /// The queue in which each message died last.
    Origin,
    /// The queue in which each message died first.
    First,
    /// The same queue for all messages.
    Queue(Name),
    /// The same exchange for all messages.
    Exchange {
        /// The exchange name.
        exchange: Name,
        /// Replaces the keys that each message had before it died.
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

/// The limit of a redrive that goes on after a crash, or under another leader: the number of messages that it may have moved
/// is written before it moves them, and counts as moved from then on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RedriveLimit {
    /// Messages that the redrive moves at the most; none for all.
    pub limit: Option<u64>,
    /// Messages that it has moved, or may have moved before it went on.
    pub moved: u64,
    /// Messages that it may have moved, as it is written.
    pub moved_max: u64,
}

impl RedriveLimit {
    /// The number of messages that may still be moved.
    pub fn left(self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.moved))
    }

    /// The number to be written as `moved_max` before `slice` messages are moved, with room for `ahead` messages, at least
    /// `slice`. None if no more has to be written: there is no limit, or the room suffices.
    pub fn reserve(self, slice: u64, ahead: u64) -> Option<u64> {
        let limit = self.limit?;
        let is_short = self.moved.saturating_add(slice) > self.moved_max;
        is_short.then(|| self.moved.saturating_add(ahead.max(slice)).min(limit))
    }

    /// The messages that count as moved when the redrive goes on.
    pub fn moved_before(self) -> u64 {
        self.moved.max(self.moved_max)
    }
}

/// A redrive of messages of a queue: queue, destination and user.
#[derive(Clone, Copy, Debug)]
pub struct Redrive<'a> {
    /// The queue that the messages leave.
    pub queue: QueueId,
    /// The destination of the messages.
    pub to: &'a RedriveTo,
    /// The user of the redrive and their permissions.
    pub access: &'a Access,
    /// True for dead letters that the queue keeps because no target took them; false for messages that wait.
    pub is_of_kept: bool,
}

/// The result of redriving one message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Redriven {
    /// The message is at its destination.
    Moved,
    /// No queue accepted the message, or a target is full and refuses publishes; the message stays in its
    /// queue.
    Unroutable,
    /// The message never died, or was redriven since, so that no queue is its origin; it stays in its queue.
    NoOrigin,
    /// The message is not ready any more, or is about to expire.
    Gone,
    /// The user may not publish with the message's key; the message stays in its queue.
    Refused(Refusal),
}

/// The number of redrives of a message, from its header.
pub fn redrive_count(message: &Message) -> u64 {
    let properties = Properties::parse(message.properties()).unwrap_or_default();
    properties.headers.map_or(0, redrive_count_in)
}

/// The number of redrives that the headers of a message tell.
pub fn redrive_count_in(headers: TableRef<'_>) -> u64 {
    // A client may send any value under this name.
    headers
        .get(REDRIVE_COUNT)
        .and_then(|value| value.as_integer())
        .map_or(0, |count| u64::try_from(count).unwrap_or_default())
}

/// The destination of one redriven message, with its new envelope and expiration.
#[derive(Debug)]
pub(crate) struct RedriveTarget {
    /// The destination queue; if none, the message is routed through its exchange.
    pub(crate) queue: Option<Name>,
    envelope: Envelope,
    expiration_ms: Option<u64>,
}

/// The target of `message`; none if the message has not died since it was published or redriven, and so has no
/// queue to return to.
pub(crate) fn target(message: &Message, to: &RedriveTo) -> Option<RedriveTarget> {
    let deaths = message.deaths();
    let of = |summary: &DeathSummary| {
        let same = |death: &&Death| death.queue == summary.queue && death.reason == summary.reason;
        deaths.and_then(|deaths| deaths.entries.iter().find(same))
    };
    let last = deaths.and_then(|deaths| of(&deaths.last));
    let before = last.map_or_else(|| (**message.envelope()).clone(), envelope_before);
    let expiration_ms = message.meta().expiration_ms;
    let back = |death: &Death| RedriveTarget {
        queue: Some(Arc::clone(&death.queue)),
        envelope: envelope_before(death),
        expiration_ms: death.original_expiration_ms,
    };
    Some(match to {
        RedriveTo::Origin => back(last?),
        RedriveTo::First => back(of(&deaths?.first)?),
        RedriveTo::Queue(queue) => {
            RedriveTarget { queue: Some(Arc::clone(queue)), envelope: before, expiration_ms }
        }
        RedriveTo::Exchange { exchange, routing_key } => {
            let exchange = Arc::clone(exchange);
            let envelope = match routing_key {
                Some(key) => Envelope::new(exchange, key.clone()),
                None => Envelope { exchange, ..before },
            };
            RedriveTarget { queue: None, envelope, expiration_ms }
        }
    })
}

/// The envelope that a message had before a death.
fn envelope_before(death: &Death) -> Envelope {
    let keys = death.routing_keys.split_first();
    let (key, cc) = keys.map_or_else(|| ("".into(), &[][..]), |(key, cc)| (key.clone(), cc));
    Envelope { cc: cc.into(), ..Envelope::new(Arc::clone(&death.exchange), key) }
}

/// The facts about a redrive that its messages carry in their headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RedriveNote<'a> {
    /// The queue that the messages leave.
    pub(crate) queue: &'a str,
    /// The user of the redrive.
    pub(crate) user: &'a str,
    /// Time of the redrive, in seconds since the Unix epoch.
    pub(crate) time_s: u64,
    /// True if a client may have received the redriven message before a restart.
    pub(crate) maybe_seen: bool,
}

impl RedriveTarget {
    /// The new message for this destination.
    pub(crate) fn redriven(self, message: &Message, note: RedriveNote<'_>) -> Message {
        let Self { envelope, expiration_ms, .. } = self;
        let properties = rewritten(message, note, expiration_ms);
        let meta = MessageMeta { expiration_ms, ..message.meta() };
        message.republished(Arc::new(envelope), meta, &properties, note.maybe_seen)
    }
}

/// The properties of a redriven message. Death headers written by the broker are removed; such headers on a
/// message that never died are a client's data and stay.
fn rewritten(message: &Message, note: RedriveNote<'_>, expiration_ms: Option<u64>) -> Vec<u8> {
    // The publish has already validated the properties.
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
    let count = i64::try_from(redrive_count_in(old).saturating_add(1)).unwrap_or(i64::MAX);
    headers.insert(REDRIVE_COUNT, Value::I64(count));
    let sent = others.iter().map(|(key, value)| key.len() + value_bytes(*value)).sum::<usize>();
    let room = DEATH_HEADERS_FRAME_BYTES.saturating_sub(sent + REDRIVE_COUNT_BYTES);
    let room = room.min(REDRIVES_BYTES_MAX);
    headers.array(REDRIVES, |list| fill_redrives(list, message, note, old, room));
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

/// Bytes of headers that a redrive adds beside the list and the publisher's headers: names, types, lengths
/// and the count.
const REDRIVE_COUNT_BYTES: usize = 64;

/// Bytes of a header's value and of the length of its name.
fn value_bytes(value: Value<'_>) -> usize {
    let mut array = ArrayBuilder::new();
    array.push(value);
    array.finish().as_ref().as_bytes().len() + 1
}

/// Adds this redrive and those before it, as far as their number and size allow.
fn fill_redrives(
    list: &mut ArrayBuilder,
    message: &Message,
    note: RedriveNote<'_>,
    old: TableRef<'_>,
    bytes_max: usize,
) {
    let entry = |with_deaths| {
        let mut entry = TableBuilder::new();
        entry.insert("queue", Value::LongStr(note.queue.as_bytes()));
        entry.insert("time", Value::Timestamp(note.time_s));
        entry.insert("user", Value::LongStr(note.user.as_bytes()));
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
    use crate::death_history::{DeathHistory, DeathReason};
    use crate::message::{Content, SharedProperties};

    const NOTE: RedriveNote<'static> =
        RedriveNote { queue: "dlq", user: "u", time_s: 7, maybe_seen: false };

    /// A message that died in `queues` queues with long names.
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
        let deaths = DeathHistory { first: summary.clone(), last: summary, entries };
        let envelope = Arc::new(Envelope::new("".into(), "k".into()));
        let content = Content::Assembled { properties: vec![0, 0].into(), body: "b".into() };
        let message = Message::new(Arc::clone(&envelope), MessageMeta::default(), content, None);
        message.dead_letter(
            envelope,
            SharedProperties::new(message.properties()),
            Arc::new(deaths),
            false,
        )
    }

    fn redriven(message: &Message) -> Message {
        target(message, &RedriveTo::Origin).unwrap().redriven(message, NOTE)
    }

    /// Bytes of the list, and for each entry whether it still has its deaths.
    fn redrives_of(message: &Message) -> (usize, Vec<bool>) {
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
    fn redrive_that_is_killed_at_any_moment_moves_no_more_than_its_limit() {
        for (limit, slice, ahead, killed_every) in [(10, 3, 4, 2), (7, 1, 5, 1), (100, 9, 1, 3)] {
            let mut redrive = RedriveLimit { limit: Some(limit), moved: 0, moved_max: 0 };
            let (mut really_moved, mut steps) = (0, 0);
            while redrive.left() > 0 {
                let slice = redrive.left().min(slice);
                if let Some(moved_max) = redrive.reserve(slice, ahead) {
                    redrive.moved_max = moved_max;
                }
                assert_eq!(redrive.reserve(slice, ahead), None, "the room suffices now");
                really_moved += slice;
                steps += 1;
                if steps % killed_every == 0 {
                    // The kill has lost the count of the slice.
                    redrive.moved = redrive.moved_before();
                } else {
                    redrive.moved += slice;
                }
            }
            assert!(really_moved <= limit && really_moved > 0, "{really_moved} of {limit}");
        }
        let unlimited = RedriveLimit { limit: None, moved: 5, moved_max: 0 };
        assert_eq!((unlimited.left(), unlimited.reserve(9, 9)), (u64::MAX, None));
    }

    #[test]
    fn long_history_is_cut() {
        let few = redriven(&dead(20));
        assert_eq!(redrives_of(&few).1, [true]);
        // A single history is too long: the redrive is still listed, without the deaths.
        let many = redriven(&dead(200));
        assert_eq!(redrives_of(&many).1, [false]);
        assert_eq!(redrive_count(&many), 1);
        // Each history fits alone, but not all of them together.
        let mut message = few;
        for count in 2..20 {
            let died = dead(20);
            let deaths = Arc::clone(died.deaths().unwrap());
            let properties = SharedProperties::new(message.properties());
            let again =
                message.dead_letter(Arc::clone(message.envelope()), properties, deaths, false);
            message = redriven(&again);
            let (bytes, entries) = redrives_of(&message);
            assert!(bytes <= REDRIVES_BYTES_MAX + 64, "{bytes} bytes");
            assert!(entries.len() <= 3 && entries[0], "{entries:?}");
            assert_eq!(redrive_count(&message), count);
        }
    }

    #[test]
    fn redrive_headers_of_clients_are_ignored() {
        for (value, expected) in [
            (Value::LongStr(b"5"), 0),
            (Value::I32(-1), 0),
            (Value::U8(3), 3),
            (Value::I64(i64::MAX), i64::MAX as u64),
        ] {
            let mut headers = TableBuilder::new();
            headers.insert(REDRIVE_COUNT, value);
            assert_eq!(redrive_count_in(headers.as_ref()), expected, "{value:?}");
        }
    }
}

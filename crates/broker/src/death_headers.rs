//! Headers that the broker writes when a message dies: `x-death` and the six flat headers, with RabbitMQ's
//! names, order and wire types.
//!
//! Headers are sent in one frame, whose size the client's `frame_max` bounds. A history that does not fit is
//! shortened in the headers only: the newest and the first death stay with their counts, then the newest of
//! the others; of many routing keys the first stays. `x-death-omitted` and `routing-keys-omitted` count the
//! missing ones. The core's decisions use the whole history.

use amqp::limits::{CONTENT_HEADER_SIZE, FRAME_OVERHEAD};
use amqp::properties::Properties;
use amqp::table::{ArrayBuilder, TableBuilder, Value};
use smallvec::SmallVec;

use crate::death_history::{Death, DeathHistory, DeathSummary};
use crate::limits::{FRAME_MAX_DEFAULT, QUEUE_HEADERS_BYTES, X_DEATH_BYTES_MAX};

/// Bytes of encoded properties up to which the broker adds death headers to a dead letter.
pub(crate) const DEATH_HEADERS_FRAME_BYTES: usize =
    FRAME_MAX_DEFAULT - FRAME_OVERHEAD - CONTENT_HEADER_SIZE - QUEUE_HEADERS_BYTES;

/// Properties with death headers.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// The encoded properties.
    pub(crate) properties: Vec<u8>,
    /// True if part of the history was left out.
    pub(crate) is_cut: bool,
}

/// Encodes the properties without `expiration`. The broker's death headers replace any headers of these
/// names; headers are sorted by name. The result is no longer than `bytes_max` bytes, unless the properties
/// alone are longer.
pub(crate) fn render(properties: &[u8], deaths: &DeathHistory, bytes_max: usize) -> Rendered {
    let properties_len = properties.len();
    let death_bytes = history_bytes(deaths);
    let everything = || Plan { has_summaries: true, list: Some(List::All) };
    if properties_len + death_bytes + SUMMARIES_BYTES_MAX <= bytes_max
        && death_bytes <= X_DEATH_BYTES_MAX
    {
        let properties = encode(properties, deaths, &everything(), properties_len + death_bytes);
        return Rendered { properties, is_cut: false };
    }
    // COMPAT: x-death size: what does not fit is left out and counted, instead of a frame that is too long.
    let nothing = Plan { has_summaries: false, list: None };
    let without = encode(properties, deaths, &nothing, properties_len).len();
    let mut room = bytes_max.saturating_sub(without);
    let has_summaries = summaries_bytes(deaths) <= room;
    if has_summaries {
        room -= summaries_bytes(deaths);
    }
    let list = room.min(X_DEATH_BYTES_MAX).checked_sub(LIST_BYTES);
    let list = list.map(|room| List::choose(deaths, room));
    let is_cut = !has_summaries || !matches!(list, Some(List::All));
    let plan = Plan { has_summaries, list };
    Rendered { properties: encode(properties, deaths, &plan, bytes_max), is_cut }
}

/// True if the broker writes a header of this name when a message dies.
pub(crate) fn is_death_header(key: &[u8]) -> bool {
    DEATH_HEADERS.iter().any(|(name, _)| name.as_bytes() == key)
}

/// Adds all entries of `x-death` in full.
pub(crate) fn fill_all(list: &mut ArrayBuilder, deaths: &DeathHistory) {
    for death in &deaths.entries {
        list.table(|entry| fill_entry(entry, death, death.routing_keys.len()));
    }
}

/// Upper bound of the size of a full `x-death` header, in bytes.
pub(crate) fn history_bytes(deaths: &DeathHistory) -> usize {
    deaths.entries.iter().map(|death| entry_bytes(death, death.routing_keys.len())).sum()
}

/// The death headers that a message gets.
struct Plan {
    has_summaries: bool,
    list: Option<List>,
}

/// The entries of `x-death`.
enum List {
    All,
    /// For each death the number of its routing keys; none if the death is left out.
    Some(Vec<Option<usize>>),
}

impl List {
    /// Chooses entries that fit into `room` bytes: the newest death and the first, then the newest of the
    /// others, each with one key; then all keys of the deaths for which there is room.
    fn choose(deaths: &DeathHistory, mut room: usize) -> Self {
        let entries = &deaths.entries;
        let mut keys = vec![None; entries.len()];
        let first = entries.iter().position(|death| is_of(death, &deaths.first));
        let order: Vec<usize> = (0..entries.len().min(1))
            .chain(first.filter(|at| *at > 0))
            .chain((1..entries.len()).filter(|at| Some(*at) != first))
            .collect();
        for at in &order {
            let needed = entry_bytes(&entries[*at], 1);
            // Stop at the first that does not fit, so that no older death is listed where a newer one is
            // missing.
            let Some(left) = room.checked_sub(needed) else { break };
            room = left;
            keys[*at] = Some(entries[*at].routing_keys.len().min(1));
        }
        for at in order {
            let death = &entries[at];
            let more = entry_bytes(death, death.routing_keys.len()) - entry_bytes(death, 1);
            if keys[at].is_some()
                && let Some(left) = room.checked_sub(more)
            {
                room = left;
                keys[at] = Some(death.routing_keys.len());
            }
        }
        let is_whole = keys.iter().zip(entries).all(|(k, d)| *k == Some(d.routing_keys.len()));
        if is_whole { Self::All } else { Self::Some(keys) }
    }

    fn omitted(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Some(keys) => keys.iter().filter(|keys| keys.is_none()).count(),
        }
    }

    fn fill(&self, list: &mut ArrayBuilder, deaths: &DeathHistory) {
        let Self::Some(keys) = self else {
            return fill_all(list, deaths);
        };
        for (death, keys) in deaths.entries.iter().zip(keys) {
            if let Some(keys) = keys {
                list.table(|entry| fill_entry(entry, death, *keys));
            }
        }
    }
}

fn is_of(death: &Death, summary: &DeathSummary) -> bool {
    death.queue == summary.queue && death.reason == summary.reason
}

fn encode(properties: &[u8], deaths: &DeathHistory, plan: &Plan, expected: usize) -> Vec<u8> {
    // The publish has already validated the properties.
    let properties = Properties::parse(properties).unwrap_or_default();
    let mut others: SmallVec<[(&[u8], Value<'_>); 8]> = SmallVec::new();
    if let Some(old) = properties.headers {
        others.extend(old.iter().filter(|(key, _)| !is_death_header(key)));
        others.sort_by_key(|(key, _)| *key);
    }
    let mut others = others.into_iter().peekable();
    let mut headers = TableBuilder::with_capacity(expected + SUMMARIES_BYTES);
    for (name, header) in DEATH_HEADERS {
        while let Some((key, value)) = others.next_if(|(key, _)| *key < name.as_bytes()) {
            headers.insert(key, value);
        }
        header.insert(name, deaths, plan, &mut headers);
    }
    for (key, value) in others {
        headers.insert(key, value);
    }
    let headers = headers.as_ref();
    let mut out = Vec::with_capacity(headers.as_bytes().len() + OTHER_PROPERTIES_BYTES);
    Properties { headers: Some(headers), expiration: None, ..properties }.encode(&mut out);
    out
}

/// Capacity for properties other than headers in most messages, to avoid a reallocation.
const OTHER_PROPERTIES_BYTES: usize = 64;

/// Capacity for the flat death headers with short names.
const SUMMARIES_BYTES: usize = 256;

/// Upper bound of the flat death headers: names, types and lengths, a reason and the longest names.
const SUMMARIES_BYTES_MAX: usize = 6 * 32 + 2 * 16 + 4 * 255 + LIST_BYTES;

/// `x-death` and `x-death-omitted` without entries: names, types, length and number.
const LIST_BYTES: usize = (1 + 7 + 1 + 4) + (1 + 15 + 1 + 8);

/// An entry of `x-death` without its names and keys: names of fields, types, lengths and numbers, with
/// an original expiration of twenty digits and the longest reason.
const ENTRY_BYTES: usize = 178;

/// A routing key without its bytes: type and length.
const KEY_BYTES: usize = 5;

/// Upper bound of the size of an entry with its first `keys` routing keys, in bytes.
fn entry_bytes(death: &Death, keys: usize) -> usize {
    let keys: usize =
        death.routing_keys.iter().take(keys).map(|k| KEY_BYTES + k.as_bytes().len()).sum();
    ENTRY_BYTES + death.queue.len() + death.exchange.len() + keys
}

fn summaries_bytes(deaths: &DeathHistory) -> usize {
    let of = |summary: &DeathSummary| summary.queue.len() + summary.exchange.len() + 16;
    6 * 32 + of(&deaths.first) + of(&deaths.last)
}

/// A header that the broker writes when a message dies.
#[derive(Clone, Copy, Debug)]
enum DeathHeader {
    All,
    Omitted,
    Exchange(Which),
    Queue(Which),
    Reason(Which),
}

#[derive(Clone, Copy, Debug)]
enum Which {
    First,
    Last,
}

/// All death headers, sorted by name.
const DEATH_HEADERS: [(&str, DeathHeader); 8] = [
    ("x-death", DeathHeader::All),
    ("x-death-omitted", DeathHeader::Omitted),
    ("x-first-death-exchange", DeathHeader::Exchange(Which::First)),
    ("x-first-death-queue", DeathHeader::Queue(Which::First)),
    ("x-first-death-reason", DeathHeader::Reason(Which::First)),
    ("x-last-death-exchange", DeathHeader::Exchange(Which::Last)),
    ("x-last-death-queue", DeathHeader::Queue(Which::Last)),
    ("x-last-death-reason", DeathHeader::Reason(Which::Last)),
];

impl DeathHeader {
    fn insert(self, name: &str, deaths: &DeathHistory, plan: &Plan, headers: &mut TableBuilder) {
        let summary = |which| match which {
            Which::First => &deaths.first,
            Which::Last => &deaths.last,
        };
        let text = match self {
            Self::All => {
                if let Some(list) = &plan.list {
                    headers.array(name, |array| list.fill(array, deaths));
                }
                return;
            }
            Self::Omitted => {
                let omitted = plan.list.as_ref().map_or(0, List::omitted);
                if omitted > 0 {
                    headers.insert(name, count(omitted));
                }
                return;
            }
            Self::Exchange(which) => &*summary(which).exchange,
            Self::Queue(which) => &*summary(which).queue,
            Self::Reason(which) => summary(which).reason.as_str(),
        };
        if plan.has_summaries {
            headers.insert(name, Value::LongStr(text.as_bytes()));
        }
    }
}

/// Fills one entry of `x-death` with its first `keys` routing keys; the fields have RabbitMQ's order and wire
/// types.
fn fill_entry(entry: &mut TableBuilder, death: &Death, keys: usize) {
    if let Some(millis) = death.original_expiration_ms {
        let text = millis.to_string();
        entry.insert("original-expiration", Value::LongStr(text.as_bytes()));
    }
    entry.insert("count", Value::I64(i64::try_from(death.count).unwrap_or(i64::MAX)));
    entry.insert("reason", Value::LongStr(death.reason.as_str().as_bytes()));
    entry.insert("queue", Value::LongStr(death.queue.as_bytes()));
    entry.insert("time", Value::Timestamp(death.time_s));
    entry.insert("exchange", Value::LongStr(death.exchange.as_bytes()));
    entry.array("routing-keys", |list| {
        for key in death.routing_keys.iter().take(keys) {
            list.push(Value::LongStr(key.as_bytes()));
        }
    });
    if let omitted @ 1.. = death.routing_keys.len().saturating_sub(keys) {
        entry.insert("routing-keys-omitted", count(omitted));
    }
}

fn count(count: usize) -> Value<'static> {
    Value::I64(i64::try_from(count).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::death_history::DeathReason;
    use crate::message::RoutingKey;

    /// The history of a message that died in `queues` queues, the last first, each with these keys.
    fn history(queues: usize, keys: &[&str]) -> DeathHistory {
        let keys: Arc<[RoutingKey]> = keys.iter().map(|key| RoutingKey::from(*key)).collect();
        let name = |at: usize| crate::Name::from(format!("queue-{at}"));
        let death = |at| Death {
            queue: name(at),
            reason: DeathReason::Expired,
            count: at as u64,
            time_s: 0,
            exchange: "x".into(),
            routing_keys: Arc::clone(&keys),
            original_expiration_ms: Some(u64::MAX),
        };
        let summary = |at| DeathSummary {
            queue: name(at),
            reason: DeathReason::Expired,
            exchange: "".into(),
        };
        let entries = (0..queues).rev().map(death).collect();
        DeathHistory { first: summary(0), last: summary(queues - 1), entries }
    }

    fn with_header(bytes: usize) -> Vec<u8> {
        let mut headers = TableBuilder::new();
        headers.insert("zzz", Value::LongStr(&vec![b'.'; bytes]));
        let mut out = Vec::new();
        Properties { headers: Some(headers.as_ref()), ..Properties::default() }.encode(&mut out);
        out
    }

    /// Queue, count and number of keys of each entry in `x-death`, and the number of missing entries.
    fn shown(properties: &[u8]) -> (Vec<(String, i64, usize)>, i64) {
        let headers = Properties::parse(properties).unwrap().headers.unwrap();
        let Some(Value::Array(list)) = headers.get("x-death") else { return (Vec::new(), 0) };
        let entries = list.iter().map(|entry| {
            let Value::Table(entry) = entry else { panic!("{entry:?}") };
            let Some(Value::LongStr(queue)) = entry.get("queue") else { panic!("no queue") };
            let Some(Value::I64(count)) = entry.get("count") else { panic!("no count") };
            let Some(Value::Array(keys)) = entry.get("routing-keys") else { panic!("no keys") };
            (String::from_utf8_lossy(queue).into_owned(), count, keys.iter().count())
        });
        let omitted = headers.get("x-death-omitted").and_then(|value| value.as_integer());
        (entries.collect(), omitted.unwrap_or_default())
    }

    #[test]
    fn short_history_is_shown_whole() {
        let rendered = render(&[0, 0], &history(20, &["a", "b"]), DEATH_HEADERS_FRAME_BYTES);
        let (entries, omitted) = shown(&rendered.properties);
        assert!(!rendered.is_cut && omitted == 0);
        assert_eq!(entries.len(), 20);
        assert!(entries.iter().all(|(_, _, keys)| *keys == 2));
    }

    #[test]
    fn size_estimate_is_not_below_the_written_size() {
        for keys in [&["k"][..], &["k", "l", "m"]] {
            let deaths = history(5, keys);
            let mut list = ArrayBuilder::new();
            fill_all(&mut list, &deaths);
            assert!(list.finish().as_ref().as_bytes().len() <= history_bytes(&deaths));
        }
    }

    #[test]
    fn newest_and_first_death_are_kept() {
        let deaths = history(1000, &["k"]);
        let rendered = render(&[0, 0], &deaths, DEATH_HEADERS_FRAME_BYTES);
        assert!(rendered.is_cut && rendered.properties.len() < X_DEATH_BYTES_MAX + 1024);
        let (entries, omitted) = shown(&rendered.properties);
        assert!(entries.len() > 100, "{} entries", entries.len());
        assert_eq!(entries.len() + usize::try_from(omitted).unwrap(), 1000);
        assert_eq!(entries[0], ("queue-999".to_owned(), 999, 1));
        assert_eq!(entries[1].0, "queue-998");
        assert_eq!(entries.last().unwrap(), &("queue-0".to_owned(), 0, 1));
    }

    #[test]
    fn many_keys_are_shown_where_there_is_room() {
        let long = "k".repeat(200);
        let deaths = history(30, &[&*long; 100]);
        let (entries, omitted) = shown(&render(&[0, 0], &deaths, 130_000).properties);
        assert_eq!((entries.len(), omitted), (30, 0));
        assert_eq!(entries[0].2, 100, "the newest");
        assert_eq!(entries[1].2, 1);
    }

    #[test]
    fn headers_stay_below_the_frame_whatever_the_client_sent() {
        let deaths = history(300, &["k", "l"]);
        for (sent, bytes_max) in [(0, 8_172), (7_000, 8_172), (8_100, 8_172), (120_000, 131_000)] {
            let properties = with_header(sent);
            let rendered = render(&properties, &deaths, bytes_max);
            assert!(rendered.is_cut);
            assert!(
                rendered.properties.len() <= bytes_max,
                "{sent}: {}",
                rendered.properties.len()
            );
            let again = render(&rendered.properties, &deaths, bytes_max);
            assert_eq!(again.properties, rendered.properties);
        }
        let (entries, _) = shown(&render(&with_header(7_000), &deaths, 8_172).properties);
        assert_eq!(entries[0].0, "queue-299");
        assert_eq!(entries.last().unwrap().0, "queue-0");
        let too_long = render(&with_header(9_000), &deaths, 8_172).properties;
        assert_eq!(shown(&too_long).0.len(), 0);
    }
}

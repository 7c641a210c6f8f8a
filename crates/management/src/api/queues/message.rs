//! How a message is shown: its properties, its body, what became of it before.

use amqp::properties::Properties;
use amqp::table::{TableRef, Value as Field};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use broker::dead_letter::Death;
use broker::redrive::REDRIVES;
use broker::time::{Now, Time};
use broker::{BrowsedMessage, Message, MessageState, QueueNumber};
use serde_json::{Map, Value, json};

use crate::json::table::{bytes_to_text, table_to_json};
use crate::limits::REDRIVES_SHOWN_MAX;
use crate::node::MessageId;
use crate::snapshot::client::channel_name;

/// How a body is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encoding {
    /// As text if it is text.
    Auto,
    Base64,
}

/// The first octets of a body, all if there is no such limit, and in which encoding they are shown.
pub(crate) fn payload(
    body: &[u8],
    truncate: Option<usize>,
    encoding: Encoding,
) -> (String, &'static str) {
    let shown = shown_part(body, truncate);
    match (encoding, std::str::from_utf8(shown)) {
        (Encoding::Auto, Ok(text)) => (text.to_owned(), "string"),
        _ => (STANDARD.encode(shown), "base64"),
    }
}

/// The same in whichever encoding fits. Text that is cut off within a letter ends before it, so that it
/// stays text.
fn first_of(body: &[u8], truncate: usize) -> (String, &'static str) {
    let shown = shown_part(body, Some(truncate));
    let is_cut = shown.len() < body.len();
    let text = match std::str::from_utf8(shown) {
        Err(error) if is_cut && error.error_len().is_none() => shown.get(..error.valid_up_to()),
        _ => None,
    };
    payload(text.unwrap_or(shown), None, Encoding::Auto)
}

fn shown_part(body: &[u8], truncate: Option<usize>) -> &[u8] {
    truncate.and_then(|bytes| body.get(..bytes)).unwrap_or(body)
}

/// Memory that a message takes in an answer, about.
pub(crate) fn shown_bytes(message: &Message, truncate: Option<usize>) -> usize {
    const OVERHEAD_BYTES: usize = 1024;
    shown_part(message.body(), truncate).len() + message.properties().len() + OVERHEAD_BYTES
}

/// Where a message that is shown comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Its queue.
    pub(crate) queue: QueueNumber,
    /// How it is there.
    pub(crate) state: MessageState,
    /// When it was so.
    pub(crate) now: Now,
    /// Octets of a body that are shown.
    pub(crate) truncate: usize,
}

impl Shown {
    /// A message in its queue; `position` is how many are in front of it, as far as anybody knows.
    pub(crate) fn message(&self, browsed: &BrowsedMessage, position: Option<u64>) -> Value {
        let entry = &browsed.entry;
        let message = &entry.message;
        let envelope = message.envelope();
        let (payload, payload_encoding) = first_of(message.body(), self.truncate);
        let mut shown = json!({
            "id": MessageId { queue: self.queue, entry: entry.id }.to_string(),
            "position": position,
            "state": self.state.as_str(),
            "exchange": *envelope.exchange,
            "routing_key": bytes_to_text(envelope.routing_key.as_bytes()),
            "redelivered": browsed.is_redelivered(),
            "delivery_count": entry.delivery_count,
            "properties": properties(message.properties()),
            "payload": payload,
            "payload_encoding": payload_encoding,
            "payload_bytes": message.body().len(),
            "arrived_ms": self.wall_ms(entry.arrived),
            "expires_ms": browsed.deadline.map(|at| self.wall_ms(at)),
            "deaths": deaths(message),
            "redrives": redrives(message),
        });
        if let Some(at) = browsed.ready_at {
            shown["ready_ms"] = json!(self.wall_ms(at));
        }
        if let Some(held_by) = &browsed.held_by {
            shown["consumer_tag"] = json!(held_by.consumer_tag.as_deref());
            shown["channel"] = json!(channel_name(&held_by.connection_name, held_by.channel));
        }
        shown
    }

    fn wall_ms(&self, at: Time) -> u64 {
        wall_ms(self.now, at)
    }
}

/// A moment on the wall clock, in milliseconds.
pub(crate) fn wall_ms(now: Now, at: Time) -> u64 {
    let (ago, ahead) = (now.time.micros_since(at) / 1000, at.micros_since(now.time).div_ceil(1000));
    now.wall_ms.saturating_sub(ago).saturating_add(ahead)
}

/// What the broker knows of the deaths of a message, the last first.
fn deaths(message: &Message) -> Vec<Value> {
    let deaths = message.deaths().into_iter().flat_map(|deaths| &deaths.entries);
    deaths.map(death).collect()
}

fn death(death: &Death) -> Value {
    let keys = death.routing_keys.iter().map(|key| bytes_to_text(key.as_bytes()));
    json!({
        "queue": *death.queue,
        "reason": death.reason.as_str(),
        "count": death.count,
        "time_ms": death.time_s.saturating_mul(1000),
        "exchange": *death.exchange,
        "routing_keys": keys.collect::<Vec<String>>(),
        "original_expiration_ms": death.original_expiration_ms,
    })
}

/// Who has moved a message out of which queues, the last first: what its header `x-redrives` says, which
/// is as true as whoever published it.
fn redrives(message: &Message) -> Vec<Value> {
    // They were validated when the message was published.
    let properties = Properties::parse(message.properties()).unwrap_or_default();
    match properties.headers.and_then(|headers| headers.get(REDRIVES)) {
        Some(Field::Array(list)) => {
            list.iter().filter_map(redrive).take(REDRIVES_SHOWN_MAX).collect()
        }
        _ => Vec::new(),
    }
}

fn redrive(entry: Field<'_>) -> Option<Value> {
    let Field::Table(fields) = entry else { return None };
    let time_ms = match fields.get("time") {
        Some(Field::Timestamp(seconds)) => Some(seconds.saturating_mul(1000)),
        _ => None,
    };
    let word = |name| word(&fields, name);
    Some(json!({"queue": word("queue"), "time_ms": time_ms, "user": word("user")}))
}

fn word(fields: &TableRef<'_>, name: &str) -> Option<String> {
    fields.get(name).and_then(|value| value.as_long_str()).map(bytes_to_text)
}

/// The properties that a message has; an empty list if it has none, as in RabbitMQ.
pub(crate) fn properties(encoded: &[u8]) -> Value {
    // They were validated when the message was published.
    let properties = Properties::parse(encoded).unwrap_or_default();
    let texts = [
        ("content_type", properties.content_type),
        ("content_encoding", properties.content_encoding),
        ("correlation_id", properties.correlation_id),
        ("reply_to", properties.reply_to),
        ("expiration", properties.expiration),
        ("message_id", properties.message_id),
        ("type", properties.type_),
        ("user_id", properties.user_id),
        ("app_id", properties.app_id),
        ("cluster_id", properties.cluster_id),
    ];
    let numbers = [
        ("delivery_mode", properties.delivery_mode.map(u64::from)),
        ("priority", properties.priority.map(u64::from)),
        ("timestamp", properties.timestamp),
    ];
    let texts = texts
        .into_iter()
        .map(|(name, value)| (name, value.map(|value| json!(bytes_to_text(value)))));
    let numbers = numbers.into_iter().map(|(name, value)| (name, value.map(Value::from)));
    let headers = [("headers", properties.headers.map(table_to_json))];
    let shown: Map<String, Value> = texts
        .chain(numbers)
        .chain(headers)
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
    if shown.is_empty() { json!([]) } else { Value::Object(shown) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_cut_off_stays_text_and_octets_stay_octets() {
        for (body, truncate, shown) in [
            ("häse".as_bytes(), 9, ("häse", "string")),
            ("häse".as_bytes(), 3, ("hä", "string")),
            ("häse".as_bytes(), 2, ("h", "string")),
            ("häse".as_bytes(), 0, ("", "string")),
            (b"h\xc3", 2, ("aMM=", "base64")),
            (b"\xff\xfe", 1, ("/w==", "base64")),
        ] {
            assert_eq!(first_of(body, truncate), (shown.0.to_owned(), shown.1), "{body:?}");
        }
    }

    #[test]
    fn moments_are_shown_on_the_wall_clock() {
        let now = Now { time: Time::from_millis(5_000), wall_ms: 1_000_000 };
        assert_eq!(wall_ms(now, Time::from_millis(4_000)), 999_000);
        // A deadline is not shown before it is over.
        assert_eq!(wall_ms(now, Time::from_micros(6_000_001)), 1_001_001);
    }
}

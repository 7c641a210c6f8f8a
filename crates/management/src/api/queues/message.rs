//! A message in JSON: properties, body, deaths and redrives.

use amqp::properties::Properties;
use amqp::table::{TableRef, Value as Field};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use broker::dead_letter::Death;
use broker::redrive::REDRIVES;
use broker::time::{Now, Time};
use broker::{BrowsedMessage, Message, MessageState, QueueNumber};
use serde_json::{Map, Value, json};
use server::json::table::{bytes_to_text, table_to_json};
use server::requests::MessageId;
use server::snapshot::client::channel_name;
use server::snapshot::moment::wall_ms;

use crate::http::answer::ApiError;
use crate::limits::{DEATH_KEYS_SHOWN_MAX, DEATHS_SHOWN_MAX, REDRIVES_SHOWN_MAX};

/// The encoding of a body in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encoding {
    /// Text if the body is UTF-8, base64 otherwise.
    Auto,
    Base64,
}

/// The first bytes of a body, or all, with the name of their encoding.
pub(crate) fn payload(
    body: &[u8],
    truncate: Option<usize>,
    encoding: Encoding,
) -> (String, &'static str) {
    let json = truncated(body, truncate);
    match (encoding, std::str::from_utf8(json)) {
        (Encoding::Auto, Ok(text)) => (text.to_owned(), "string"),
        _ => (STANDARD.encode(json), "base64"),
    }
}

/// The first bytes of a body in the fitting encoding. A cut within a character moves to the character's
/// start, so that text stays text.
fn first_of(body: &[u8], truncate: usize) -> (String, &'static str) {
    let json = truncated(body, Some(truncate));
    let is_cut = json.len() < body.len();
    let text = match std::str::from_utf8(json) {
        Err(error) if is_cut && error.error_len().is_none() => json.get(..error.valid_up_to()),
        _ => None,
    };
    payload(text.unwrap_or(json), None, Encoding::Auto)
}

fn truncated(body: &[u8], truncate: Option<usize>) -> &[u8] {
    truncate.and_then(|bytes| body.get(..bytes)).unwrap_or(body)
}

/// Approximate memory of a message in an answer.
pub(crate) fn message_bytes(message: &Message, truncate: Option<usize>) -> usize {
    const OVERHEAD_BYTES: usize = 1024;
    truncated(message.body(), truncate).len() + message.properties().len() + OVERHEAD_BYTES
}

/// Approximate memory of a browsed message in an answer: with its deaths.
pub(crate) fn browsed_bytes(message: &Message, truncate: usize) -> usize {
    const DEATH_BYTES: usize = 1024;
    const KEY_BYTES: usize = 64;
    let deaths = all_deaths(message).iter().take(DEATHS_SHOWN_MAX);
    let of_deaths = deaths.map(|death| {
        let keys = death.routing_keys.iter().take(DEATH_KEYS_SHOWN_MAX);
        DEATH_BYTES + keys.map(|key| key.as_bytes().len() + KEY_BYTES).sum::<usize>()
    });
    message_bytes(message, Some(truncate)) + of_deaths.sum::<usize>()
}

/// The context of a browsed message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageContext {
    /// Number of the queue.
    pub(crate) queue: QueueNumber,
    /// State of the message.
    pub(crate) state: MessageState,
    /// Time of the read.
    pub(crate) now: Now,
    /// Bytes shown of a body.
    pub(crate) truncate: usize,
}

impl MessageContext {
    /// A browsed message in JSON. `position` is the number of messages before it, if known.
    pub(crate) fn message(&self, browsed: &BrowsedMessage, position: Option<u64>) -> Value {
        let entry = &browsed.entry;
        let message = &entry.message;
        let envelope = message.envelope();
        let (payload, payload_encoding) = first_of(message.body(), self.truncate);
        let mut json = json!({
            "id": MessageId { queue: self.queue, entry: entry.id }.to_string(),
            "position": position,
            "state": self.state.as_str(),
            "exchange": *envelope.exchange,
            "routing_key": bytes_to_text(envelope.routing_key.as_bytes()),
            "redelivered": browsed.is_redelivered(),
            "redelivered_uncertain": browsed.is_redelivery_uncertain(),
            "delivery_count": entry.delivery_count,
            "properties": properties(message.properties()),
            "payload": payload,
            "payload_encoding": payload_encoding,
            "payload_bytes": message.body().len(),
            "arrived_ms": self.wall_ms(entry.arrived),
            "expires_ms": browsed.deadline.map(|at| self.wall_ms(at)),
            "deaths": deaths(message),
            "deaths_total": all_deaths(message).len(),
            "redrives": redrives(message),
        });
        if let Some(at) = browsed.ready_at {
            json["ready_ms"] = json!(self.wall_ms(at));
        }
        if let Some(held_by) = &browsed.held_by {
            json["consumer_tag"] = json!(held_by.consumer_tag.as_deref());
            json["channel"] = json!(channel_name(&held_by.connection_name, held_by.channel));
        }
        json
    }

    fn wall_ms(&self, at: Time) -> u64 {
        wall_ms(self.now, at)
    }
}

/// The deaths of a message, latest first; not all if they are many.
fn deaths(message: &Message) -> Vec<Value> {
    all_deaths(message).iter().take(DEATHS_SHOWN_MAX).map(death).collect()
}

fn all_deaths(message: &Message) -> &[Death] {
    message.deaths().map_or(&[], |deaths| &deaths.entries)
}

fn death(death: &Death) -> Value {
    let keys = death.routing_keys.iter().take(DEATH_KEYS_SHOWN_MAX);
    let keys = keys.map(|key| bytes_to_text(key.as_bytes()));
    json!({
        "queue": *death.queue,
        "reason": death.reason.as_str(),
        "count": death.count,
        "time_ms": death.time_s.saturating_mul(1000),
        "exchange": *death.exchange,
        "routing_keys": keys.collect::<Vec<String>>(),
        "routing_keys_total": death.routing_keys.len(),
        "original_expiration_ms": death.original_expiration_ms,
    })
}

/// The redrives of a message, latest first, from the header `x-redrives`, which any publisher can set.
fn redrives(message: &Message) -> Vec<Value> {
    // Properties were validated when the message was published.
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

/// The properties of a message; as in RabbitMQ, an empty list if there are none.
pub(crate) fn properties(encoded: &[u8]) -> Value {
    // Properties were validated when the message was published.
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
    let json: Map<String, Value> = texts
        .chain(numbers)
        .chain(headers)
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
    if json.is_empty() { json!([]) } else { Value::Object(json) }
}

/// Refuses places in JSON bodies that are no JSON pointers: a misspelt one would select nothing.
///
/// # Errors
/// [`ApiError`] that names the first of them.
pub(crate) fn check_pointers(places: &[(String, Option<String>)]) -> Result<(), ApiError> {
    match places.iter().find(|(place, _)| !place.is_empty() && !place.starts_with('/')) {
        None => Ok(()),
        Some((place, _)) => Err(ApiError::bad_request(format!(
            "json should name a place by a JSON pointer, such as /customer/id, got {place}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_text_stays_text() {
        for (body, truncate, json) in [
            ("häse".as_bytes(), 9, ("häse", "string")),
            ("häse".as_bytes(), 3, ("hä", "string")),
            ("häse".as_bytes(), 2, ("h", "string")),
            ("häse".as_bytes(), 0, ("", "string")),
            (b"h\xc3", 2, ("aMM=", "base64")),
            (b"\xff\xfe", 1, ("/w==", "base64")),
        ] {
            assert_eq!(first_of(body, truncate), (json.0.to_owned(), json.1), "{body:?}");
        }
    }
}

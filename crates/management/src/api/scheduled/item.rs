//! A scheduled message in JSON.

use amqp::properties::Properties;
use amqp::table::Value as Field;
use broker::ScheduledMessage;
use broker::time::Now;
use serde_json::{Value, json};
use server::json::table::bytes_to_text;
use server::snapshot::moment::wall_ms;

/// The header of a message in a queue with its delivery time, in milliseconds since the Unix epoch.
const SCHEDULED_FOR: &str = "x-scheduled-for";

/// Milliseconds by which the header and the place of a message may differ: the wall clock is read in milliseconds.
const ROUNDING_MS: u64 = 2;

/// A scheduled message.
pub(super) fn to_json(vhost: &str, scheduled: &ScheduledMessage, now: Now) -> Value {
    let message = &scheduled.message;
    let envelope = message.envelope();
    // Properties were validated when the message was published.
    let properties = Properties::parse(message.properties()).unwrap_or_default();
    json!({
        "vhost": vhost,
        "target_kind": scheduled.target.kind(),
        "target_name": **scheduled.target.name(),
        "id": scheduled.id.as_ref().map(ToString::to_string),
        "handle": scheduled.handle,
        "delivery_time": delivery_time_ms(scheduled, &properties, now),
        "exchange": *envelope.exchange,
        "routing_key": bytes_to_text(envelope.routing_key.as_bytes()),
        "message_id": properties.message_id.map(bytes_to_text),
        "payload_bytes": message.body().len(),
        "persistent": scheduled.is_durable,
    })
}

/// The delivery time in milliseconds since the Unix epoch: exactly as the publisher gave it, unless the wall clock was
/// set since.
fn delivery_time_ms(scheduled: &ScheduledMessage, properties: &Properties<'_>, now: Now) -> u64 {
    let shown_ms = wall_ms(now, scheduled.ready_at);
    let header = properties.headers.and_then(|headers| headers.get(SCHEDULED_FOR));
    let asked_ms = match header {
        Some(Field::I64(ms)) => u64::try_from(ms).ok(),
        _ => None,
    };
    asked_ms.filter(|asked| asked.abs_diff(shown_ms) <= ROUNDING_MS).unwrap_or(shown_ms)
}

//! `POST /api/exchanges/{vhost}/{name}/publish`: publishes one message. Answered when its queues have it,
//! and the disk if it is persistent.

use amqp::limits::SHORT_STRING_BYTES_MAX;
use amqp::properties::Properties;
use amqp::reply_code::ReplyCode;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use broker::refusal::Refusal;
use broker::time::Now;
use broker::{Command, Content, Outgoing, Publish, ScheduledPlace};
use serde_json::{Map, Value, json};
use server::InternalChannel;
use server::json::base64_text::bytes_from_base64;
use server::snapshot::moment::wall_ms;

use crate::api::user_channel::{UserVhost, call, short};
use crate::http::access::Management;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Body, NameInVhost, SharedNode, exchange_name};
use crate::http::fields::{Fields, text};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::json::table::table_from_json;

/// The path.
pub(super) fn routes() -> Routes {
    Routes::new().route(
        "/api/exchanges/{vhost}/{name}/publish",
        Scope::Vhost("vhost"),
        post(publish),
    )
}

async fn publish(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    Body(body): Body,
) -> Result<Json, ApiError> {
    let user_vhost = UserVhost::for_create(node, caller, vhost)?;
    let exchange = exchange_name(&name);
    if user_vhost.node().exchange(&user_vhost.vhost, exchange).is_none() {
        return Err(ApiError::missing("exchange_not_found"));
    }
    let fields = Fields::read(&body)?;
    let names = ["routing_key", "properties", "payload", "payload_encoding"];
    let [routing_key, properties, payload, encoding] = fields.required(names)?;
    let payload = payload.as_str().ok_or_else(|| ApiError::bad_request("payload_not_string"))?;
    let mut channel = user_vhost.channel().await?;
    let content = Content::Assembled {
        properties: encoded(properties)?.into(),
        body: decoded(payload, encoding)?,
    };
    check_size(&user_vhost, &content)?;
    check_alarms(&user_vhost)?;
    let routing_key = short("routing_key", text("routing_key", routing_key)?)?;
    let publish = Publish {
        exchange: exchange.as_bytes().into(),
        routing_key: routing_key.as_bytes().into(),
        mandatory: true,
        content,
    };
    let (confirm, scheduled) = confirmed(&mut channel, publish).await.map_err(|r| refused(&r))?;
    let is_routed = match confirm {
        Confirm::Routed => true,
        Confirm::Returned => false,
        Confirm::Rejected => {
            let reason = "rejected Unable to publish message. Check queue limits.";
            return Err(ApiError::bad_request(reason));
        }
    };
    let mut answer = json!({"routed": is_routed});
    if !scheduled.is_empty() {
        answer["scheduled"] = Value::Array(scheduled);
    }
    Ok(Json::ok(answer))
}

/// A place in which a message waits for its delivery time.
fn scheduled_place(place: &ScheduledPlace, now: Now) -> Value {
    json!({
        "target_kind": place.target.kind(),
        "target_name": **place.target.name(),
        "id": place.id.as_ref().map(ToString::to_string),
        "handle": place.handle,
        "delivery_time": wall_ms(now, place.ready_at),
    })
}

/// The result of a publish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Confirm {
    /// Routed to at least one queue.
    Routed,
    /// Returned as unroutable.
    Returned,
    /// Rejected by a full queue.
    Rejected,
}

/// Publishes a message and waits for the confirm. Also returns the places in which the message waits for its delivery
/// time.
pub(crate) async fn confirmed(
    channel: &mut InternalChannel,
    publish: Publish<'_>,
) -> Result<(Confirm, Vec<Value>), Refusal> {
    call(channel, Command::ConfirmSelect { nowait: false }).await?;
    let mut confirm = Confirm::Routed;
    let (places, now) = channel.publish(publish);
    let scheduled = places.iter().map(|place| scheduled_place(place, now)).collect();
    loop {
        let answer = channel.answer().await?;
        if matches!(answer, Outgoing::Ack { .. }) {
            return Ok((confirm, scheduled));
        }
        if matches!(answer, Outgoing::Nack { .. }) {
            return Ok((Confirm::Rejected, scheduled));
        }
        // The message was returned; its confirm follows.
        confirm = Confirm::Returned;
    }
}

/// A refused publish, with the whole text that AMQP would send.
fn refused(refusal: &Refusal) -> ApiError {
    ApiError::bad_request(format!("{} {refusal}", refusal.code.code()))
}

fn check_size(user_vhost: &UserVhost, content: &Content<'_>) -> Result<(), ApiError> {
    let (size, max) = (content.body().len() as u64, user_vhost.node().message_size_max());
    if size <= max {
        return Ok(());
    }
    let text = format!("message size {size} is larger than configured max size {max}");
    Err(refused(&Refusal::new(ReplyCode::PreconditionFailed, text)))
}

/// Refuses messages while an alarm is in force.
///
/// COMPAT: alarms: while publishers are blocked, the API takes no messages either; RabbitMQ's API does.
pub(crate) fn check_alarms(user_vhost: &UserVhost) -> Result<(), ApiError> {
    if !user_vhost.node().snapshot().blocks_publishers {
        return Ok(());
    }
    let reason = "publishers are blocked: memory or disk space is short";
    Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason))
}

fn decoded(payload: &str, encoding: &Value) -> Result<Bytes, ApiError> {
    match encoding.as_str() {
        Some("string") => Ok(Bytes::copy_from_slice(payload.as_bytes())),
        Some("base64") => bytes_from_base64(payload)
            .map(Bytes::from)
            .map_err(|_| ApiError::bad_request(json!(["not_base64", payload]))),
        _ => Err(ApiError::bad_request(json!(["unsupported_encoding", encoding]))),
    }
}

/// Encodes properties. Unknown names are ignored.
fn encoded(properties: &Value) -> Result<Vec<u8>, ApiError> {
    let none = Map::new();
    let is_empty = properties.as_array().is_some_and(Vec::is_empty);
    let properties = properties.as_object().or_else(|| is_empty.then_some(&none));
    let properties =
        properties.ok_or_else(|| ApiError::bad_request("properties must be an object"))?;
    let headers = properties.get("headers").map(table_from_json).transpose()?;
    let text = |name: &str| properties.get(name).map(|value| short_text(name, value)).transpose();
    let byte = |name: &str| properties.get(name).map(|value| number(name, value)).transpose();
    let mut out = Vec::new();
    Properties {
        content_type: text("content_type")?,
        content_encoding: text("content_encoding")?,
        headers: headers.as_ref().map(|headers| headers.as_ref()),
        delivery_mode: byte("delivery_mode")?,
        priority: byte("priority")?,
        correlation_id: text("correlation_id")?,
        reply_to: text("reply_to")?,
        expiration: text("expiration")?,
        message_id: text("message_id")?,
        timestamp: properties.get("timestamp").map(|v| number("timestamp", v)).transpose()?,
        type_: text("type")?,
        user_id: text("user_id")?,
        app_id: text("app_id")?,
        cluster_id: text("cluster_id")?,
    }
    .encode(&mut out);
    Ok(out)
}

fn short_text<'a>(name: &str, value: &'a Value) -> Result<&'a [u8], ApiError> {
    let text = text(name, value)?;
    if text.len() > SHORT_STRING_BYTES_MAX {
        let reason = "506 failed to deliver message: content_properties_shortstr_overflow";
        return Err(ApiError::bad_request(reason));
    }
    Ok(text.as_bytes())
}

/// A whole number in the property's range.
///
/// COMPAT: numbers in JSON: a number outside the range of a property or a table is refused; RabbitMQ
/// truncates it.
fn number<T: TryFrom<u64>>(name: &str, value: &Value) -> Result<T, ApiError> {
    let Some(number) = value.as_number().filter(|number| !number.is_f64()) else {
        return Err(ApiError::bad_request(json!(["not_int", name])));
    };
    let fitting = number.as_u64().and_then(|number| T::try_from(number).ok());
    fitting.ok_or_else(|| ApiError::bad_request(format!("{name} is out of range: {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_properties_are_encoded() {
        let all = json!({
            "content_type": "a", "content_encoding": "b", "headers": {"h": 1}, "delivery_mode": 2,
            "priority": 255, "correlation_id": "c", "reply_to": "d", "expiration": "5",
            "message_id": "e", "timestamp": u64::MAX, "type": "f", "user_id": "g", "app_id": "h",
            "cluster_id": "i", "other": null,
        });
        let bytes = encoded(&all).unwrap();
        let read = Properties::parse(&bytes).unwrap();
        let texts = [
            read.content_type,
            read.content_encoding,
            read.correlation_id,
            read.reply_to,
            read.expiration,
            read.message_id,
            read.type_,
            read.user_id,
            read.app_id,
            read.cluster_id,
        ];
        let texts: Vec<&[u8]> = texts.into_iter().flatten().collect();
        assert_eq!(texts.concat(), b"abcd5efghi");
        assert_eq!((read.delivery_mode, read.priority), (Some(2), Some(255)));
        assert_eq!(read.timestamp, Some(u64::MAX));
        assert_eq!(read.headers.unwrap().len(), 1);
        assert_eq!(encoded(&json!([])), encoded(&json!({})));
    }

    #[test]
    fn properties_refuse_invalid_values() {
        let refused = |properties: Value| encoded(&properties).unwrap_err();
        let error = |reason: Value| ApiError::bad_request(reason);
        for name in ["delivery_mode", "priority", "timestamp"] {
            for value in [json!("1"), json!(1.0), json!(null)] {
                assert_eq!(refused(json!({name: value})), error(json!(["not_int", name])));
            }
            let reason = format!("{name} is out of range: -1");
            assert_eq!(refused(json!({name: -1})), error(json!(reason)));
        }
        assert_eq!(
            refused(json!({"priority": 256})),
            error(json!("priority is out of range: 256"))
        );
        assert_eq!(refused(json!({"type": null})), error(json!(["not_string", "type"])));
        for properties in [json!(null), json!("a"), json!([1]), json!({"type": "x".repeat(256)})] {
            refused(properties);
        }
    }
}

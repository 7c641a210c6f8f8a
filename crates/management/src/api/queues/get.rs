//! `POST /api/queues/{vhost}/{name}/get`: messages from the head of a queue, to keep or to put back.
//!
//! They are taken one after the other and settled together, when all of them are there: what is not
//! answered is back in its place.

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use broker::refusal::Refusal;
use broker::{Command, Delivery, DeliveryTag, Outcome, Outgoing};
use serde_json::{Value, json};

use crate::api::queues::message::{Encoding, payload, properties, shown_bytes};
use crate::api::user_channel::{Entry, call};
use crate::http::access::Management;
use crate::http::answer::{ApiError, Json, refused_read};
use crate::http::extract::{Body, NameInVhost, Shared};
use crate::http::fields::{Fields, integer};
use crate::json::table::bytes_to_text;
use crate::limits::GET_BYTES_MAX;
use crate::node::Channel;

/// The path.
pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/api/queues/{vhost}/{name}/get", post(get))
}

async fn get(
    State(node): State<Shared>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    Body(body): Body,
) -> Result<Json, ApiError> {
    let entry = Entry::to_make(node, caller, vhost)?;
    if entry.node().queue(&entry.vhost, &name).is_none() {
        return Err(ApiError::missing("queue_not_found"));
    }
    let fields = Fields::read(&body)?;
    let wanted = Wanted::read(&fields)?;
    let mut channel = entry.channel().await?;
    let messages = wanted.take(&mut *channel, &name).await.map_err(|r| refused_read(&r))?;
    channel.close().await;
    Ok(Json::ok(Value::Array(messages)))
}

/// What a request wants of the messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wanted {
    /// How many; none for all.
    count: Option<u64>,
    /// What becomes of them.
    outcome: Outcome,
    encoding: Encoding,
    /// Bytes of each body that are shown; none for all.
    truncate: Option<usize>,
}

impl Wanted {
    fn read(fields: &Fields) -> Result<Self, ApiError> {
        let [mode, count, encoding] = fields.required(["ackmode", "count", "encoding"])?;
        let truncate = fields.get("truncate").map(integer).transpose()?;
        let negative = || ApiError::bad_request("truncate must not be negative");
        Ok(Self {
            outcome: outcome(mode)?,
            count: u64::try_from(integer(count)?).ok(),
            encoding: match encoding.as_str() {
                Some("auto") => Encoding::Auto,
                Some("base64") => Encoding::Base64,
                _ => {
                    let reason = "Unsupported encoding. Please use auto or base64.";
                    return Err(ApiError::bad_request(reason));
                }
            },
            truncate: truncate
                .map(|bytes| usize::try_from(bytes).map_err(|_| negative()))
                .transpose()?,
        })
    }

    /// Takes messages off a queue and settles them. There may be fewer than wanted: an answer holds so
    /// many octets.
    async fn take(&self, channel: &mut dyn Channel, queue: &str) -> Result<Vec<Value>, Refusal> {
        let mut messages = Vec::new();
        let mut last = None;
        let mut bytes = 0;
        while self.count.is_none_or(|count| (messages.len() as u64) < count)
            && bytes < GET_BYTES_MAX
        {
            let get = Command::Get { queue, no_ack: false };
            let Outgoing::GetOk { delivery, message_count } = call(channel, get).await? else {
                break;
            };
            last = Some(delivery.tag);
            bytes += shown_bytes(&delivery.message, self.truncate);
            messages.push(self.shown(&delivery, message_count));
        }
        if let Some(tag) = last {
            self.settle(channel, tag);
        }
        Ok(messages)
    }

    /// Settles all up to `tag`.
    fn settle(&self, channel: &mut dyn Channel, tag: DeliveryTag) {
        channel.apply(Command::Settle { tag, multiple: true, outcome: self.outcome });
    }

    fn shown(&self, delivery: &Delivery, message_count: u32) -> Value {
        let envelope = delivery.message.envelope();
        let (payload, payload_encoding) =
            payload(delivery.message.body(), self.truncate, self.encoding);
        json!({
            "payload_bytes": delivery.message.body().len(),
            "redelivered": delivery.redelivered,
            "exchange": *envelope.exchange,
            "routing_key": bytes_to_text(envelope.routing_key.as_bytes()),
            "message_count": message_count,
            "properties": properties(&delivery.properties()),
            "payload": payload,
            "payload_encoding": payload_encoding,
        })
    }
}

fn outcome(mode: &Value) -> Result<Outcome, ApiError> {
    match mode.as_str() {
        Some("ack_requeue_false") => Ok(Outcome::Ack),
        // As if it had never been taken.
        Some("ack_requeue_true") => Ok(Outcome::Requeue { failed: false }),
        Some("reject_requeue_true") => Ok(Outcome::Requeue { failed: true }),
        Some("reject_requeue_false") => Ok(Outcome::Reject),
        _ => {
            let shown = mode.as_str().map_or_else(|| mode.to_string(), str::to_owned);
            Err(ApiError::bad_request(format!(
                "Invalid ackmode value: {shown}. Valid values are: ack_requeue_true, \
                 ack_requeue_false, reject_requeue_true, reject_requeue_false"
            )))
        }
    }
}

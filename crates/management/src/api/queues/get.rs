//! `POST /api/queues/{vhost}/{name}/get`: takes messages from the head of a queue, or returns them to it.
//!
//! Messages are taken one by one and settled together at the end. If the request fails before, all of them
//! are requeued.

use axum::extract::State;
use axum::routing::post;
use broker::refusal::Refusal;
use broker::{Command, Delivery, DeliveryTag, Outcome, Outgoing};
use serde_json::{Value, json};
use server::InternalChannel;
use server::json::table::bytes_to_text;

use crate::api::queues::message::{Encoding, message_bytes, payload, properties};
use crate::api::user_channel::{UserVhost, call};
use crate::http::access::Management;
use crate::http::allowance::Allowance;
use crate::http::answer::{ApiError, Json, refused_read};
use crate::http::extract::{Body, NameInVhost, SharedNode};
use crate::http::fields::{Fields, integer};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::limits::GET_BYTES_MAX;

/// The path.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/queues/{vhost}/{name}/get", Scope::Vhost("vhost"), post(get))
}

async fn get(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    allowance: Allowance,
    Body(body): Body,
) -> Result<Json, ApiError> {
    let user_vhost = UserVhost::for_create(node, caller, vhost)?;
    if user_vhost.node().queue(&user_vhost.vhost, &name).is_none() {
        return Err(ApiError::missing("queue_not_found"));
    }
    let fields = Fields::read(&body)?;
    let query = GetQuery::read(&fields)?;
    let mut channel = user_vhost.channel().await?;
    let messages =
        query.take(&mut channel, &name, &allowance).await.map_err(|r| refused_read(&r))?;
    channel.close().await;
    Ok(Json::ok(Value::Array(messages)))
}

/// The query of a get request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct GetQuery {
    /// Number of messages; none for all.
    count: Option<u64>,
    /// Settlement of the messages.
    outcome: Outcome,
    encoding: Encoding,
    /// Bytes of each body that are shown; none for all.
    truncate: Option<usize>,
}

impl GetQuery {
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

    /// Takes messages off a queue and settles them. May return fewer than requested, because an answer is
    /// bounded in bytes.
    async fn take(
        &self,
        channel: &mut InternalChannel,
        queue: &str,
        allowance: &Allowance,
    ) -> Result<Vec<Value>, Refusal> {
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
            let size = message_bytes(&delivery.message, self.truncate);
            bytes += size;
            messages.push(self.delivery_to_json(&delivery, message_count));
            if allowance.hold(size).is_err() {
                break;
            }
        }
        if let Some(tag) = last {
            self.settle(channel, tag);
        }
        Ok(messages)
    }

    /// Settles all deliveries up to `tag`.
    fn settle(&self, channel: &mut InternalChannel, tag: DeliveryTag) {
        channel.apply(Command::Settle { tag, multiple: true, outcome: self.outcome });
    }

    fn delivery_to_json(self, delivery: &Delivery, message_count: u32) -> Value {
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
        // Requeued without counting a failed delivery.
        Some("ack_requeue_true") => Ok(Outcome::Requeue { failed: false }),
        Some("reject_requeue_true") => Ok(Outcome::Requeue { failed: true }),
        Some("reject_requeue_false") => Ok(Outcome::Reject),
        _ => {
            let json = mode.as_str().map_or_else(|| mode.to_string(), str::to_owned);
            Err(ApiError::bad_request(format!(
                "Invalid ackmode value: {json}. Valid values are: ack_requeue_true, \
                 ack_requeue_false, reject_requeue_true, reject_requeue_false"
            )))
        }
    }
}

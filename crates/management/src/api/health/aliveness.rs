//! `GET /api/aliveness-test/{vhost}`: a message goes into a queue and comes out again.

use amqp::table::Table;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::get;
use broker::{Command, Content, DeclareQueue, Outgoing, Publish};
use serde_json::json;

use crate::api::exchanges::publish::{Confirm, check_alarms, confirmed};
use crate::api::user_channel::{Entry, call};
use crate::http::access::Management;
use crate::http::answer::{ApiError, Json, refused_read};
use crate::http::extract::{Name, Shared};

/// The queue.
///
/// COMPAT: queue of the aliveness test: it stays, so that tests at the same time do not disturb each other.
const QUEUE: &str = "aliveness-test";

/// What is sent through it.
const BODY: &[u8] = b"test_message";

/// Properties of a message that has none: no flag is set.
const NO_PROPERTIES: &[u8] = &[0, 0];

/// The path.
pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/api/aliveness-test/{vhost}", get(test))
}

async fn test(
    State(node): State<Shared>,
    Management(caller): Management,
    Name(vhost): Name,
) -> Result<Json, ApiError> {
    let entry = Entry::to_remove(node, caller, vhost)?;
    check_alarms(&entry)?;
    let mut channel = entry.channel().await?;
    let refused = |refusal| refused_read(&refusal);
    let arguments = Table::default();
    let declare = DeclareQueue {
        queue: QUEUE,
        passive: false,
        durable: false,
        exclusive: false,
        auto_delete: false,
        nowait: false,
        arguments: arguments.as_ref(),
    };
    call(&mut *channel, Command::DeclareQueue(declare)).await.map_err(refused)?;
    let content = Content::Assembled {
        properties: Bytes::from_static(NO_PROPERTIES),
        body: Bytes::from_static(BODY),
    };
    let publish = Publish {
        exchange: [].as_slice().into(),
        routing_key: QUEUE.as_bytes().into(),
        mandatory: true,
        content,
    };
    let confirm = confirmed(&mut *channel, publish).await.map_err(refused)?;
    let get = Command::Get { queue: QUEUE, no_ack: true };
    let got = call(&mut *channel, get).await.map_err(refused)?;
    channel.close().await;
    match (confirm, got) {
        (Confirm::Routed, Outgoing::GetOk { .. }) => Ok(Json::ok(json!({"status": "ok"}))),
        _ => Err(ApiError::bad_request(format!("no message came out of the queue {QUEUE}"))),
    }
}

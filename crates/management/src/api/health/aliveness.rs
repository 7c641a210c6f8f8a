//! `GET /api/aliveness-test/{vhost}`: publishes a message and gets it back.

use amqp::table::Table;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::get;
use broker::{Command, Content, DeclareQueue, Outgoing, Publish};
use serde_json::json;

use crate::api::exchanges::publish::{Confirm, check_alarms, confirmed};
use crate::api::user_channel::{UserVhost, call};
use crate::http::access::Management;
use crate::http::answer::{ApiError, Json, refused_read};
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// Name of the queue of the test.
///
/// COMPAT: queue of the aliveness test: the queue is not deleted, so that concurrent tests do not disturb
/// each other.
const QUEUE: &str = "aliveness-test";

/// Body of the test message.
const BODY: &[u8] = b"test_message";

/// Encoded empty properties: no flag is set.
const NO_PROPERTIES: &[u8] = &[0, 0];

/// The path.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/aliveness-test/{vhost}", Scope::Vhost("vhost"), get(test))
}

async fn test(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
) -> Result<Json, ApiError> {
    let user_vhost = UserVhost::for_existing(node, caller, vhost)?;
    check_alarms(&user_vhost)?;
    let mut channel = user_vhost.channel().await?;
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
    call(&mut channel, Command::DeclareQueue(declare)).await.map_err(refused)?;
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
    let (confirm, _) = confirmed(&mut channel, publish).await.map_err(refused)?;
    let get = Command::Get { queue: QUEUE, no_ack: true };
    let got = call(&mut channel, get).await.map_err(refused)?;
    channel.close().await;
    match (confirm, got) {
        (Confirm::Routed, Outgoing::GetOk { .. }) => Ok(Json::ok(json!({"status": "ok"}))),
        _ => Err(ApiError::bad_request(format!("no message came out of the queue {QUEUE}"))),
    }
}

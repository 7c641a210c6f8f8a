//! `/api/vhosts/NAME/barrier`: an entry of the log behind everything that a vhost has confirmed. Leveret's own.

use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use serde_json::json;

use crate::http::access::Administrator;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::http::forward::{json_of, request_of_node, segment};

/// Waits until a majority has all that the vhost has confirmed.
pub(super) async fn barrier(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
) -> Result<Json, ApiError> {
    let index = node.barrier(&name).await?;
    Ok(Json::ok(json!({"name": name, "index": index})))
}

/// The request with which a node asks the leader of a vhost for a barrier.
pub fn barrier_request(vhost: &str) -> Request {
    let path = format!("/api/vhosts/{}/barrier", segment(vhost));
    request_of_node(Method::POST, &path, Vec::new())
}

/// The index in the answer to [`barrier_request`].
///
/// # Errors
/// The reason that the answer tells.
pub async fn barrier_index(answer: Response) -> Result<u64, String> {
    let body = json_of(answer).await.unwrap_or_default();
    body["index"].as_u64().ok_or_else(|| body["reason"].as_str().unwrap_or("no reason").to_owned())
}

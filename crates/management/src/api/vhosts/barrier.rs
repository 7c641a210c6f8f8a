//! `/api/vhosts/NAME/barrier`: an entry of the log behind everything that a vhost has confirmed. Leveret's own.

use axum::extract::State;
use serde_json::json;

use crate::http::access::Administrator;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};

/// Waits until a majority has all that the vhost has confirmed.
pub(super) async fn barrier(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
) -> Result<Json, ApiError> {
    let index = node.barrier(&name).await?;
    Ok(Json::ok(json!({"name": name, "index": index})))
}

//! `/api/reset`: forgets what was sampled, so that charts and rates begin anew. What is counted stays.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::delete;

use crate::http::access::Administrator;
use crate::http::answer::ApiError;
use crate::http::extract::{Name, Shared};

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/api/reset", delete(reset)).route("/api/reset/{node}", delete(reset_node))
}

async fn reset(State(node): State<Shared>, _: Administrator) -> StatusCode {
    node.history().clear();
    StatusCode::NO_CONTENT
}

async fn reset_node(
    State(node): State<Shared>,
    _: Administrator,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    if name != node.snapshot().name {
        return Err(ApiError::not_found());
    }
    node.history().clear();
    Ok(StatusCode::NO_CONTENT)
}

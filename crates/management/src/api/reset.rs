//! `/api/reset`: deletes all samples, so that charts and rates begin anew. Counters keep their values.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::delete;

use crate::http::access::Administrator;
use crate::http::answer::ApiError;
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/reset", Scope::Everywhere, delete(reset)).route(
        "/api/reset/{node}",
        Scope::Node("node"),
        delete(reset_node),
    )
}

async fn reset(State(node): State<SharedNode>, _: Administrator) -> StatusCode {
    node.history().clear();
    StatusCode::NO_CONTENT
}

async fn reset_node(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    if name != node.snapshot().name {
        return Err(ApiError::not_found());
    }
    node.history().clear();
    Ok(StatusCode::NO_CONTENT)
}

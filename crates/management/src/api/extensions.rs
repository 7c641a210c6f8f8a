//! `/api/extensions`: pages that plugins add to RabbitMQ's interface.

use axum::Router;
use axum::routing::get;
use serde_json::json;

use crate::http::access::Management;
use crate::http::answer::Json;
use crate::http::extract::Shared;

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/api/extensions", get(list))
}

/// There are none.
async fn list(_: Management) -> Json {
    Json::ok(json!([]))
}

//! `/api/cluster-name`: what the cluster is called.

use axum::extract::State;
use axum::http::StatusCode;
use serde_json::json;

use super::Shared;
use super::body::Object;
use crate::access::Administrator;
use crate::answer::{ApiError, Json};

/// The global parameter that holds it.
pub(super) const CLUSTER_NAME: &str = "cluster_name";

pub(super) async fn show(State(node): State<Shared>) -> Json {
    Json::ok(json!({"name": node.snapshot().cluster_name}))
}

/// The name is a global parameter, as in RabbitMQ.
pub(super) async fn set(
    State(node): State<Shared>,
    Administrator(_): Administrator,
    body: Object,
) -> Result<StatusCode, ApiError> {
    let [name] = body.texts(["name"])?;
    let set = node.set_global_parameter(CLUSTER_NAME, json!(name)).await;
    set.map_err(ApiError::internal)?;
    Ok(StatusCode::NO_CONTENT)
}

//! `/api/cluster-name`: what the cluster is called.

use axum::extract::State;
use axum::http::StatusCode;
use serde_json::json;

use crate::http::access::Administrator;
use crate::http::answer::{ApiError, Json};
use crate::http::body::Object;
use crate::http::extract::Shared;

/// The global parameter that holds it.
pub(crate) const CLUSTER_NAME: &str = "cluster_name";

pub(crate) async fn show(State(node): State<Shared>) -> Json {
    Json::ok(json!({"name": node.snapshot().cluster_name}))
}

/// The name is a global parameter, as in RabbitMQ.
pub(crate) async fn set(
    State(node): State<Shared>,
    Administrator(_): Administrator,
    body: Object,
) -> Result<StatusCode, ApiError> {
    let [name] = body.texts(["name"])?;
    let set = node.set_global_parameter(CLUSTER_NAME, json!(name)).await;
    set.map_err(ApiError::internal)?;
    Ok(StatusCode::NO_CONTENT)
}

//! `/api/global-parameters`: what tools keep at the node by name.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::json;

use crate::http::access::{Administrator, Policymaker, check_administrator};
use crate::http::answer::{ApiError, Json, made, removed};
use crate::http::body::Object;
use crate::http::extract::{Name, Shared};
use crate::node::Caller;

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/cluster-name", get(show_cluster_name).put(set_cluster_name))
        .route("/api/global-parameters", get(list))
        .route("/api/global-parameters/{name}", get(show).put(set).delete(clear))
}

async fn list(State(node): State<Shared>, Policymaker(_): Policymaker) -> Json {
    let all = node.global_parameters();
    Json::ok(all.iter().map(|(name, value)| json!({"name": name, "value": value})).collect())
}

async fn show(
    State(node): State<Shared>,
    Policymaker(_): Policymaker,
    Name(name): Name,
) -> Result<Json, ApiError> {
    let known = node.global_parameters().into_iter().find(|(known, _)| *known == name);
    let (name, value) = known.ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(json!({"value": value, "name": name})))
}

async fn set(
    State(node): State<Shared>,
    Policymaker(caller): Policymaker,
    Name(name): Name,
    body: Object,
) -> Result<StatusCode, ApiError> {
    may_change(&caller, &name)?;
    let [value] = body.required(["value"])?;
    let is_new =
        node.set_global_parameter(&name, value.clone()).await.map_err(ApiError::internal)?;
    Ok(made(is_new))
}

/// Whether the caller may change a parameter: those of the node are for administrators.
///
/// COMPAT: cluster name as a parameter: RabbitMQ lets a policymaker set it here, though at its own path
/// only an administrator may.
fn may_change(caller: &Caller, name: &str) -> Result<(), ApiError> {
    if name == CLUSTER_NAME { check_administrator(caller) } else { Ok(()) }
}

async fn clear(
    State(node): State<Shared>,
    Policymaker(caller): Policymaker,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    may_change(&caller, &name)?;
    let existed = node.clear_global_parameter(&name).await.map_err(ApiError::internal)?;
    removed(existed)
}

/// The global parameter that holds the name of the cluster.
const CLUSTER_NAME: &str = "cluster_name";

async fn show_cluster_name(State(node): State<Shared>) -> Json {
    Json::ok(json!({"name": node.snapshot().cluster_name}))
}

/// The name is a global parameter, as in RabbitMQ.
async fn set_cluster_name(
    State(node): State<Shared>,
    Administrator(_): Administrator,
    body: Object,
) -> Result<StatusCode, ApiError> {
    let [name] = body.texts(["name"])?;
    let set = node.set_global_parameter(CLUSTER_NAME, json!(name)).await;
    set.map_err(ApiError::internal)?;
    Ok(StatusCode::NO_CONTENT)
}

//! `/api/global-parameters` and `/api/cluster-name`: values that tools store at the node by name.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::json;
use server::requests::Caller;

use crate::api::list_query::{List, Query};
use crate::http::access::{Administrator, Policymaker, check_administrator};
use crate::http::answer::{ApiError, Json, made, removed};
use crate::http::body::Object;
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route(
            "/api/cluster-name",
            (Scope::Here, Scope::Metadata),
            get(show_cluster_name).put(set_cluster_name),
        )
        .route("/api/global-parameters", Scope::Here, get(list))
        .route(
            "/api/global-parameters/{name}",
            (Scope::Here, Scope::Metadata),
            get(show).put(set).delete(clear),
        )
}

/// COMPAT: pages of more lists: RabbitMQ's list of global parameters has no pages.
async fn list(
    State(node): State<SharedNode>,
    Policymaker(_): Policymaker,
    query: Query,
) -> Result<List, ApiError> {
    let all = node.global_parameters();
    query.answer(all.iter().map(|(name, value)| json!({"name": name, "value": value})).collect())
}

async fn show(
    State(node): State<SharedNode>,
    Policymaker(_): Policymaker,
    Name(name): Name,
) -> Result<Json, ApiError> {
    let known = node.global_parameters().into_iter().find(|(known, _)| *known == name);
    let (name, value) = known.ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(json!({"value": value, "name": name})))
}

async fn set(
    State(node): State<SharedNode>,
    Policymaker(caller): Policymaker,
    Name(name): Name,
    body: Object,
) -> Result<StatusCode, ApiError> {
    may_change(&caller, &name)?;
    let [value] = body.required(["value"])?;
    Ok(made(node.set_global_parameter(&name, value.clone()).await?))
}

/// Checks that the caller may change a parameter; the node's own parameters are for administrators.
///
/// COMPAT: cluster name as a parameter: RabbitMQ lets a policymaker set it here, although its own path is
/// for administrators.
fn may_change(caller: &Caller, name: &str) -> Result<(), ApiError> {
    if name == CLUSTER_NAME { check_administrator(caller) } else { Ok(()) }
}

async fn clear(
    State(node): State<SharedNode>,
    Policymaker(caller): Policymaker,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    may_change(&caller, &name)?;
    removed(node.clear_global_parameter(&name).await?)
}

/// The global parameter that holds the name of the cluster.
const CLUSTER_NAME: &str = "cluster_name";

async fn show_cluster_name(State(node): State<SharedNode>) -> Json {
    Json::ok(json!({"name": node.snapshot().cluster_name}))
}

/// As in RabbitMQ, the name is a global parameter.
async fn set_cluster_name(
    State(node): State<SharedNode>,
    Administrator(_): Administrator,
    body: Object,
) -> Result<StatusCode, ApiError> {
    let [name] = body.texts(["name"])?;
    node.set_global_parameter(CLUSTER_NAME, json!(name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

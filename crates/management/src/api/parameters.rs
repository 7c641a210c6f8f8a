//! `/api/parameters`: runtime parameters of vhosts. The component `operator_policy` is there, which is
//! another way to operator policies; `policy` can be looked at.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::get;
use broker::{Policy, PolicyKind};
use serde_json::{Value, json};

use super::body::Object;
use super::policies::check_entry;
use super::{Name, NameInVhost, Shared};
use crate::access::{Caller, Policymaker};
use crate::answer::{ApiError, Json};
use crate::policy_json::{parameter_from_json, policy_to_json};

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/parameters", get(list))
        .route("/api/parameters/{component}", get(list_of_component))
        .route("/api/parameters/{component}/{vhost}", get(list_of_vhost))
        .route("/api/parameters/{component}/{vhost}/{name}", get(show).put(set).delete(clear))
}

/// What policies are called here.
const POLICY: &str = "policy";
const OPERATOR_POLICY: &str = "operator_policy";

/// The kind of policies that a component is.
fn kind(component: &str) -> Option<PolicyKind> {
    match component {
        POLICY => Some(PolicyKind::User),
        OPERATOR_POLICY => Some(PolicyKind::Operator),
        _ => None,
    }
}

/// Three names in a path, decoded.
struct Place {
    component: String,
    vhost: String,
    name: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Place {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<(String, String, String)>::from_request_parts(parts, state).await {
            Ok(Path((component, vhost, name))) => Ok(Self { component, vhost, name }),
            Err(_) => Err(ApiError::not_found()),
        }
    }
}

/// All but policies, which have paths of their own, as in RabbitMQ.
async fn list(State(node): State<Shared>, Policymaker(caller): Policymaker) -> Json {
    Json::ok(everywhere(&node, &caller, OPERATOR_POLICY))
}

async fn list_of_component(
    State(node): State<Shared>,
    Policymaker(caller): Policymaker,
    Name(component): Name,
) -> Json {
    Json::ok(everywhere(&node, &caller, &component))
}

fn everywhere(node: &Shared, caller: &Caller, component: &str) -> Value {
    let entered = node.vhost_names().into_iter().filter(|vhost| caller.looks_into(vhost));
    // A vhost that has gone since has none.
    entered.flat_map(|vhost| of_vhost(node, component, &vhost).unwrap_or_default()).collect()
}

async fn list_of_vhost(
    State(node): State<Shared>,
    Policymaker(caller): Policymaker,
    NameInVhost { vhost: component, name: vhost }: NameInVhost,
) -> Result<Json, ApiError> {
    let parameters = of_vhost(&node, &component, &vhost).ok_or_else(ApiError::not_found)?;
    check_entry(&caller, &vhost)?;
    Ok(Json::ok(Value::Array(parameters)))
}

/// None if there is no such vhost.
fn of_vhost(node: &Shared, component: &str, vhost: &str) -> Option<Vec<Value>> {
    let kind_or_any = kind(component).unwrap_or(PolicyKind::Operator);
    let policies = node.policies(vhost, kind_or_any)?;
    let known = policies.iter().filter(|_| kind(component).is_some());
    Some(known.map(|policy| shown(component, vhost, policy)).collect())
}

async fn show(
    State(node): State<Shared>,
    Policymaker(caller): Policymaker,
    Place { component, vhost, name }: Place,
) -> Result<Json, ApiError> {
    let kind_or_any = kind(&component).unwrap_or(PolicyKind::Operator);
    let policies = node.policies(&vhost, kind_or_any).ok_or_else(ApiError::not_found)?;
    check_entry(&caller, &vhost)?;
    let known = policies.iter().filter(|_| kind(&component).is_some());
    let policy = known.into_iter().find(|policy| *policy.name == *name);
    Ok(Json::ok(shown(&component, &vhost, policy.ok_or_else(ApiError::not_found)?)))
}

fn shown(component: &str, vhost: &str, policy: &Policy) -> Value {
    let mut value = policy_to_json(policy);
    let name = value.as_object_mut().and_then(|value| value.remove("name"));
    json!({"value": value, "vhost": vhost, "component": component, "name": name})
}

async fn set(
    State(node): State<Shared>,
    Policymaker(caller): Policymaker,
    Place { component, vhost, name }: Place,
    body: Object,
) -> Result<StatusCode, ApiError> {
    if node.policies(&vhost, PolicyKind::Operator).is_none() {
        return Err(ApiError::no_such_vhost());
    }
    check_entry(&caller, &vhost)?;
    let [value] = body.required(["value"])?;
    check_component(&caller, &component)?;
    let policy = parameter_from_json(&name, value, PolicyKind::Operator)
        .map_err(|problem| ApiError::bad_request(problem.to_string()))?;
    let is_new = node.set_policy(&vhost, PolicyKind::Operator, policy).await;
    match is_new.ok_or_else(ApiError::no_such_vhost)? {
        true => Ok(StatusCode::CREATED),
        false => Ok(StatusCode::NO_CONTENT),
    }
}

async fn clear(
    State(node): State<Shared>,
    Policymaker(caller): Policymaker,
    Place { component, vhost, name }: Place,
) -> Result<StatusCode, ApiError> {
    if kind(&component).is_none() || node.policies(&vhost, PolicyKind::Operator).is_none() {
        return Err(ApiError::not_found());
    }
    check_entry(&caller, &vhost)?;
    check_component(&caller, &component)?;
    match node.clear_policy(&vhost, PolicyKind::Operator, &name).await {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::not_found()),
    }
}

/// Whether parameters of this component may be changed here, by him.
///
/// COMPAT: operator policies as parameters: RabbitMQ lets a policymaker change them here, though at
/// their own paths only an administrator may.
fn check_component(caller: &Arc<Caller>, component: &str) -> Result<(), ApiError> {
    match kind(component) {
        Some(PolicyKind::Operator) => caller.must_be_administrator(),
        Some(PolicyKind::User) => {
            Err(ApiError::bad_request("policies may not be set using this method"))
        }
        None => {
            let reason = format!("Validation failed\n\ncomponent {component} not found\n");
            Err(ApiError::bad_request(reason))
        }
    }
}

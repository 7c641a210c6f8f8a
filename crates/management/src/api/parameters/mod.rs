//! `/api/parameters`: runtime parameters of vhosts. The components `operator_policy` and `vhost-limits`
//! are there, which are other ways to operator policies and to limits; `policy` can be looked at.

mod global_parameters;
mod limits;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::get;
use broker::{Policy, PolicyKind};
use serde_json::{Value, json};
use server::json::limits::{limits_from_json, limits_to_json};
use server::json::policy::{parameter_from_json, policy_to_json};
use server::requests::{Caller, VhostLimit};

use crate::api::list_query::{List, Query};
use crate::api::policies::check_entry;
use crate::http::access::{Policymaker, check_administrator};
use crate::http::answer::{ApiError, Json, made, removed};
use crate::http::body::Object;
use crate::http::extract::{Name, NameInVhost, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::{Scope, Scopes, VHOST_LIMITS};

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/parameters", Scope::List(FOUND_BY), get(list))
        .route("/api/parameters/{component}", Scope::List(FOUND_BY), get(list_of_component))
        .route("/api/parameters/{component}/{vhost}", Scope::Vhost("vhost"), get(list_of_vhost))
        .route(
            "/api/parameters/{component}/{vhost}/{name}",
            Scopes::Parameter,
            get(show).put(set).delete(clear),
        )
        .merge(global_parameters::routes())
        .merge(limits::routes())
}

/// Components that are policies.
const POLICY: &str = "policy";
const OPERATOR_POLICY: &str = "operator_policy";
/// The name of the only parameter that is a limit of vhosts.
const LIMITS: &str = "limits";

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

/// The fields that a filter looks into.
///
/// COMPAT: pages of more lists: RabbitMQ's lists of parameters have no pages.
const FOUND_BY: &[&str] = &["name", "component", "vhost"];

/// All but policies, which have paths of their own, as in RabbitMQ.
async fn list(
    State(node): State<SharedNode>,
    Policymaker(caller): Policymaker,
    query: Query,
) -> Result<List, ApiError> {
    let components = [OPERATOR_POLICY, VHOST_LIMITS].into_iter();
    let all = components.flat_map(|component| everywhere(&node, &caller, component));
    query.answer_found_by(all.collect(), FOUND_BY)
}

async fn list_of_component(
    State(node): State<SharedNode>,
    Policymaker(caller): Policymaker,
    Name(component): Name,
    query: Query,
) -> Result<List, ApiError> {
    query.answer_found_by(everywhere(&node, &caller, &component), FOUND_BY)
}

fn everywhere(node: &SharedNode, caller: &Caller, component: &str) -> Vec<Value> {
    let entered = node.vhost_names().into_iter().filter(|vhost| caller.can_enter(vhost));
    // A vhost deleted meanwhile has none.
    entered.flat_map(|vhost| of_vhost(node, component, &vhost).unwrap_or_default()).collect()
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    Policymaker(caller): Policymaker,
    NameInVhost { vhost: component, name: vhost }: NameInVhost,
    query: Query,
) -> Result<List, ApiError> {
    let parameters = of_vhost(&node, &component, &vhost).ok_or_else(ApiError::not_found)?;
    check_entry(&caller, &vhost)?;
    query.answer_found_by(parameters, FOUND_BY)
}

/// The parameters of a component in a vhost; none without such a vhost.
fn of_vhost(node: &SharedNode, component: &str, vhost: &str) -> Option<Vec<Value>> {
    if component == VHOST_LIMITS {
        let limits = node.vhost_settings(vhost)?.limits;
        return Some(limits_parameter(vhost, &limits).into_iter().collect());
    }
    let kind_or_any = kind(component).unwrap_or(PolicyKind::Operator);
    let policies = node.policies(vhost, kind_or_any)?;
    let known = policies.iter().filter(|_| kind(component).is_some());
    Some(known.map(|policy| to_json(component, vhost, policy)).collect())
}

async fn show(
    State(node): State<SharedNode>,
    Policymaker(caller): Policymaker,
    Place { component, vhost, name }: Place,
) -> Result<Json, ApiError> {
    let parameters = of_vhost(&node, &component, &vhost).ok_or_else(ApiError::not_found)?;
    check_entry(&caller, &vhost)?;
    let parameter = parameters.into_iter().find(|parameter| parameter["name"] == *name);
    Ok(Json::ok(parameter.ok_or_else(ApiError::not_found)?))
}

/// The limits of a vhost as a parameter; none without limits.
fn limits_parameter(vhost: &str, limits: &BTreeMap<VhostLimit, i64>) -> Option<Value> {
    let value = limits_to_json(limits);
    let parameter =
        json!({"value": value, "vhost": vhost, "component": VHOST_LIMITS, "name": LIMITS});
    (!limits.is_empty()).then_some(parameter)
}

fn to_json(component: &str, vhost: &str, policy: &Policy) -> Value {
    let mut value = policy_to_json(policy);
    let name = value.as_object_mut().and_then(|value| value.remove("name"));
    json!({"value": value, "vhost": vhost, "component": component, "name": name})
}

async fn set(
    State(node): State<SharedNode>,
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
    if component == VHOST_LIMITS {
        return set_limits(&node, &vhost, &name, value).await;
    }
    let policy = parameter_from_json(&name, value, PolicyKind::Operator)
        .map_err(|problem| ApiError::bad_request(problem.to_string()))?;
    Ok(made(node.set_policy(&vhost, PolicyKind::Operator, policy).await?))
}

/// COMPAT: limits of a vhost as parameters: RabbitMQ answers 500 to a name other than `limits`, but stores
/// the limits under it.
async fn set_limits(
    node: &SharedNode,
    vhost: &str,
    name: &str,
    value: &Value,
) -> Result<StatusCode, ApiError> {
    let invalid = |problem| ApiError::bad_request(format!("Validation failed\n\n{problem}\n"));
    let object = value.as_object();
    let object = object.ok_or_else(|| invalid(format!("limits not a list {value}")))?;
    if name != LIMITS {
        return Err(invalid(format!("{VHOST_LIMITS} must have the name {LIMITS}")));
    }
    let limits = limits_from_json(object, "limits").map_err(invalid)?;
    let is_new = node.vhost_settings(vhost).is_some_and(|settings| settings.limits.is_empty());
    node.replace_vhost_limits(vhost, limits).await?;
    Ok(made(is_new))
}

async fn clear(
    State(node): State<SharedNode>,
    Policymaker(caller): Policymaker,
    Place { component, vhost, name }: Place,
) -> Result<StatusCode, ApiError> {
    let is_known = kind(&component).is_some() || component == VHOST_LIMITS;
    if !is_known || node.policies(&vhost, PolicyKind::Operator).is_none() {
        return Err(ApiError::not_found());
    }
    check_entry(&caller, &vhost)?;
    check_component(&caller, &component)?;
    if component == VHOST_LIMITS {
        let has = node.vhost_settings(&vhost).is_some_and(|known| !known.limits.is_empty());
        if !has || name != LIMITS {
            return Err(ApiError::not_found());
        }
        node.replace_vhost_limits(&vhost, BTreeMap::new()).await?;
        return Ok(StatusCode::NO_CONTENT);
    }
    removed(node.clear_policy(&vhost, PolicyKind::Operator, &name).await?)
}

/// Checks that the caller may change parameters of a component here.
///
/// COMPAT: operator policies as parameters: RabbitMQ lets a policymaker change operator policies and limits
/// here, although their own paths are for administrators.
fn check_component(caller: &Arc<Caller>, component: &str) -> Result<(), ApiError> {
    match kind(component) {
        None if component == VHOST_LIMITS => check_administrator(caller),
        Some(PolicyKind::Operator) => check_administrator(caller),
        Some(PolicyKind::User) => {
            Err(ApiError::bad_request("policies may not be set using this method"))
        }
        None => {
            let reason = format!("Validation failed\n\ncomponent {component} not found\n");
            Err(ApiError::bad_request(reason))
        }
    }
}

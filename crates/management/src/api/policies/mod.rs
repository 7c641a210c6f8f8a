//! `/api/policies` and `/api/operator-policies`: settings for many queues and exchanges.
//!
//! A change is answered when it is in force for all queues and exchanges, and on disk.

mod dry_run;
mod explain;

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use broker::PolicyKind;
use serde_json::Value;
use server::json::policy::{policy_from_json, policy_of_vhost_to_json};
use server::requests::Caller;

use crate::api::list_query::{List, Query};
use crate::http::access::{Administrator, Management, Policymaker};
use crate::http::answer::{ApiError, Json, made, removed};
use crate::http::body::Object;
use crate::http::extract::{Name, NameInVhost, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The paths of both kinds, which differ in the tag that single policies require.
pub(super) fn routes() -> Routes {
    use PolicyKind::{Operator, User};

    Routes::new()
        .route(
            "/api/policies",
            Scope::List(FOUND_BY),
            get(|node, caller, query| list(node, caller, query, User)),
        )
        .route(
            "/api/policies/{vhost}",
            Scope::Vhost("vhost"),
            get(|node, caller, vhost, query| list_of_vhost(node, caller, vhost, query, User)),
        )
        .route(
            "/api/policies/{vhost}/{name}",
            Scope::Vhost("vhost"),
            get(|node, Policymaker(caller), at| show(node, caller, at, User))
                .put(|node, Policymaker(caller), at, body| set(node, caller, at, body, User))
                .delete(|node, Policymaker(caller), at| clear(node, caller, at, User)),
        )
        .route(
            "/api/operator-policies",
            Scope::List(FOUND_BY),
            get(|node, caller, query| list(node, caller, query, Operator)),
        )
        .route(
            "/api/operator-policies/{vhost}",
            Scope::Vhost("vhost"),
            get(|node, caller, vhost, query| list_of_vhost(node, caller, vhost, query, Operator)),
        )
        .route(
            "/api/operator-policies/{vhost}/{name}",
            Scope::Vhost("vhost"),
            get(|node, Administrator(caller), at| show(node, caller, at, Operator))
                .put(|node, Administrator(caller), at, body| set(node, caller, at, body, Operator))
                .delete(|node, Administrator(caller), at| clear(node, caller, at, Operator)),
        )
        .merge(dry_run::routes())
        .merge(explain::routes())
}

/// The fields that a filter looks into.
///
/// COMPAT: pages of more lists: RabbitMQ's lists of policies have no pages.
const FOUND_BY: &[&str] = &["name", "pattern", "vhost"];

/// The policies of all vhosts in which the user has permissions.
async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
    kind: PolicyKind,
) -> Result<List, ApiError> {
    let entered = node.vhost_names().into_iter().filter(|vhost| caller.can_enter(vhost));
    // A vhost deleted meanwhile has none.
    let all = entered.flat_map(|vhost| in_vhost(&node, &vhost, kind).unwrap_or_default());
    query.answer_found_by(all.collect(), FOUND_BY)
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
    kind: PolicyKind,
) -> Result<List, ApiError> {
    let policies = in_vhost(&node, &vhost, kind).ok_or_else(ApiError::not_found)?;
    check_entry(&caller, &vhost)?;
    query.answer_found_by(policies, FOUND_BY)
}

fn in_vhost(node: &SharedNode, vhost: &str, kind: PolicyKind) -> Option<Vec<Value>> {
    let policies = node.policies(vhost, kind)?;
    Some(policies.iter().map(|policy| policy_of_vhost_to_json(vhost, policy)).collect())
}

async fn show(
    State(node): State<SharedNode>,
    caller: Arc<Caller>,
    NameInVhost { vhost, name }: NameInVhost,
    kind: PolicyKind,
) -> Result<Json, ApiError> {
    let policies = node.policies(&vhost, kind).ok_or_else(ApiError::not_found)?;
    check_entry(&caller, &vhost)?;
    let policy = policies.iter().find(|policy| *policy.name == *name);
    Ok(Json::ok(policy_of_vhost_to_json(&vhost, policy.ok_or_else(ApiError::not_found)?)))
}

async fn set(
    State(node): State<SharedNode>,
    caller: Arc<Caller>,
    NameInVhost { vhost, name }: NameInVhost,
    body: Object,
    kind: PolicyKind,
) -> Result<StatusCode, ApiError> {
    if node.policies(&vhost, kind).is_none() {
        return Err(ApiError::no_such_vhost());
    }
    check_entry(&caller, &vhost)?;
    let policy = policy_from_json(&name, &body.0, kind)
        .map_err(|problem| ApiError::bad_request(problem.to_string()))?;
    Ok(made(node.set_policy(&vhost, kind, policy).await?))
}

async fn clear(
    State(node): State<SharedNode>,
    caller: Arc<Caller>,
    NameInVhost { vhost, name }: NameInVhost,
    kind: PolicyKind,
) -> Result<StatusCode, ApiError> {
    if node.policies(&vhost, kind).is_none() {
        return Err(ApiError::not_found());
    }
    check_entry(&caller, &vhost)?;
    removed(node.clear_policy(&vhost, kind, &name).await?)
}

/// Refuses a vhost in which the user has no permissions, in RabbitMQ's words.
pub(crate) fn check_entry(caller: &Caller, vhost: &str) -> Result<(), ApiError> {
    match caller.can_enter(vhost) {
        true => Ok(()),
        false => Err(ApiError::no_entry()),
    }
}

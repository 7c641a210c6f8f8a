//! `/api/queues/VHOST/NAME/explain`, also of exchanges: the settings in force, their sources, and the values
//! that they override. RabbitMQ has no such endpoint.

use axum::extract::State;
use axum::routing::get;
use broker::{ExplainedKey, OverriddenValue, PolicyKind};
use serde_json::{Value, json};
use server::json::policy::value_to_json;
use server::requests::Explained;

use crate::http::access::{Management, check_can_enter};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{NameInVhost, SharedNode, exchange_name};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/exchanges/{vhost}/{name}/explain", Scope::Vhost("vhost"), get(exchange))
        .route("/api/queues/{vhost}/{name}/explain", Scope::Vhost("vhost"), get(queue))
}

async fn queue(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let explained = node.explain_queue(&vhost, &name).ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(to_json("queue", &vhost, &name, &explained)))
}

async fn exchange(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let name = exchange_name(&name);
    let explained = node.explain_exchange(&vhost, name).ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(to_json("exchange", &vhost, name, &explained)))
}

fn to_json(what: &str, vhost: &str, name: &str, explained: &Explained) -> Value {
    let Explained { kind, explanation } = explained;
    let policy = |kind| explanation.policies.of_kind(kind).map(|policy| &*policy.name);
    json!({
        what: name,
        "vhost": vhost,
        "type": kind,
        "policy": policy(PolicyKind::User),
        "operator_policy": policy(PolicyKind::Operator),
        "keys": explanation.keys.iter().map(key).collect::<Vec<Value>>(),
    })
}

fn key(explained: &ExplainedKey) -> Value {
    json!({
        "key": explained.key.as_str(),
        "value": explained.value.as_ref().map(value_to_json),
        "source": explained.source.as_str(),
        "source_name": explained.source_name.as_deref(),
        "lost": explained.lost.iter().map(lost).collect::<Vec<Value>>(),
    })
}

fn lost(lost: &OverriddenValue) -> Value {
    json!({
        "source": lost.source.as_str(),
        "source_name": lost.source_name.as_deref(),
        "value": value_to_json(&lost.value),
        "why": lost.why,
    })
}

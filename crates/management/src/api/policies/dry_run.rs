//! `/api/policies/VHOST/NAME/dry-run` and the same of operator policies: what a policy would do now,
//! set, replaced or removed, without doing it. RabbitMQ has no such thing.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use broker::{
    DryRun, ExchangeDryRun, Fate, PolicyChange, PolicyKind, PolicyValue, QueueDryRun,
    SettingChange, Span,
};
use serde_json::{Map, Value, json};

use crate::api::policies::check_entry;
use crate::http::access::{Administrator, Policymaker};
use crate::http::answer::{ApiError, Json};
use crate::http::body::Object;
use crate::http::extract::{Body, NameInVhost, Shared};
use crate::json::policy::{json_value, policy_from_json};
use crate::node::Caller;

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    use PolicyKind::{Operator, User};

    Router::new()
        .route(
            "/api/policies/{vhost}/{name}/dry-run",
            post(|node, Policymaker(caller), at, body| dry_run(node, caller, at, body, User)),
        )
        .route(
            "/api/operator-policies/{vhost}/{name}/dry-run",
            post(|node, Administrator(caller), at, body| dry_run(node, caller, at, body, Operator)),
        )
}

async fn dry_run(
    State(node): State<Shared>,
    caller: Arc<Caller>,
    NameInVhost { vhost, name }: NameInVhost,
    Body(body): Body,
    kind: PolicyKind,
) -> Result<Json, ApiError> {
    if node.policies(&vhost, kind).is_none() {
        return Err(ApiError::no_such_vhost());
    }
    check_entry(&caller, &vhost)?;
    let Object(body) = Object::parse(&body)?;
    let change = change(&name, &body, kind)?;
    let told = node.dry_run(&vhost, kind, change).ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(shown(&told)))
}

/// A policy, as it is set; or `{"delete": true}`.
fn change(
    name: &str,
    body: &Map<String, Value>,
    kind: PolicyKind,
) -> Result<PolicyChange, ApiError> {
    match body.get("delete") {
        None | Some(Value::Bool(false)) => {
            let policy = policy_from_json(name, body, kind);
            let policy = policy.map_err(|problem| ApiError::bad_request(problem.to_string()))?;
            Ok(PolicyChange::Set(policy))
        }
        Some(Value::Bool(true)) => Ok(PolicyChange::Clear(name.into())),
        Some(_) => Err(ApiError::bad_request("'delete' must be true or false")),
    }
}

fn shown(told: &DryRun) -> Value {
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    put("queues_matched", json!(told.queues_matched));
    put("queues_changed", json!(told.queues.len()));
    put("exchanges_changed", json!(told.exchanges.len()));
    put("exact", json!(told.queues.iter().all(is_exact)));
    let mut put_span = |name: &str, span| put_span(&mut shown, name, span);
    put_span("messages_expired", told.expired());
    put_span("messages_evicted", told.evicted());
    put_span("messages_dead_lettered", told.leaving(Fate::DeadLettered));
    put_span("messages_dropped", told.leaving(Fate::Dropped));
    put_span("messages_kept", told.leaving(Fate::Kept));
    shown.insert("queues".to_owned(), told.queues.iter().map(queue).collect());
    shown.insert("exchanges".to_owned(), told.exchanges.iter().map(exchange).collect());
    Value::Object(shown)
}

fn is_exact(queue: &QueueDryRun) -> bool {
    queue.leaving.expired.is_exact() && queue.leaving.evicted.is_exact()
}

/// The number; if it is not known, the least it can be, and beside it the most.
fn put_span(object: &mut Map<String, Value>, name: &str, span: Span) {
    object.insert(name.to_owned(), json!(span.least));
    if !span.is_exact() {
        object.insert(format!("{name}_at_most"), json!(span.most));
    }
}

fn queue(queue: &QueueDryRun) -> Value {
    let leaving = queue.leaving;
    let all = Span {
        least: leaving.expired.least + leaving.evicted.least,
        most: leaving.expired.most + leaving.evicted.most,
    };
    let of_fate = |fate| if queue.fate == fate { all } else { Span::default() };
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    put("name", json!(*queue.name));
    put("type", json!(queue.kind.as_str()));
    put("before", side(&queue.changes, |change| change.before.as_ref()));
    put("after", side(&queue.changes, |change| change.after.as_ref()));
    put("messages", json!(queue.messages));
    put("exact", json!(is_exact(queue)));
    put("deleted_in_ms", json!(queue.deleted_in_ms));
    put_span(&mut shown, "expired", leaving.expired);
    put_span(&mut shown, "evicted", leaving.evicted);
    put_span(&mut shown, "dead_lettered", of_fate(Fate::DeadLettered));
    put_span(&mut shown, "dropped", of_fate(Fate::Dropped));
    put_span(&mut shown, "kept", of_fate(Fate::Kept));
    Value::Object(shown)
}

fn side(changes: &[SettingChange], of: impl Fn(&SettingChange) -> Option<&PolicyValue>) -> Value {
    let values = changes
        .iter()
        .map(|change| (change.key.as_str().to_owned(), of(change).map_or(Value::Null, json_value)));
    Value::Object(values.collect())
}

fn exchange(exchange: &ExchangeDryRun) -> Value {
    let key = "alternate-exchange";
    json!({
        "name": *exchange.name,
        "before": {key: exchange.before.as_deref()},
        "after": {key: exchange.after.as_deref()},
    })
}

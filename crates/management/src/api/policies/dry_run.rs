//! `/api/policies/VHOST/NAME/dry-run`, also of operator policies: the effects of setting, replacing or
//! deleting a policy, without the change. RabbitMQ has no such endpoint.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::post;
use broker::{
    ExchangeDryRun, Fate, PolicyChange, PolicyKind, PolicyValue, QueueDryRun, SettingChange, Span,
};
use serde_json::{Map, Value, json};
use server::json::policy::{policy_from_json, priority_to_json, value_to_json};
use server::requests::{Caller, Outranking, PolicyDryRun};

use crate::api::policies::check_entry;
use crate::http::access::{Administrator, Policymaker};
use crate::http::answer::{ApiError, Json};
use crate::http::body::Object;
use crate::http::extract::{Body, NameInVhost, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The paths.
pub(super) fn routes() -> Routes {
    use PolicyKind::{Operator, User};

    Routes::new()
        .route(
            "/api/policies/{vhost}/{name}/dry-run",
            Scope::Vhost("vhost"),
            post(|node, Policymaker(caller), at, body| dry_run(node, caller, at, body, User)),
        )
        .route(
            "/api/operator-policies/{vhost}/{name}/dry-run",
            Scope::Vhost("vhost"),
            post(|node, Administrator(caller), at, body| dry_run(node, caller, at, body, Operator)),
        )
}

async fn dry_run(
    State(node): State<SharedNode>,
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
    let dry_run = node.dry_run(&vhost, kind, change).ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(to_json(&dry_run)))
}

/// Parses a policy as for setting it, or `{"delete": true}`.
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

fn to_json(dry_run: &PolicyDryRun) -> Value {
    let PolicyDryRun { effects: dry_run, matches } = dry_run;
    let mut json = Map::new();
    let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
    put("queues_matched_by_pattern", json!(matches.queues));
    put("queues_excluded", json!(matches.excluded));
    put("queues_matched", json!(dry_run.queues_matched));
    put("outranked_by", matches.outranked_by.iter().map(outranking).collect());
    put("queues_changed", json!(dry_run.queues.len()));
    put("exchanges_changed", json!(dry_run.exchanges.len()));
    put("exact", json!(dry_run.queues.iter().all(is_exact)));
    let mut put_span = |name: &str, span| put_span(&mut json, name, span);
    put_span("messages_expired", dry_run.expired());
    put_span("messages_evicted", dry_run.evicted());
    put_span("messages_dead_lettered", dry_run.leaving(Fate::DeadLettered));
    put_span("messages_dropped", dry_run.leaving(Fate::Dropped));
    put_span("messages_kept", dry_run.leaving(Fate::Kept));
    json.insert("queues".to_owned(), dry_run.queues.iter().map(queue).collect());
    json.insert("exchanges".to_owned(), dry_run.exchanges.iter().map(exchange).collect());
    Value::Object(json)
}

fn outranking(policy: &Outranking) -> Value {
    json!({
        "name": *policy.name,
        "priority": priority_to_json(policy.priority),
        "queues": policy.queues,
    })
}

fn is_exact(queue: &QueueDryRun) -> bool {
    queue.leaving.expired.is_exact() && queue.leaving.evicted.is_exact()
}

/// Puts a number. If only bounds are known, puts the lower bound, and the upper bound beside it.
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
    let mut json = Map::new();
    let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
    put("name", json!(*queue.name));
    put("type", json!(queue.kind.as_str()));
    put("before", side(&queue.changes, |change| change.before.as_ref()));
    put("after", side(&queue.changes, |change| change.after.as_ref()));
    put("messages", json!(queue.messages));
    put("exact", json!(is_exact(queue)));
    put("deleted_in_ms", json!(queue.deleted_in_ms));
    put_span(&mut json, "expired", leaving.expired);
    put_span(&mut json, "evicted", leaving.evicted);
    put_span(&mut json, "dead_lettered", of_fate(Fate::DeadLettered));
    put_span(&mut json, "dropped", of_fate(Fate::Dropped));
    put_span(&mut json, "kept", of_fate(Fate::Kept));
    Value::Object(json)
}

fn side(changes: &[SettingChange], of: impl Fn(&SettingChange) -> Option<&PolicyValue>) -> Value {
    let values = changes.iter().map(|change| {
        (change.key.as_str().to_owned(), of(change).map_or(Value::Null, value_to_json))
    });
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

//! `/api/vhosts`: the vhosts with what is in them.

pub(crate) mod stats;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::api::list_query::Query;
use crate::api::vhosts::stats::VhostStats;
use crate::http::access::{Administrator, Management};
use crate::http::answer::{ApiError, Json, made};
use crate::http::body::Object;
use crate::http::extract::{Name, NameInVhost, Shared};
use crate::json::vhost::{vhost_metadata_from_json, vhost_metadata_to_json};
use crate::node::{ChangeError, VhostChange, VhostSettings};
use crate::snapshot::fields::StatsKind;

/// Bytes of a vhost's name: AMQP has room for no more.
const NAME_BYTES_MAX: usize = 255;

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/vhosts", get(list))
        .route("/api/vhosts/{name}", get(show).put(put).delete(delete))
        .route("/api/vhosts/{name}/start/{node}", post(start))
        .route("/api/vhosts/{name}/deletion/protection", post(protect).delete(unprotect))
}

/// Those that the user may enter; a monitor sees all.
async fn list(
    State(node): State<Shared>,
    Management(caller): Management,
    query: Query,
) -> Result<Json, ApiError> {
    let seen = node.vhost_names().into_iter().filter(|vhost| caller.can_list(vhost));
    // One that has gone since is not shown.
    query.answer(seen.filter_map(|vhost| shown(&node, &vhost, &query)).collect())
}

async fn show(
    State(node): State<Shared>,
    _: Administrator,
    Name(name): Name,
    query: Query,
) -> Result<Json, ApiError> {
    let vhost = shown(&node, &name, &query).ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(query.chosen(vhost)))
}

async fn put(
    State(node): State<Shared>,
    Administrator(caller): Administrator,
    Name(name): Name,
    body: Object,
) -> Result<StatusCode, ApiError> {
    if name.len() > NAME_BYTES_MAX {
        let reason = format!("the name of a vhost has at most {NAME_BYTES_MAX} bytes");
        return Err(ApiError::bad_request(reason));
    }
    let change = change(&body)?;
    Ok(made(node.put_vhost(&name, change, &caller.name).await?))
}

/// What a body changes. Of description, tags and default queue type those that are not named get their
/// defaults, as in RabbitMQ.
///
/// COMPAT: vhosts without metadata: a body that names none of them leaves them as they are, so that who
/// only makes sure that a vhost is there, or traces it, changes nothing else.
fn change(body: &Object) -> Result<VhostChange, ApiError> {
    let tracing = match body.get("tracing") {
        None => None,
        Some(Value::Bool(tracing)) => Some(*tracing),
        Some(Value::String(text)) if text == "true" => Some(true),
        Some(Value::String(text)) if text == "false" => Some(false),
        Some(other) => return Err(ApiError::bad_request(format!("not_boolean: {other}"))),
    };
    let keys = ["description", "tags", "default_queue_type"];
    let metadata = keys.iter().any(|key| body.get(key).is_some());
    let metadata = metadata.then(|| vhost_metadata_from_json(&body.0)).transpose();
    let metadata = metadata.map_err(ApiError::bad_request)?;
    Ok(VhostChange { metadata, tracing, protected_from_deletion: None })
}

async fn delete(
    State(node): State<Shared>,
    _: Administrator,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    let deleted = node.delete_vhost(&name).await;
    deleted.map_err(|unchanged| {
        if unchanged == ChangeError::NoSuchVhost { ApiError::not_found() } else { unchanged.into() }
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// Every vhost runs already.
async fn start(
    State(node): State<Shared>,
    _: Administrator,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<StatusCode, ApiError> {
    if node.snapshot().name != name {
        return Err(ApiError::bad_request(format!("Unknown node: {name}")));
    }
    match node.vhost_settings(&vhost) {
        Some(_) => Ok(StatusCode::NO_CONTENT),
        None => {
            let problem = format!("{{no_such_vhost,<<\"{vhost}\">>}}");
            let reason = format!("Request to node {name} failed with {problem}");
            Err(ApiError::bad_request(reason))
        }
    }
}

async fn protect(
    State(node): State<Shared>,
    _: Administrator,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    set_protection(&node, &name, true).await
}

async fn unprotect(
    State(node): State<Shared>,
    _: Administrator,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    set_protection(&node, &name, false).await
}

async fn set_protection(node: &Shared, name: &str, on: bool) -> Result<StatusCode, ApiError> {
    let change = VhostChange { protected_from_deletion: Some(on), ..VhostChange::default() };
    let changed = node.change_vhost(name, change).await;
    match changed {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(ChangeError::NoSuchVhost) if on => {
            let reason = format!(
                "Cannot enable deletion protection of virtual host '{name}' because it does not \
                 exist"
            );
            Err(ApiError::new(StatusCode::NOT_FOUND, "not_found", reason))
        }
        Err(ChangeError::NoSuchVhost) => Err(ApiError::not_found()),
        Err(unchanged) => Err(unchanged.into()),
    }
}

fn shown(node: &Shared, name: &str, query: &Query) -> Option<Value> {
    let settings = node.vhost_settings(name)?;
    let totals = node.vhost_totals(name, None)?;
    let VhostSettings { description, tags, protected_from_deletion, tracing, .. } = &settings;
    let mut shown = json!({
        "name": name,
        "description": description,
        "tags": tags,
        "default_queue_type": settings.default_queue_type.as_str(),
        "metadata": vhost_metadata_to_json(&settings),
        "protected_from_deletion": protected_from_deletion.unwrap_or_default(),
        "tracing": tracing,
        "cluster_state": {node.snapshot().name: "running"},
    });
    if let Some(shown) = shown.as_object_mut()
        && !query.disable_stats
    {
        let stats = VhostStats::of_one(node, &totals, &query.ranges);
        stats.put(shown, StatsKind::Data);
        stats.put(shown, StatsKind::Lengths);
        shown.insert("message_stats".to_owned(), stats.object(StatsKind::Messages));
    }
    Some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::VhostMetadata;

    fn read(body: &Value) -> Result<VhostChange, String> {
        let body = Object::parse(body.to_string().as_bytes()).unwrap();
        change(&body).map_err(|error| error.reason().to_owned())
    }

    #[test]
    fn what_is_not_named_gets_its_default_unless_nothing_is_named() {
        assert_eq!(read(&json!({})), Ok(VhostChange::default()));
        let traced = VhostChange { tracing: Some(true), ..VhostChange::default() };
        assert_eq!(read(&json!({"tracing": "true"})), Ok(traced));
        assert_eq!(read(&json!({"tracing": 7})), Err("not_boolean: 7".to_owned()));
        let described = VhostMetadata { description: "d".to_owned(), ..VhostMetadata::default() };
        let change = VhostChange { metadata: Some(described), ..VhostChange::default() };
        assert_eq!(read(&json!({"description": "d", "tags": null})), Ok(change));
    }
}

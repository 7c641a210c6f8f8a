//! `/api/vhosts`: vhosts with their statistics.

pub(crate) mod barrier;
pub(crate) mod stats;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde_json::{Value, json};
use server::json::vhost::{replicas_from_json, vhost_metadata_from_json, vhost_metadata_to_json};
use server::requests::{ChangeError, VhostChange, VhostSettings};
use server::snapshot::fields::StatsKind;

use crate::api::list_query::{List, Query};
use crate::api::vhosts::stats::{VhostStats, schedules};
use crate::http::access::{Administrator, Management};
use crate::http::answer::{ApiError, Json, made};
use crate::http::body::Object;
use crate::http::extract::{Name, NameInVhost, SharedNode};
use crate::http::fields::flag;
use crate::http::routes::Routes;
use crate::http::scope::{NAME, Scope};

/// Maximum length of a vhost's name in AMQP, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/vhosts", Scope::List(NAME), get(list))
        .route(
            "/api/vhosts/{name}",
            (Scope::SettingsOfVhost("name"), Scope::Metadata),
            get(show).put(put).delete(delete),
        )
        .route("/api/vhosts/{name}/start/{node}", Scope::Node("node"), post(start))
        .route("/api/vhosts/{name}/leader", Scope::Vhost("name"), post(transfer))
        .route("/api/vhosts/{name}/barrier", Scope::Vhost("name"), post(barrier::barrier))
        .route(
            "/api/vhosts/{name}/deletion/protection",
            Scope::Metadata,
            post(protect).delete(unprotect),
        )
}

/// The vhosts in which the user has permissions; a monitor sees all.
async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<List, ApiError> {
    let seen = node.vhost_names().into_iter().filter(|vhost| caller.can_list(vhost));
    // A vhost deleted meanwhile is left out.
    query.answer(seen.filter_map(|vhost| to_json(&node, &vhost, &query)).collect())
}

async fn show(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
    query: Query,
) -> Result<Json, ApiError> {
    let vhost = to_json(&node, &name, &query).ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(query.select_columns(vhost)))
}

async fn put(
    State(node): State<SharedNode>,
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

/// The change in a body. As in RabbitMQ, unnamed ones of description, tags and default queue type get their
/// defaults.
///
/// COMPAT: vhosts without metadata: a body that names none of the three leaves them unchanged, so that a
/// client that only ensures that a vhost exists, or traces it, changes nothing else.
fn change(body: &Object) -> Result<VhostChange, ApiError> {
    let tracing = match body.get("tracing") {
        None => None,
        Some(tracing) => Some(flag(tracing)?),
    };
    // Definitions may have it: RabbitMQ wrote it for a vhost without a type.
    if body.get("default_queue_type").is_some_and(|queue_type| queue_type == "") {
        return Err(ApiError::bad_request("default_queue_type must not be an empty string"));
    }
    let keys = ["description", "tags", "default_queue_type"];
    let metadata = keys.iter().any(|key| body.get(key).is_some());
    let metadata = metadata.then(|| vhost_metadata_from_json(&body.0)).transpose();
    let metadata = metadata.map_err(ApiError::bad_request)?;
    let replicas = body.get("replicas").map(replicas_from_json).transpose();
    let replicas = replicas.map_err(ApiError::bad_request)?;
    Ok(VhostChange { metadata, tracing, protected_from_deletion: None, replicas })
}

async fn delete(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    let deleted = node.delete_vhost(&name).await;
    deleted.map_err(|unchanged| {
        if unchanged == ChangeError::NoSuchVhost { ApiError::not_found() } else { unchanged.into() }
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// All vhosts are running; nothing to start.
async fn start(
    State(node): State<SharedNode>,
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
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    set_protection(&node, &name, true).await
}

async fn unprotect(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    set_protection(&node, &name, false).await
}

/// Transfers the lead of a vhost to the node in the body, or to the one that is most up to date. Leveret's own.
async fn transfer(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
    body: Object,
) -> Result<Json, ApiError> {
    let to = match body.get("node") {
        None | Some(Value::Null) => None,
        Some(Value::String(to)) => Some(to.as_str()),
        Some(_) => return Err(ApiError::bad_request("node must be the name of a node")),
    };
    let leader = node.transfer_leader(&name, to).await?;
    Ok(Json::ok(json!({"name": name, "leader": leader})))
}

async fn set_protection(node: &SharedNode, name: &str, on: bool) -> Result<StatusCode, ApiError> {
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

/// Names of the vhosts that are down.
pub(crate) fn down_vhosts(node: &SharedNode) -> impl Iterator<Item = String> {
    let is_down = |name: &String| node.vhost_placement(name).is_some_and(|place| place.is_down);
    node.vhost_names().into_iter().filter(is_down)
}

fn to_json(node: &SharedNode, name: &str, query: &Query) -> Option<Value> {
    let settings = node.vhost_settings(name)?;
    let totals = node.vhost_totals(name, None)?;
    let placement = node.vhost_placement(name)?;
    let VhostSettings { description, tags, protected_from_deletion, tracing, replicas, .. } =
        &settings;
    let mut json = json!({
        "name": name,
        "description": description,
        "tags": tags,
        "default_queue_type": settings.default_queue_type.as_str(),
        "metadata": vhost_metadata_to_json(&settings),
        "protected_from_deletion": protected_from_deletion.unwrap_or_default(),
        "tracing": tracing,
        "replicas": replicas,
        "cluster_state": {node.snapshot().name: if placement.is_down { "stopped" } else { "running" }},
        "leader": placement.leader,
        "members": placement.members,
    });
    if let Some(json) = json.as_object_mut()
        && !query.disable_stats
    {
        let stats = VhostStats::of_one(node, &totals, &query.ranges);
        stats.put(json, StatsKind::Data);
        stats.put(json, StatsKind::Lengths);
        json.insert("message_stats".to_owned(), stats.object(StatsKind::Messages));
        json.insert("schedule_totals".to_owned(), schedules(std::slice::from_ref(&totals)));
    }
    Some(json)
}

#[cfg(test)]
mod tests {
    use server::requests::VhostMetadata;

    use super::*;

    fn read(body: &Value) -> Result<VhostChange, String> {
        let body = Object::parse(body.to_string().as_bytes()).unwrap();
        change(&body).map_err(|error| error.reason().to_owned())
    }

    #[test]
    fn vhost_change_has_defaults_if_a_field_is_named() {
        assert_eq!(read(&json!({})), Ok(VhostChange::default()));
        let traced = VhostChange { tracing: Some(true), ..VhostChange::default() };
        assert_eq!(read(&json!({"tracing": "true"})), Ok(traced));
        assert!(read(&json!({"tracing": 7})).is_err());
        let empty = "default_queue_type must not be an empty string";
        assert_eq!(read(&json!({"default_queue_type": ""})), Err(empty.to_owned()));
        let described = VhostMetadata { description: "d".to_owned(), ..VhostMetadata::default() };
        let change = VhostChange { metadata: Some(described), ..VhostChange::default() };
        assert_eq!(read(&json!({"description": "d", "tags": null})), Ok(change));
        for (json, replicas) in [(json!(3), Some(3)), (json!("1"), Some(1)), (json!(null), None)] {
            let change = VhostChange { replicas: Some(replicas), ..VhostChange::default() };
            assert_eq!(read(&json!({"replicas": json})), Ok(change));
        }
        for wrong in [json!(0), json!(8), json!(-1), json!(1.5), json!("x"), json!(true)] {
            let problem = "replicas should be a number from 1 to 7, or null for all nodes";
            assert_eq!(read(&json!({"replicas": wrong})), Err(problem.to_owned()));
        }
    }
}

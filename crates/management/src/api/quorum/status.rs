//! `/api/queues/quorum/VHOST/QUEUE/status`: the members of a quorum queue, which are the replicas of its vhost. The leader
//! of the vhost answers, and asks the other nodes for theirs.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use broker::QueueType;
use serde_json::{Value, json};

use crate::api::replicas;
use crate::http::access::{Management, check_can_enter};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{NameInVhost, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new().route(
        "/api/queues/quorum/{vhost}/{name}/status",
        Scope::Vhost("vhost"),
        get(status),
    )
}

// COMPAT: members of a queue: those of its vhost.
async fn status(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let (queue, _) = node.queue(&vhost, &name).ok_or_else(ApiError::not_found)?;
    if queue.view.kind != QueueType::Quorum {
        let reason = format!("{}_queue_not_supported", queue.view.kind.as_str());
        let body = json!({"status": "failed", "reason": reason});
        return Ok(Json(StatusCode::SERVICE_UNAVAILABLE, body));
    }
    if !node.is_in_cluster() {
        let only = json!({"node": node.snapshot().name, "state": "leader", "membership": "voter"});
        return Ok(Json::ok(json!([member(&only)])));
    }
    let expected = node.vhost_placement(&vhost).unwrap_or_default().members;
    let mut replicas = replicas::of_cluster(&node).await;
    replicas.retain(|replica| {
        replica.get("vhost").and_then(Value::as_str) == Some(&vhost)
            && !replicas::is_of_metadata(replica)
    });
    let mut connected = node.connected_peers();
    connected.push(node.snapshot().name);
    Ok(Json::ok(members(&replicas, &expected, &connected)))
}

/// All members of a vhost in the order of their nodes: those that are told, and those that are expected.
fn members(replicas: &[Value], expected: &[String], connected: &[String]) -> Value {
    let node = |replica: &Value| replica.get("node").and_then(Value::as_str).map(str::to_owned);
    let mut all: Vec<Value> = replicas.to_vec();
    let told: Vec<Option<String>> = replicas.iter().map(node).collect();
    for name in expected.iter().filter(|name| !told.contains(&Some((*name).clone()))) {
        // RabbitMQ's words for a member that does not answer, and for a node that is down.
        let state = if connected.contains(name) { "noproc" } else { "nodedown" };
        all.push(json!({"node": name, "state": state}));
    }
    all.sort_by_cached_key(node);
    all.iter().map(member).collect()
}

/// A replica with RabbitMQ's names of the fields. Those that nobody told are empty, as in RabbitMQ.
fn member(replica: &Value) -> Value {
    let told = |name: &str| replica.get(name).cloned().unwrap_or_else(|| json!(""));
    json!({
        "Node Name": told("node"),
        "Raft State": told("state"),
        "Membership": told("membership"),
        "Last Log Index": told("written_index"),
        "Last Written": told("written_index"),
        "Last Applied": told("applied_index"),
        "Commit Index": told("committed_index"),
        "Snapshot Index": told("compacted_index"),
        "Term": told("term"),
        "Machine Version": 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_those_that_are_told_and_those_that_are_away() {
        let names = |letters: &[&str]| letters.iter().map(|name| (*name).to_owned()).collect();
        let (expected, connected): (Vec<_>, Vec<_>) = (names(&["a", "b", "c"]), names(&["a", "c"]));
        let told = [
            json!({"node": "d", "state": "quarantined", "membership": "non_voter", "term": 0}),
            json!({"node": "a", "state": "leader", "membership": "voter", "term": 7}),
        ];
        let all = members(&told, &expected, &connected);
        let row = |member: &Value| {
            ["Node Name", "Raft State", "Membership", "Term"].map(|field| member[field].clone())
        };
        let rows: Vec<_> = all.as_array().unwrap().iter().map(row).collect();
        assert_eq!(
            json!(rows),
            json!([
                ["a", "leader", "voter", 7],
                ["b", "nodedown", "", ""],
                ["c", "noproc", "", ""],
                ["d", "quarantined", "non_voter", 0],
            ])
        );
    }
}

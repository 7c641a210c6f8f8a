//! `/api/replicas`: the replicas of vhosts on the nodes of a cluster, and RabbitMQ's status of the members of a queue. Each
//! node tells its own replicas; `http::forward` puts those of all nodes together.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::{Value, json};

use crate::api::list_query::Query;
use crate::http::access::{Management, Monitor, check_can_enter};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{NameInVhost, SharedNode};
use crate::node::Leader;
use crate::snapshot::replication::ReplicaSnapshot;

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    Router::new()
        .route("/api/replicas", get(list))
        .route("/api/queues/quorum/{vhost}/{name}/status", get(status))
}

async fn list(State(node): State<SharedNode>, _: Monitor, query: Query) -> Result<Json, ApiError> {
    let name = node.snapshot().name;
    let replicas = node.cluster().replication.replicas;
    let to_json = |replica: &ReplicaSnapshot| {
        let lags = replica.lags.iter().map(|(node, entries)| (node.clone(), json!(entries)));
        json!({
            "node": name,
            "vhost": replica.vhost,
            "state": replica.state,
            "term": replica.term,
            "committed_index": replica.committed_index,
            "written_index": replica.written_index,
            "applied_index": replica.applied_index,
            "compacted_index": replica.compacted_index,
            "unapplied_bytes": replica.unapplied_bytes,
            "membership": membership(replica),
            "voters": replica.voters,
            "heard": replica.heard,
            "lags": lags.collect::<serde_json::Map<String, Value>>(),
        })
    };
    query.answer_found_by(replicas.iter().map(to_json).collect(), &["vhost"])
}

fn membership(replica: &ReplicaSnapshot) -> &'static str {
    if replica.is_voter { "voter" } else { "non_voter" }
}

// COMPAT: members of a queue: those of its vhost, whatever the type of the queue.
async fn status(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    // A replica may not know the queue yet, or not at all if it is transient.
    if node.leader_of_vhost(&vhost) == Leader::Here && node.queue(&vhost, &name).is_none() {
        return Err(ApiError::not_found());
    }
    let own = node.snapshot().name;
    let replicas = node.cluster().replication.replicas;
    let of_vhost = replicas.iter().filter(|replica| replica.vhost == vhost);
    let members: Vec<Value> = of_vhost
        .map(|replica| {
            json!({
                "Node Name": own,
                "Raft State": replica.state,
                "Membership": membership(replica),
                "Last Log Index": replica.written_index,
                "Last Written": replica.written_index,
                "Last Applied": replica.applied_index,
                "Commit Index": replica.committed_index,
                "Snapshot Index": replica.compacted_index,
                "Term": replica.term,
                "Machine Version": 0,
            })
        })
        .collect();
    Ok(Json::ok(Value::Array(members)))
}

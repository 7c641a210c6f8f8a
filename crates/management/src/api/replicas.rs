//! `/api/replicas`: the replicas of vhosts on the nodes of a cluster. Each node tells its own replicas; `http::forward` puts
//! those of all nodes together.

use axum::extract::State;
use axum::http::Method;
use axum::routing::get;
use futures::future::join_all;
use serde_json::{Value, json};
use server::peers::request::{json_of, request_of_node};
use server::snapshot::replication::{ReplicaGroup, ReplicaSnapshot};

use crate::api::list_query::{List, Query};
use crate::http::access::Monitor;
use crate::http::answer::ApiError;
use crate::http::extract::SharedNode;
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::limits::PART_TIMEOUT;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/replicas", Scope::List(FOUND_BY), get(list))
}

/// The fields in which the filter of a list looks for a name.
const FOUND_BY: &[&str] = &["vhost"];

async fn list(State(node): State<SharedNode>, _: Monitor, query: Query) -> Result<List, ApiError> {
    query.answer_found_by(of_node(&node), FOUND_BY)
}

/// The replicas of this node.
fn of_node(node: &SharedNode) -> Vec<Value> {
    let name = node.snapshot().name;
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
            "stands_still": replica.stands_still,
            "membership": membership(replica),
            "voters": replica.voters,
            "heard": replica.heard,
            "group": replica.group.as_str(),
            "rebuild": replica.rebuild.map(|rebuild| json!({
                "received_bytes": rebuild.received_bytes,
                "total_bytes": rebuild.total_bytes,
            })),
            "lags": lags.collect::<serde_json::Map<String, Value>>(),
        })
    };
    node.cluster().replication.replicas.iter().map(to_json).collect()
}

fn membership(replica: &ReplicaSnapshot) -> &'static str {
    if replica.is_voter { "voter" } else { "non_voter" }
}

/// True if a replica, as `of_cluster` tells it, is of users, vhosts and parameters, whose name a vhost may have, too. Nodes of
/// earlier versions do not tell the group.
pub(crate) fn is_of_metadata(replica: &Value) -> bool {
    replica.get("group").and_then(Value::as_str) == Some(ReplicaGroup::Metadata.as_str())
}

/// The replicas of this node and of all other nodes that answer.
pub(crate) async fn of_cluster(node: &SharedNode) -> Vec<Value> {
    let peers = node.connected_peers();
    let asked = peers.iter().map(async |peer| {
        let request = request_of_node(Method::GET, "/api/replicas", Vec::new());
        json_of(node.answer_of_peer(peer, request, PART_TIMEOUT).await.ok()?).await
    });
    let mut all = of_node(node);
    for answer in join_all(asked).await {
        if let Some(Value::Array(of_peer)) = answer {
            all.extend(of_peer);
        }
    }
    all
}

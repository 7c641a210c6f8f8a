//! Imports in a cluster: users and vhosts at the node that leads them, and the contents of each vhost at its leader.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::http::Method;
use management::limits::PEER_ANSWER_BYTES_MAX;
use management::{ImportError, Leader, Peers as _, Topology as _, request_of_node};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::Document;
use crate::limits::{LEADER_CHECK_INTERVAL, METADATA_RETRY_INTERVAL, PEER_IMPORT_TIMEOUT};
use crate::node::Node;

/// Lets the leader of a vhost import definitions of this vhost.
///
/// # Errors
/// [`ImportError`], as the leader words it.
pub(crate) async fn import_at_leader(
    node: &Node,
    vhost: &str,
    definitions: &Document,
) -> Result<(), ImportError> {
    let path = format!("/api/definitions/{}", utf8_percent_encode(vhost, NON_ALPHANUMERIC));
    match node.leader_of_vhost(vhost) {
        Leader::Node(leader) => import_at(node, &leader, &path, definitions).await,
        Leader::Here | Leader::None => {
            let text = format!("the leader of vhost '{vhost}' has changed; import again");
            Err(ImportError::Node(text))
        }
    }
}

/// Lets another node import definitions at a path.
async fn import_at(
    node: &Node,
    leader: &str,
    path: &str,
    definitions: &Document,
) -> Result<(), ImportError> {
    let body = serde_json::to_vec(definitions).expect("a map of JSON is JSON");
    let request = request_of_node(Method::POST, path, body);
    let answer = node.answer_of_peer(leader, request, PEER_IMPORT_TIMEOUT).await;
    let answer = answer.map_err(|reason| {
        ImportError::Node(format!("node '{leader}' does not answer: {reason}"))
    })?;
    if answer.status().is_success() {
        return Ok(());
    }
    let is_unable = answer.status().is_server_error();
    let body = to_bytes(answer.into_body(), PEER_ANSWER_BYTES_MAX).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let reason = body["reason"].as_str().unwrap_or("no reason is told").to_owned();
    Err(if is_unable { ImportError::Node(reason) } else { ImportError::Definitions(reason) })
}

/// Lets the cluster import the definitions of this node's start, once there is a leader.
pub(crate) async fn import_in_cluster(node: Arc<Node>, definitions: Document) {
    let mut stopping = node.lifecycle.stopping.subscribe();
    while !*stopping.borrow() {
        let imported = match node.leader_of_metadata() {
            Leader::Here => Arc::clone(&node).import(None, definitions.clone()).await,
            Leader::Node(leader) => {
                import_at(&node, &leader, "/api/definitions", &definitions).await
            }
            Leader::None => {
                let wait = tokio::time::timeout(LEADER_CHECK_INTERVAL, stopping.changed());
                drop(wait.await);
                continue;
            }
        };
        match imported {
            Ok(()) => return tracing::info!("the cluster has imported the definitions"),
            Err(ImportError::Definitions(problem)) => {
                return tracing::error!("the definitions are not imported: {problem}");
            }
            Err(ImportError::Node(problem)) => {
                tracing::warn!("the definitions are not imported yet: {problem}");
                let wait = tokio::time::timeout(METADATA_RETRY_INTERVAL, stopping.changed());
                drop(wait.await);
            }
        }
    }
}

//! Imports in a cluster: users and vhosts at the node that leads them, and the contents of each vhost at its leader.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::Method;
use serde_json::Value;

use super::{Document, Imported, ItemError, Scope, parts};
use crate::json::import_preview::add_preview;
use crate::limits::{
    LEADER_CHECK_INTERVAL, METADATA_RETRY_INTERVAL, PEER_IMPORT_TIMEOUT, PREVIEWED_ITEMS_MAX,
};
use crate::node::Node;
use crate::peers::request::{json_of, request_of_node, segment};
use crate::requests::{ImportError, ImportPreview, Leader};

/// Imports all definitions or none, as far as that can be known before: vhosts that other nodes lead are checked by these
/// first, and imported by these.
///
/// # Errors
/// [`ImportError`], as the node words it that refuses.
pub(crate) async fn import_whole(
    node: &Arc<Node>,
    vhost: Option<String>,
    definitions: Document,
    importer: Option<String>,
) -> Result<(), ImportError> {
    let (definitions, parts) = match &vhost {
        Some(vhost) => (limits_set(node, vhost, definitions).await?, Vec::new()),
        None => {
            let parts = parts_elsewhere(node, &definitions);
            (definitions, parts)
        }
    };
    for (vhost, part) in &parts {
        preview_at_leader(node, vhost, part).await?;
    }
    let checked = names(parts);
    let import = {
        let (node, vhost) = (Arc::clone(node), vhost.clone());
        move || -> Result<Imported, ImportError> {
            let (scope, importer) = (scope(vhost.as_deref()), importer.as_deref());
            let imported = super::import(&node, &definitions, scope, &checked, importer);
            // Part of the import may have been applied before the disk refused a write.
            let saved = node.save();
            let imported = imported.map_err(|error| refused(&error))?;
            saved.map_err(|error| ImportError::Node(error.to_string()))?;
            Ok(imported)
        }
    };
    let Imported { durable, elsewhere } = blocking(import).await??;
    for (handle, lsn) in durable {
        let durable = handle.durable_at(lsn).await;
        durable.map_err(|problem| ImportError::Node(problem.to_string()))?;
    }
    for (of, part) in elsewhere {
        // The node that leads a vhost passes nothing on: two nodes could do so for ever.
        if vhost.is_some() {
            return Err(leader_has_changed(&of));
        }
        import_at_leader(node, &of, &part).await?;
    }
    Ok(())
}

/// Previews an import, with the help of the nodes that lead the vhosts.
///
/// # Errors
/// [`ImportError`], as that of the import.
pub(crate) async fn preview_whole(
    node: &Arc<Node>,
    vhost: Option<String>,
    definitions: Document,
    importer: String,
) -> Result<ImportPreview, ImportError> {
    let parts = match vhost {
        Some(_) => Vec::new(),
        None => parts_elsewhere(node, &definitions),
    };
    let mut previews = Vec::new();
    for (vhost, part) in &parts {
        previews.push((vhost.clone(), preview_at_leader(node, vhost, part).await?));
    }
    let mut preview = preview_here(node, vhost, definitions, names(parts), Some(importer)).await?;
    for (vhost, of_vhost) in previews {
        let added = add_preview(&mut preview, &of_vhost, PREVIEWED_ITEMS_MAX);
        let odd = || ImportError::Node(format!("the leader of vhost '{vhost}' tells no preview"));
        added.ok_or_else(odd)?;
    }
    Ok(preview)
}

async fn preview_here(
    node: &Arc<Node>,
    vhost: Option<String>,
    definitions: Document,
    elsewhere: BTreeSet<String>,
    importer: Option<String>,
) -> Result<ImportPreview, ImportError> {
    let node = Arc::clone(node);
    let preview = move || {
        let (scope, importer) = (scope(vhost.as_deref()), importer.as_deref());
        super::dry_run(&node, &definitions, scope, &elsewhere, importer)
    };
    blocking(preview).await?.map_err(|error| refused(&error))
}

fn scope(vhost: Option<&str>) -> Scope<'_> {
    vhost.map_or(Scope::Node, Scope::Vhost)
}

fn refused(error: &ItemError) -> ImportError {
    ImportError::Definitions(error.in_rabbitmqs_order())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ImportError> {
    let worked = tokio::task::spawn_blocking(work).await;
    worked.map_err(|error| ImportError::Node(error.to_string()))
}

/// The parts of definitions that are in vhosts which other nodes lead, by vhost. A replica may be behind its leader, or lack
/// the contents; without a leader it has to do.
fn parts_elsewhere(node: &Node, definitions: &Document) -> Vec<(String, Document)> {
    let is_elsewhere = |vhost: &&str| match node.leader_of_vhost(vhost) {
        Leader::Here => false,
        Leader::Node(_) => true,
        Leader::None => node.contents(vhost).is_none(),
    };
    let vhosts = parts::vhosts_with_items(definitions).into_iter().filter(is_elsewhere);
    vhosts.map(|vhost| (vhost.to_owned(), parts::part_of_vhost(definitions, vhost))).collect()
}

fn names(parts: Vec<(String, Document)>) -> BTreeSet<String> {
    parts.into_iter().map(|(vhost, _)| vhost).collect()
}

/// Lets the leader of the metadata set the limits in definitions of a vhost that this node leads. Returns the definitions
/// that are left to import.
async fn limits_set(
    node: &Arc<Node>,
    vhost: &str,
    definitions: Document,
) -> Result<Document, ImportError> {
    let limits: Vec<Value> = parts::limits_in(&definitions).cloned().collect();
    let leader = match node.leader_of_metadata() {
        _ if limits.is_empty() => return Ok(definitions),
        Leader::Here => return Ok(definitions),
        Leader::Node(leader) => leader,
        Leader::None => {
            return Err(ImportError::Node("no node leads users and vhosts now".to_owned()));
        }
    };
    // All or nothing.
    let (of_vhost, none) = (Some(vhost.to_owned()), BTreeSet::new());
    preview_here(node, of_vhost, definitions.clone(), none, None).await?;
    let path = format!("/api/parameters/vhost-limits/{}/limits", segment(vhost));
    for item in limits {
        change_at(node, &leader, Method::PUT, &path, item.to_string().into_bytes()).await?;
    }
    Ok(parts::without_limits(&definitions))
}

/// Lets the leader of a vhost import definitions of this vhost.
async fn import_at_leader(
    node: &Node,
    vhost: &str,
    definitions: &Document,
) -> Result<(), ImportError> {
    let leader = leader(node, vhost).await?;
    let path = format!("/api/definitions/{}", segment(vhost));
    change_at(node, &leader, Method::POST, &path, bytes(definitions)).await.map(drop)
}

/// Lets the leader of a vhost check definitions of this vhost; its preview in JSON.
async fn preview_at_leader(
    node: &Node,
    vhost: &str,
    definitions: &Document,
) -> Result<Value, ImportError> {
    let leader = leader(node, vhost).await?;
    let path = format!("/api/definitions/{}?dry_run=true", segment(vhost));
    change_at(node, &leader, Method::POST, &path, bytes(definitions)).await
}

/// Name of the other node that leads a vhost.
async fn leader(node: &Node, vhost: &str) -> Result<String, ImportError> {
    node.vhosts.leader_settled(vhost).await;
    match node.leader_of_vhost(vhost) {
        Leader::Node(leader) => Ok(leader),
        Leader::Here | Leader::None => Err(leader_has_changed(vhost)),
    }
}

fn leader_has_changed(vhost: &str) -> ImportError {
    ImportError::Node(format!("the leader of vhost '{vhost}' has changed; import again"))
}

fn bytes(definitions: &Document) -> Vec<u8> {
    serde_json::to_vec(definitions).expect("a map of JSON is JSON")
}

/// Lets another node answer a request; its answer from JSON, null if it has no body.
async fn change_at(
    node: &Node,
    leader: &str,
    method: Method,
    path: &str,
    body: Vec<u8>,
) -> Result<Value, ImportError> {
    let request = request_of_node(method, path, body);
    let answer = node.answer_of_peer(leader, request, PEER_IMPORT_TIMEOUT).await;
    let answer = answer.map_err(|reason| {
        ImportError::Node(format!("node '{leader}' does not answer: {reason}"))
    })?;
    let status = answer.status();
    let body = json_of(answer).await.unwrap_or_default();
    if status.is_success() {
        return Ok(body);
    }
    let reason = body["reason"].as_str().unwrap_or("no reason is told").to_owned();
    Err(match status.is_server_error() {
        true => ImportError::Node(reason),
        false => ImportError::Definitions(reason),
    })
}

/// Lets the cluster import the definitions of this node's start, once there is a leader.
pub(crate) async fn import_in_cluster(node: Arc<Node>, definitions: Document) {
    let mut stopping = node.lifecycle.stopping.subscribe();
    while !*stopping.borrow() {
        let imported = match node.leader_of_metadata() {
            Leader::Here => import_whole(&node, None, definitions.clone(), None).await,
            Leader::Node(leader) => {
                let path = "/api/definitions";
                change_at(&node, &leader, Method::POST, path, bytes(&definitions)).await.map(drop)
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

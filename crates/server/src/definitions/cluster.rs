//! Imports in a cluster: users and vhosts at the node that leads them, and the contents of each vhost at its leader.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::Method;
use serde_json::Value;

use super::importing::{ImportRules, Imported, dry_run, import};
use super::{Document, Scope, parts};
use crate::json::import_preview::{add_preview, import_items_of_json};
use crate::limits::{
    LEADER_CHECK_INTERVAL, METADATA_RETRY_INTERVAL, PEER_IMPORT_TIMEOUT, PREVIEWED_ITEMS_MAX,
};
use crate::node::Node;
use crate::peers::request::{json_of, request_of_node, segment};
use crate::requests::{ImportError, ImportItems, ImportPreview, ImportRequest, Leader};

/// Imports all definitions or none, as far as that can be known before: vhosts that other nodes lead are checked by these
/// first, and imported by these. The items that are left out.
///
/// # Errors
/// [`ImportError`], as the node words it that refuses.
pub(crate) async fn import_whole(
    node: &Arc<Node>,
    request: ImportRequest,
) -> Result<ImportItems, ImportError> {
    let (request, parts) = match &request.vhost {
        Some(_) => (limits_set(node, request).await?, Vec::new()),
        None => {
            let parts = parts_elsewhere(node, &request.definitions);
            (request, parts)
        }
    };
    let skips = request.skips_unsupported;
    previews_elsewhere(node, &request, &parts).await?;
    let checked = names(parts);
    let is_of_vhost = request.vhost.is_some();
    let work = {
        let node = Arc::clone(node);
        move || -> Result<Imported, ImportError> {
            let (root, scope) = (&request.definitions, scope(&request));
            let imported = import(&node, root, scope, &checked, rules(&request));
            // Part of the import may have been applied before the disk refused a write.
            let saved = node.save();
            let imported = imported.map_err(|problems| problems.of(root, scope))?;
            saved.map_err(|error| ImportError::Node(error.to_string()))?;
            Ok(imported)
        }
    };
    let Imported { durable, elsewhere, mut left_out } = blocking(work).await??;
    for (handle, lsn) in durable {
        let durable = handle.durable_at(lsn).await;
        durable.map_err(|problem| ImportError::Node(problem.to_string()))?;
    }
    for (of, part) in elsewhere {
        // The node that leads a vhost passes nothing on: two nodes could do so for ever.
        if is_of_vhost {
            return Err(leader_has_changed(&of));
        }
        left_out.append(import_at_leader(node, &of, &part, skips).await?);
    }
    Ok(left_out)
}

/// Previews an import, with the help of the nodes that lead the vhosts.
///
/// # Errors
/// [`ImportError`], as that of the import.
pub(crate) async fn preview_whole(
    node: &Arc<Node>,
    request: ImportRequest,
) -> Result<ImportPreview, ImportError> {
    let parts = match request.vhost {
        Some(_) => Vec::new(),
        None => parts_elsewhere(node, &request.definitions),
    };
    let previews = previews_elsewhere(node, &request, &parts).await?;
    let mut preview = preview_here(node, request, names(parts)).await?;
    for (vhost, of_vhost) in previews {
        let added = add_preview(&mut preview, &of_vhost, PREVIEWED_ITEMS_MAX);
        let odd = || ImportError::Node(format!("the leader of vhost '{vhost}' tells no preview"));
        added.ok_or_else(odd)?;
    }
    Ok(preview)
}

/// The previews of the nodes that lead the vhosts of these parts. If there are problems, the error has all of them, also
/// the problems of this node.
async fn previews_elsewhere(
    node: &Arc<Node>,
    request: &ImportRequest,
    parts: &[(String, Document)],
) -> Result<Vec<(String, Value)>, ImportError> {
    let (mut previews, mut reasons) = (Vec::new(), Vec::new());
    let mut all = ImportItems::default();
    let mut add = |error| {
        let ImportError::Definitions { reason, problems } = error else { return Err(error) };
        reasons.push(reason);
        all.append(problems);
        Ok(())
    };
    for (vhost, part) in parts {
        match preview_at_leader(node, vhost, part, request.skips_unsupported).await {
            Ok(preview) => previews.push((vhost.clone(), preview)),
            Err(error) => add(error)?,
        }
    }
    if previews.len() == parts.len() {
        return Ok(previews);
    }
    let elsewhere = parts.iter().map(|(vhost, _)| vhost.clone()).collect();
    if let Err(error) = preview_here(node, request.clone(), elsewhere).await {
        add(error)?;
    }
    Err(ImportError::Definitions { reason: reasons.join("; "), problems: all })
}

async fn preview_here(
    node: &Arc<Node>,
    request: ImportRequest,
    elsewhere: BTreeSet<String>,
) -> Result<ImportPreview, ImportError> {
    let node = Arc::clone(node);
    let preview = move || {
        let (root, scope) = (&request.definitions, scope(&request));
        let preview = dry_run(&node, root, scope, &elsewhere, rules(&request));
        preview.map_err(|problems| problems.of(root, scope))
    };
    blocking(preview).await?
}

fn scope(request: &ImportRequest) -> Scope<'_> {
    request.vhost.as_deref().map_or(Scope::Node, Scope::Vhost)
}

fn rules(request: &ImportRequest) -> ImportRules<'_> {
    ImportRules {
        importer: request.importer.as_deref(),
        skips_unsupported: request.skips_unsupported,
    }
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
    request: ImportRequest,
) -> Result<ImportRequest, ImportError> {
    let limits: Vec<Value> = parts::limits_in(&request.definitions).cloned().collect();
    let leader = match node.leader_of_metadata() {
        _ if limits.is_empty() => return Ok(request),
        Leader::Here => return Ok(request),
        Leader::Node(leader) => leader,
        Leader::None => {
            return Err(ImportError::Node("no node leads users and vhosts now".to_owned()));
        }
    };
    // All or nothing.
    let preview = ImportRequest { importer: None, ..request.clone() };
    preview_here(node, preview, BTreeSet::new()).await?;
    let vhost = request.vhost.as_deref().unwrap_or_default();
    let path = format!("/api/parameters/vhost-limits/{}/limits", segment(vhost));
    for item in limits {
        change_at(node, &leader, Method::PUT, &path, item.to_string().into_bytes()).await?;
    }
    let definitions = parts::without_limits(&request.definitions);
    Ok(ImportRequest { definitions, ..request })
}

/// Lets the leader of a vhost import definitions of this vhost. The items that it leaves out.
async fn import_at_leader(
    node: &Node,
    vhost: &str,
    definitions: &Document,
    skips_unsupported: bool,
) -> Result<ImportItems, ImportError> {
    let leader = leader(node, vhost).await?;
    let path = format!("/api/definitions/{}?{SKIPS}={skips_unsupported}", segment(vhost));
    let answer = change_at(node, &leader, Method::POST, &path, bytes(definitions)).await;
    let answer = answer.map_err(|error| in_vhost(error, vhost))?;
    Ok(import_items_of_json(vhost, &answer["left_out"], &answer["left_out_total"]))
}

/// Lets the leader of a vhost check definitions of this vhost; its preview in JSON.
async fn preview_at_leader(
    node: &Node,
    vhost: &str,
    definitions: &Document,
    skips_unsupported: bool,
) -> Result<Value, ImportError> {
    let leader = leader(node, vhost).await?;
    let path =
        format!("/api/definitions/{}?dry_run=true&{SKIPS}={skips_unsupported}", segment(vhost));
    let answer = change_at(node, &leader, Method::POST, &path, bytes(definitions)).await;
    answer.map_err(|error| in_vhost(error, vhost))
}

/// The parameter of a request that leaves out what Leveret does not have.
const SKIPS: &str = "skip_unsupported";

/// The error of another node, whose problems are in this vhost.
fn in_vhost(error: ImportError, vhost: &str) -> ImportError {
    let ImportError::Definitions { reason, mut problems } = error else { return error };
    for problem in &mut problems.named {
        problem.identity.insert("vhost".to_owned(), Value::from(vhost));
    }
    ImportError::Definitions { reason, problems }
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
        false => {
            let problems = import_items_of_json("", &body["problems"], &body["problems_total"]);
            ImportError::Definitions { reason, problems }
        }
    })
}

/// Lets the cluster import the definitions of this node's start, once there is a leader.
pub(crate) async fn import_in_cluster(node: Arc<Node>, definitions: Document) {
    let mut stopping = node.lifecycle.stopping.subscribe();
    while !*stopping.borrow() {
        let imported = match node.leader_of_metadata() {
            Leader::Here => {
                let request = ImportRequest {
                    vhost: None,
                    definitions: definitions.clone(),
                    importer: None,
                    skips_unsupported: false,
                };
                import_whole(&node, request).await.map(drop)
            }
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
            Err(ImportError::Definitions { reason, .. }) => {
                return tracing::error!("the definitions are not imported: {reason}");
            }
            Err(ImportError::Node(problem)) => {
                tracing::warn!("the definitions are not imported yet: {problem}");
                let wait = tokio::time::timeout(METADATA_RETRY_INTERVAL, stopping.changed());
                drop(wait.await);
            }
        }
    }
}

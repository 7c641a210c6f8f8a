//! The nodes that have the replicas of quorum queues, which are those of their vhosts: `/api/queues/quorum/...`, as in
//! RabbitMQ, and `/api/vhosts/VHOST/members/NODE`, Leveret's own.

use axum::extract::{Path, State};
use axum::http::{Method, StatusCode};
use axum::routing::{delete, post, put};
use broker::QueueType;
use serde_json::Value;
use server::peers::request::{reason_of, request_of_node, segment};
use server::requests::{ChangeError, Leader, MemberChange, MemberChangeKind, MemberError};

use crate::api::health;
use crate::api::nodes::is_of_cluster;
use crate::http::access::Administrator;
use crate::http::answer::ApiError;
use crate::http::body::Object;
use crate::http::extract::{Name, NameInVhost, SharedNode};
use crate::http::forward::no_leader_of_metadata;
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::limits::PEER_TIMEOUT;

/// The pattern of all queues.
const ALL: &str = ".*";

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/queues/quorum/{vhost}/{name}/replicas/add", Scope::Vhost("vhost"), post(add))
        .route(
            "/api/queues/quorum/{vhost}/{name}/replicas/delete",
            Scope::Vhost("vhost"),
            delete(remove),
        )
        .route("/api/queues/quorum/replicas/on/{node}/grow", Scope::Metadata, post(grow))
        .route("/api/queues/quorum/replicas/on/{node}/shrink", Scope::Metadata, delete(shrink))
        .route(
            "/api/vhosts/{name}/members/{node}",
            Scope::Metadata,
            put(put_member).delete(delete_member),
        )
}

/// Adds a replica of the vhost of a queue. The leader of the vhost answers.
async fn add(
    State(node): State<SharedNode>,
    _: Administrator,
    NameInVhost { vhost, name }: NameInVhost,
    body: Object,
) -> Result<StatusCode, ApiError> {
    let to = node_in(&node, &body)?;
    check_is_quorum(&node, &vhost, &name, refused("not_found"))?;
    change_at_leader(&node, vhost, to, MemberChangeKind::Add).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a replica of the vhost of a queue. The leader of the vhost answers.
async fn remove(
    State(node): State<SharedNode>,
    _: Administrator,
    NameInVhost { vhost, name }: NameInVhost,
    body: Object,
) -> Result<StatusCode, ApiError> {
    let from = node_in(&node, &body)?;
    check_is_quorum(&node, &vhost, &name, ApiError::not_found())?;
    change_at_leader(&node, vhost, from, MemberChangeKind::Remove).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Adds replicas of vhosts on a node. The leader of the metadata answers.
async fn grow(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(to): Name,
    body: Object,
) -> Result<StatusCode, ApiError> {
    let [vhosts, queues, strategy] =
        body.required(["vhost_pattern", "queue_pattern", "strategy"])?;
    if !is_of_cluster(&node, &to) {
        return Err(ApiError::bad_request(NO_MEMBER));
    }
    let only_even = match strategy.as_str() {
        Some("all") => false,
        Some("even") => true,
        _ => return Err(ApiError::bad_request("strategy must be all or even")),
    };
    if queues.as_str() != Some(ALL) {
        let text = "queue_pattern must be .*, as the queues of a vhost have its replicas; select vhosts with vhost_pattern";
        return Err(ApiError::bad_request(text));
    }
    let Value::String(pattern) = vhosts else {
        return Err(ApiError::bad_request("vhost_pattern must be a regular expression"));
    };
    let pattern = health::filter(pattern)?;
    let mut names = node.vhost_names();
    names.retain(|vhost| pattern.matches(vhost));
    let is_wanted = |members: usize| !only_even || members.is_multiple_of(2);
    change_here(&node, changes(&node, names, &to, MemberChangeKind::Add, is_wanted)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes the replicas of all vhosts from a node, except those that are the only ones. The leader of the metadata answers.
async fn shrink(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(from): Name,
) -> Result<StatusCode, ApiError> {
    if !is_of_cluster(&node, &from) {
        return Err(ApiError::not_found());
    }
    let names = node.vhost_names();
    let changes = changes(&node, names, &from, MemberChangeKind::Remove, |members| members > 1);
    change_here(&node, changes).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Adds a replica of a vhost. The leader of the metadata answers.
async fn put_member(
    State(node): State<SharedNode>,
    _: Administrator,
    Path((vhost, to)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    change_here(&node, vec![MemberChange { vhost, node: to, kind: MemberChangeKind::Add }]).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a replica of a vhost. The leader of the metadata answers.
async fn delete_member(
    State(node): State<SharedNode>,
    _: Administrator,
    Path((vhost, from)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let change = MemberChange { vhost, node: from, kind: MemberChangeKind::Remove };
    change_here(&node, vec![change]).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// RabbitMQ's answer to the name of a node that is not one of the cluster.
const NO_MEMBER: &str = "Node is not a cluster member";

/// RabbitMQ's answer where the only member is to be removed.
const LAST_NODE: &str = "last_node";

/// A refusal with RabbitMQ's word for it.
fn refused(reason: &str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason)
}

/// The node that a body names.
fn node_in(node: &SharedNode, body: &Object) -> Result<String, ApiError> {
    let [name] = body.required(["node"])?;
    let named = name.as_str().filter(|name| is_of_cluster(node, name));
    named.map(str::to_owned).ok_or_else(|| ApiError::bad_request(NO_MEMBER))
}

/// Checks that a queue is a quorum queue.
fn check_is_quorum(
    node: &SharedNode,
    vhost: &str,
    name: &str,
    missing: ApiError,
) -> Result<(), ApiError> {
    let (queue, _) = node.queue(vhost, name).ok_or(missing)?;
    match queue.view.kind {
        QueueType::Quorum => Ok(()),
        other => Err(refused(&format!("{}_queue_not_supported", other.as_str()))),
    }
}

/// The changes that give a node replicas of vhosts, or take them away, where the number of members so far `is_wanted`. Those
/// that change nothing are left out.
fn changes(
    node: &SharedNode,
    vhosts: Vec<String>,
    of: &str,
    kind: MemberChangeKind,
    is_wanted: impl Fn(usize) -> bool,
) -> Vec<MemberChange> {
    let change = |vhost: String| {
        let members = node.vhost_placement(&vhost)?.members;
        let is_member = members.iter().any(|member| member == of);
        let is_change = is_member == (kind == MemberChangeKind::Remove);
        let change = MemberChange { vhost, node: of.to_owned(), kind };
        (is_change && is_wanted(members.len())).then_some(change)
    };
    vhosts.into_iter().filter_map(change).collect()
}

/// Lets the leader of the metadata change the members of a vhost.
async fn change_at_leader(
    node: &SharedNode,
    vhost: String,
    of: String,
    kind: MemberChangeKind,
) -> Result<(), ApiError> {
    node.leader_of_metadata_settled().await;
    let leader = match node.leader_of_metadata() {
        Leader::Here => {
            return change_here(node, vec![MemberChange { vhost, node: of, kind }]).await;
        }
        Leader::Node(leader) => leader,
        Leader::None => return Err(no_leader_of_metadata(node)),
    };
    let method = match kind {
        MemberChangeKind::Add => Method::PUT,
        MemberChangeKind::Remove => Method::DELETE,
    };
    let path = format!("/api/vhosts/{}/members/{}", segment(&vhost), segment(&of));
    let answer =
        node.answer_of_peer(&leader, request_of_node(method, &path, Vec::new()), PEER_TIMEOUT);
    let answer = answer
        .await
        .map_err(|reason| refused(&format!("node '{leader}' does not answer: {reason}")))?;
    match answer.status() {
        status if status.is_success() => Ok(()),
        StatusCode::NOT_FOUND => Err(ApiError::not_found()),
        StatusCode::BAD_REQUEST => Err(ApiError::bad_request(reason_of(answer).await)),
        _ => Err(refused(&reason_of(answer).await)),
    }
}

async fn change_here(node: &SharedNode, changes: Vec<MemberChange>) -> Result<(), ApiError> {
    if changes.is_empty() {
        return Ok(());
    }
    node.change_members(changes).await.map_err(|error| match error {
        MemberError::NoSuchNode => ApiError::bad_request(NO_MEMBER),
        MemberError::LastMember(_) => refused(LAST_NODE),
        MemberError::Change(ChangeError::NoSuchVhost) => ApiError::not_found(),
        MemberError::Change(error) => error.into(),
    })
}

//! Requests that another node of the cluster answers.
//!
//! Any node takes any request. The node that took the request authenticates the user, and passes the request on to the
//! node that leads the vhost or the metadata; that node checks what the user may do. No password passes on. Lists over
//! all vhosts are put together from the parts of all nodes. A request that was passed on is answered where it arrives.

mod gather;
mod merged_list;
mod part_rows;
mod samples;
mod wire;

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use server::requests::{Caller, Leader};

use crate::http::allowance::Allowance;
use crate::http::answer::ApiError;
use crate::http::extract::SharedNode;
use crate::http::scope::{Scope, Scopes};
use crate::limits::PEER_TIMEOUT;

pub(crate) use wire::{Forwarded, PartOfList, receive};

/// Tells that an answer is that of a replica, which may be behind the leader.
const STALE: HeaderName = HeaderName::from_static("leveret-stale");

/// The node, and the scopes of all routes.
#[derive(Clone)]
pub(crate) struct Forwarding {
    /// The node.
    pub(crate) node: SharedNode,
    /// The scopes, by the path of the route.
    pub(crate) scopes: Arc<HashMap<String, Scopes>>,
}

/// Answers a request, or lets the node answer that leads what the request is about.
pub(crate) async fn forward(
    State(Forwarding { node, scopes }): State<Forwarding>,
    route: MatchedPath,
    Extension(caller): Extension<Arc<Caller>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD);
    let scopes = scopes.get(route.as_str()).expect("every route has its scopes");
    let scope = scopes.of_request(is_change, route.as_str(), request.uri().path());
    if !node.is_in_cluster() {
        if let Scope::Vhost(vhost) = scope
            && node.contents(&vhost).is_none()
        {
            return ApiError::unavailable(format!("vhost '{vhost}' is down")).into_response();
        }
        return next.run(request).await;
    }
    if let Some(forwarded) = request.extensions().get::<Forwarded>().cloned() {
        if let Some(list) = forwarded.list {
            request.extensions_mut().insert(list);
        }
        if forwarded.is_part {
            return gather::answer_part(&node, &caller, request, next).await;
        }
        let Scope::Vhost(vhost) = scope else {
            return next.run(request).await;
        };
        if is_change {
            // A node that is elected serves a moment later.
            node.leader_settled(&vhost).await;
        }
        let answer = answer_here(&node, &vhost, request, next).await;
        return answer.unwrap_or_else(|| elsewhere(&vhost).into_response());
    }
    let allowance = Allowance::of(request.extensions());
    let sender = Sender { node, caller, client, allowance };
    match scope {
        Scope::Here => next.run(request).await,
        Scope::Metadata => {
            sender.node.leader_of_metadata_settled().await;
            match sender.node.leader_of_metadata() {
                Leader::Here => next.run(request).await,
                Leader::Node(leader) => sender.answer(&leader, request).await,
                Leader::None => no_leader_of_metadata(&sender.node).into_response(),
            }
        }
        Scope::Vhost(vhost) => {
            // A node that is to get a replica learns the leader a moment later.
            if is_change || sender.node.contents(&vhost).is_none() {
                sender.node.leader_settled(&vhost).await;
            }
            if is_change {
                sender.change_in_vhost(&vhost, request, next).await
            } else {
                sender.read_of_vhost(&vhost, true, request, next).await
            }
        }
        Scope::SettingsOfVhost(vhost) => sender.read_of_vhost(&vhost, false, request, next).await,
        Scope::Node(name) => {
            if !sender.node.connected_peers().contains(&name) {
                return next.run(request).await;
            }
            if is_change {
                return sender.answer(&name, request).await;
            }
            match sender.try_answer(&name, copy(&request)).await {
                Ok(answer) => answer,
                // This node knows a few facts about the other one.
                Err(_) => next.run(request).await,
            }
        }
        Scope::Anywhere => sender.anywhere(request, next).await,
        Scope::Everywhere => sender.everywhere(request, next).await,
        Scope::List(found_by) => merged_list::list(&sender, request, next, found_by).await,
        Scope::Overview => gather::overview(&sender, request, next).await,
        Scope::Scheduled => gather::scheduled_messages(&sender, request, next).await,
        Scope::ScheduledCounts => gather::scheduled_counts(&sender, request, next).await,
        Scope::Definitions => gather::definitions(&sender, request, next).await,
        Scope::Findings => gather::findings(&sender, request, next).await,
        Scope::DeadLetterMap => gather::dead_letter_map(&sender, request, next).await,
    }
}

/// Passes requests on for a caller.
struct Sender {
    node: SharedNode,
    caller: Arc<Caller>,
    client: SocketAddr,
    /// The memory of the request.
    allowance: Allowance,
}

impl Sender {
    /// The answer of another node.
    async fn answer(&self, peer: &str, request: Request) -> Response {
        match self.try_answer(peer, request).await {
            Ok(response) => response,
            Err(error) => error.into_response(),
        }
    }

    /// The answer of another node.
    async fn try_answer(&self, peer: &str, request: Request) -> Result<Response, ApiError> {
        let request = wire::sent(request, &self.caller, self.client, wire::Part::None);
        let answer = self.node.answer_of_peer(peer, request, PEER_TIMEOUT).await;
        answer.map(wire::answered).map_err(|reason| {
            ApiError::unavailable(format!("node '{peer}' does not answer: {reason}"))
        })
    }

    /// The answer of the leader of a vhost.
    async fn change_in_vhost(&self, vhost: &str, request: Request, next: Next) -> Response {
        match self.node.leader_of_vhost(vhost) {
            Leader::Here => answer_here(&self.node, vhost, request, next)
                .await
                .unwrap_or_else(|| elsewhere(vhost).into_response()),
            Leader::Node(leader) => self.answer(&leader, request).await,
            Leader::None => no_leader(&self.node, &format!("vhost '{vhost}' has")).into_response(),
        }
    }

    /// The answer of the leader of a vhost to a request that changes nothing; without one, this node tells what it knows:
    /// of the contents, what its replica has.
    async fn read_of_vhost(
        &self,
        vhost: &str,
        is_of_contents: bool,
        request: Request,
        next: Next,
    ) -> Response {
        let (parts, _) = request.into_parts();
        match self.try_read(vhost, is_of_contents, again(&parts), next.clone()).await {
            // The node has lost the lead or its replica meanwhile, and the next leader is known soon.
            None => {}
            Some(answer) if answer.status() == StatusCode::SERVICE_UNAVAILABLE => {}
            Some(answer) => return answer,
        }
        self.node.leader_settled(vhost).await;
        let answer = self.try_read(vhost, is_of_contents, again(&parts), next).await;
        answer.unwrap_or_else(|| elsewhere(vhost).into_response())
    }

    /// The answer of the leader of a vhost, or that of this node. None if it is about contents, and this node has no
    /// replica, or gave it up meanwhile.
    async fn try_read(
        &self,
        vhost: &str,
        is_of_contents: bool,
        request: Request,
        next: Next,
    ) -> Option<Response> {
        let leader = self.node.leader_of_vhost(vhost);
        if let Leader::Node(leader) = &leader
            && let Ok(answer) = self.try_answer(leader, copy(&request)).await
        {
            return Some(answer);
        }
        let mut answer = if is_of_contents {
            answer_here(&self.node, vhost, request, next).await?
        } else {
            next.run(request).await
        };
        if leader != Leader::Here {
            answer.headers_mut().insert(STALE, HeaderValue::from_static("true"));
        }
        Some(answer)
    }

    /// The answer of the first node that knows the object; this one is asked first.
    ///
    /// A node that cannot say yet, or does not answer, may know the object. While the nodes are asked, the object can
    /// move to one that said no already, and a link to one that knows it can come or go: all are asked twice, with
    /// those that were connected at any time meanwhile, before the answer is that there is none.
    async fn anywhere(&self, request: Request, next: Next) -> Response {
        let others = copy(&request);
        let (parts, _) = request.into_parts();
        let mut peers = BTreeSet::from_iter(self.node.connected_peers());
        let mut refusal = next.clone().run(again(&parts)).await;
        if !is_elsewhere(refusal.status()) {
            return refusal;
        }
        for _ in 0..2 {
            peers.extend(self.node.connected_peers());
            for peer in &peers {
                let answer = self.answer(peer, copy(&others)).await;
                if !is_elsewhere(answer.status()) {
                    return answer;
                }
                refusal = more_cautious(refusal, answer);
            }
            if refusal.status() == StatusCode::SERVICE_UNAVAILABLE {
                break;
            }
            let answer = next.clone().run(again(&parts)).await;
            if !is_elsewhere(answer.status()) {
                return answer;
            }
            refusal = more_cautious(refusal, answer);
        }
        refusal
    }

    /// Lets all nodes answer. The answer is that of this node.
    async fn everywhere(&self, request: Request, next: Next) -> Response {
        for peer in self.node.connected_peers() {
            if let Err(error) = self.try_answer(&peer, copy(&request)).await {
                return error.into_response();
            }
        }
        next.run(request).await
    }
}

/// The answer of this node about the contents of a vhost. None if the node has no replica of the vhost, or gave it up
/// meanwhile: what it lacked then, another node may have.
async fn answer_here(
    node: &SharedNode,
    vhost: &str,
    request: Request,
    next: Next,
) -> Option<Response> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let contents = node.contents(vhost)?;
    let answer = next.run(request).await;
    // A change that was made is told.
    let may_lack = is_read || answer.status() == StatusCode::NOT_FOUND;
    (!may_lack || contents.are_there()).then_some(answer)
}

/// True for the answer of a node that does not have the object, or not yet: another one may.
fn is_elsewhere(status: StatusCode) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE)
}

/// Of two answers of nodes that do not have an object, that of the node which may have it later.
fn more_cautious(one: Response, other: Response) -> Response {
    if other.status() == StatusCode::SERVICE_UNAVAILABLE { other } else { one }
}

/// A request for another try on this node: all but its body.
fn again(parts: &Parts) -> Request {
    Request::from_parts(parts.clone(), Body::empty())
}

/// The request for another node: without its body, and what this node has noted on it.
fn copy(request: &Request) -> Request {
    let mut copy = Request::new(Body::empty());
    request.method().clone_into(copy.method_mut());
    request.uri().clone_into(copy.uri_mut());
    request.headers().clone_into(copy.headers_mut());
    copy
}

/// The refusal of a node that has no replica of a vhost, and cannot ask its leader.
fn elsewhere(vhost: &str) -> ApiError {
    ApiError::unavailable(format!("vhost '{vhost}' is on other nodes, which do not answer"))
}

/// The refusal while nobody leads users, vhosts and parameters.
pub(crate) fn no_leader_of_metadata(node: &SharedNode) -> ApiError {
    no_leader(node, "users, vhosts and parameters have")
}

/// The refusal while nobody leads: the nodes that are missing, and why.
fn no_leader(node: &SharedNode, what: &str) -> ApiError {
    let peers = node.cluster().peers;
    let away = peers.iter().filter(|peer| peer.link.is_none());
    let away: Vec<String> = away
        .map(|peer| match &peer.problem {
            Some(problem) => format!("'{}' ({problem})", peer.name),
            None => format!("'{}'", peer.name),
        })
        .collect();
    let why = match away.len() {
        0 => "an election is under way, or too few of its replicas are complete".to_owned(),
        missing if (peers.len() + 1 - missing) * 2 > peers.len() + 1 => format!(
            "an election is under way, or its replicas are on nodes that are not connected: {}",
            away.join(", ")
        ),
        _ => format!(
            "fewer than a majority of the nodes are up and connected; missing: {}",
            away.join(", ")
        ),
    };
    ApiError::unavailable(format!("{what} no leader now: {why}"))
}

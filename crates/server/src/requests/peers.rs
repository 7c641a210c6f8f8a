//! The other nodes of the cluster, as far as they answer requests.

use std::pin::Pin;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;

use crate::requests::Caller;

/// The node that makes the changes of a vhost, or of the metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Leader {
    /// The node itself; without a cluster always.
    Here,
    /// Another node, by name.
    Node(String),
    /// No node leads now.
    None,
}

/// Completes with the answer of another node, or the reason why there is none.
pub type PeerFuture<'a> = Pin<Box<dyn Future<Output = Result<Response, String>> + Send + 'a>>;

/// Completes when a vhost has a leader, or after some seconds.
pub type SettledFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The contents of a vhost on a node.
pub trait Contents: Send {
    /// False once the node has given them up, because it leads no more or is to have no replica. Who has read them
    /// meanwhile may have seen an empty vhost.
    fn are_there(&self) -> bool;
}

/// The cluster, as far as its nodes answer requests for each other.
pub trait Peers {
    /// True if the node is one of a cluster.
    fn is_in_cluster(&self) -> bool;

    /// Leader of a vhost; this node if there is no such vhost.
    fn leader_of_vhost(&self, vhost: &str) -> Leader;

    /// The contents of a vhost on this node, or of a vhost that does not exist; none if this node has no usable replica of
    /// it.
    fn contents(&self, vhost: &str) -> Option<Box<dyn Contents>>;

    /// Leader of users, vhosts and global parameters.
    fn leader_of_metadata(&self) -> Leader;

    /// Waits until users, vhosts and global parameters have a leader, but not for long.
    fn leader_of_metadata_settled(&self) -> SettledFuture<'_>;

    /// Waits until a vhost has a leader, but not for long.
    fn leader_settled(&self, vhost: &str) -> SettledFuture<'_>;

    /// Names of the other nodes to which there is a link.
    fn connected_peers(&self) -> Vec<String>;

    /// Sends a request to another node, as [`peer_router`](crate::peer_router) takes it, and waits for the beginning of the
    /// answer until the time is over, and as long for each further piece.
    fn answer_of_peer(&self, node: &str, request: Request, limit: Duration) -> PeerFuture<'_>;

    /// The user who was authenticated by another node; none if there is no such user.
    fn known_caller(&self, user: &str) -> Option<Caller>;

    /// The holder of the token of another node's machine.
    fn administrator_of_peer(&self) -> Caller;
}

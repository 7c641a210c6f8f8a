//! Requests that other nodes of the cluster answer.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;

use crate::auth::ctl_token;
use crate::limits::{LEADER_CHECK_INTERVAL, LEADER_WAIT};
use crate::node::Node;
use crate::requests::{Caller, Leader};
use crate::vhost::VhostHandle;

/// The contents of a vhost on this node, or of a vhost that does not exist.
#[derive(Debug)]
pub struct VhostContents(Option<Arc<VhostHandle>>);

impl VhostContents {
    /// False once the node has given them up, because it leads no more or is to have no replica. Who has read them
    /// meanwhile may have seen an empty vhost.
    pub fn are_there(&self) -> bool {
        self.0.as_ref().is_none_or(|handle| !handle.is_deposed())
    }
}

impl Node {
    /// True if the node is one of a cluster.
    pub fn is_in_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    /// Leader of a vhost; this node if there is no such vhost.
    pub fn leader_of_vhost(&self, vhost: &str) -> Leader {
        let Some(handle) = self.vhosts.get(vhost) else { return Leader::Here };
        if !handle.is_replicated() {
            return Leader::Here;
        }
        self.leader(handle.is_served_here(), handle.leader().as_deref())
    }

    /// The contents of a vhost on this node, or of a vhost that does not exist; none if this node has no usable replica of
    /// it.
    pub fn contents(&self, vhost: &str) -> Option<VhostContents> {
        let handle = self.vhosts.get(vhost);
        let is_usable = handle.as_ref().is_none_or(|handle| handle.has_contents());
        is_usable.then(|| VhostContents(handle))
    }

    /// Leader of users, vhosts and global parameters.
    pub fn leader_of_metadata(&self) -> Leader {
        let Some(metadata) = &self.metadata else { return Leader::Here };
        self.leader(metadata.store.is_leading(), metadata.store.leader().as_deref())
    }

    /// Waits until users, vhosts and global parameters have a leader, but not for long.
    pub async fn leader_of_metadata_settled(&self) {
        let wait = async {
            // Without a majority there will be none, and another node can be asked.
            let may_elect = || {
                let replication = self.replication.as_ref();
                replication.is_some_and(|it| it.replicator.may_elect(None))
            };
            while self.leader_of_metadata() == Leader::None && may_elect() {
                tokio::time::sleep(LEADER_CHECK_INTERVAL).await;
            }
        };
        // Whoever asks sees what there is after the time.
        drop(tokio::time::timeout(LEADER_WAIT, wait).await);
    }

    /// Waits until a vhost has a leader, but not for long.
    pub async fn leader_settled(&self, vhost: &str) {
        self.vhosts.leader_settled(vhost).await;
    }

    /// Names of the other nodes to which there is a link.
    pub fn connected_peers(&self) -> Vec<String> {
        let Some(links) = &self.cluster else { return Vec::new() };
        let peers = links.peers();
        let connected = peers.iter().filter(|peer| peer.state.lock().current.is_some());
        connected.map(|peer| peer.node.name.clone()).collect()
    }

    /// Sends a request to another node, as the services for its peers take it, and waits for the beginning of the
    /// answer until the time is over, and as long for each further piece.
    pub async fn answer_of_peer(
        &self,
        node: &str,
        request: Request,
        limit: Duration,
    ) -> Result<Response, String> {
        let peers = self.http_peers.as_ref().ok_or("the node is in no cluster")?;
        peers.answer(node, request, limit).await
    }

    /// The user who was authenticated by another node; none if there is no such user.
    pub fn known_caller(&self, user: &str) -> Option<Caller> {
        self.auth.user(user).map(|user| self.caller(&user))
    }

    /// The holder of the token of another node's machine.
    pub fn administrator_of_peer(&self) -> Caller {
        ctl_token::administrator(self.vhost_names())
    }

    /// The leader of something, by its name; `is_here` if this node leads.
    fn leader(&self, is_here: bool, leader: Option<&str>) -> Leader {
        match leader {
            _ if is_here => Leader::Here,
            // A node that is elected serves a moment later.
            Some(leader) if leader != self.identity.name => Leader::Node(leader.to_owned()),
            Some(_) | None => Leader::None,
        }
    }
}

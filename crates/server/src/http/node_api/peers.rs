//! Requests that other nodes of the cluster answer.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;

use crate::auth::ctl_token;
use crate::limits::{LEADER_CHECK_INTERVAL, LEADER_WAIT};
use crate::node::Node;
use crate::requests::{Caller, Contents, Leader, PeerFuture, Peers, SettledFuture, Topology as _};
use crate::vhost::VhostHandle;

impl Node {
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

/// A vhost whose contents are read; none if there is no such vhost.
struct ContentsOf(Option<Arc<VhostHandle>>);

impl Contents for ContentsOf {
    fn are_there(&self) -> bool {
        self.0.as_ref().is_none_or(|handle| !handle.is_deposed())
    }
}

impl Peers for Node {
    fn is_in_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    fn leader_of_vhost(&self, vhost: &str) -> Leader {
        let Some(handle) = self.vhosts.get(vhost) else { return Leader::Here };
        if !handle.is_replicated() {
            return Leader::Here;
        }
        self.leader(handle.is_served_here(), handle.leader().as_deref())
    }

    fn contents(&self, vhost: &str) -> Option<Box<dyn Contents>> {
        let handle = self.vhosts.get(vhost);
        let is_usable = handle.as_ref().is_none_or(|handle| handle.has_contents());
        is_usable.then(|| Box::new(ContentsOf(handle)) as Box<dyn Contents>)
    }

    fn leader_of_metadata(&self) -> Leader {
        let Some(metadata) = &self.metadata else { return Leader::Here };
        self.leader(metadata.store.is_leading(), metadata.store.leader().as_deref())
    }

    fn leader_of_metadata_settled(&self) -> SettledFuture<'_> {
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
        Box::pin(async move { drop(tokio::time::timeout(LEADER_WAIT, wait).await) })
    }

    fn leader_settled(&self, vhost: &str) -> SettledFuture<'_> {
        let vhost = vhost.to_owned();
        Box::pin(async move { self.vhosts.leader_settled(&vhost).await })
    }

    fn connected_peers(&self) -> Vec<String> {
        let Some(links) = &self.cluster else { return Vec::new() };
        let peers = links.peers();
        let connected = peers.iter().filter(|peer| peer.state.lock().current.is_some());
        connected.map(|peer| peer.node.name.clone()).collect()
    }

    fn answer_of_peer(&self, node: &str, request: Request, limit: Duration) -> PeerFuture<'_> {
        let node = node.to_owned();
        Box::pin(async move {
            let peers = self.http_peers.as_ref().ok_or("the node is in no cluster")?;
            peers.answer(&node, request, limit).await
        })
    }

    fn known_caller(&self, user: &str) -> Option<Caller> {
        self.auth.user(user).map(|user| self.caller(&user))
    }

    fn administrator_of_peer(&self) -> Caller {
        ctl_token::administrator(self.vhost_names())
    }
}

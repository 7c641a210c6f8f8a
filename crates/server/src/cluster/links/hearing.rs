//! The nodes that this node hears, for those that serve their clients, or wait for one of them to lead.

use tokio::sync::watch;

use super::registry::Links;
use crate::cluster::peer::contact::Contact;
use crate::membership::ids::NodeId;

impl Links {
    /// True if a node is heard, or may be soon.
    pub(crate) fn hears(&self, node: NodeId) -> bool {
        node == self.own || self.peer(node).is_some_and(|peer| peer.is_heard())
    }

    /// The contact with another node, as it changes; none if it is not one of the cluster.
    pub(crate) fn contact(&self, node: NodeId) -> Option<watch::Receiver<Contact>> {
        self.peer(node).map(|peer| peer.contact.subscribe())
    }

    /// Completes when another node is away, or is not one of the cluster.
    pub(crate) async fn peer_away(&self, node: NodeId) {
        if let Some(peer) = self.peer(node) {
            peer.away().await;
        }
    }

    /// The links begin to look for their peers.
    pub(super) fn seek_peers(&self) {
        for peer in self.peers().iter() {
            peer.contact.send_replace(Contact::sought());
        }
    }
}

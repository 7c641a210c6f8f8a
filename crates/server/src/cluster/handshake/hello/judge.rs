//! The judgement of a hello whose sender has proved itself.

use std::sync::Arc;

use super::Hello;
use crate::cluster::levels;
use crate::cluster::peer::Peer;
use crate::cluster::purpose::Purpose;
use crate::cluster::refusal::Refusal;
use crate::config::ClusterNode;
use crate::membership::ids::{ClusterId, NodeId};
use crate::membership::node_list::NodeList;

/// The knowledge of a node about its cluster when it judges a hello.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckContext<'a> {
    pub(crate) cluster: ClusterId,
    pub(crate) own: NodeId,
    /// The level of record kinds that the cluster has.
    pub(crate) record_level: u16,
    pub(crate) peers: &'a [Arc<Peer>],
    /// The list of the metadata, with nodes that are forgotten.
    pub(crate) nodes: &'a NodeList,
    /// The node that was dialed; none for an accepted connection.
    pub(crate) dialed: Option<&'a ClusterNode>,
}

/// The peer that a proved hello is from. A node that asks to join is a peer for this connection only.
///
/// # Errors
/// [`Refusal`]: the node is another one than was dialed, of another cluster, unknown, or this one; or it does not read
/// the records of the cluster. One that asks to join is told that in the answer to its question.
pub(crate) fn judge(hello: &Hello, known: &CheckContext<'_>) -> Result<Arc<Peer>, Refusal> {
    if hello.node == known.own {
        return Err(Refusal::OwnNode);
    }
    let name = hello.name.clone();
    if let Some(dialed) = known.dialed
        && dialed.name != name
    {
        return Err(Refusal::Name {
            address: dialed.address(),
            expected: dialed.name.clone(),
            found: name,
            key: dialed.key.clone(),
        });
    }
    if NodeId::of(&name) != hello.node {
        return Err(Refusal::Malformed);
    }
    let joins = hello.purpose == Purpose::Join;
    if hello.cluster != known.cluster && !joins {
        let (ours, theirs) = (known.cluster, hello.cluster);
        return Err(Refusal::Cluster { name, ours, theirs });
    }
    // An acceptor has done its part of the handshake: it hears the refusal of a link on the link.
    let is_told_later = joins || known.dialed.is_some() && hello.purpose == Purpose::Link;
    if !is_told_later {
        levels::check_peer(&name, hello.record_level, known.record_level)?;
    }
    match known.peers.iter().find(|peer| peer.node.name == name) {
        Some(peer) => Ok(Arc::clone(peer)),
        None if joins => {
            let node = ClusterNode { name, host: String::new(), port: 0, key: String::new() };
            Ok(Arc::new(Peer::new(node, 0)))
        }
        None if known.nodes.0.contains_key(&name) => Err(Refusal::Forgotten { name }),
        None => Err(Refusal::Node { name }),
    }
}

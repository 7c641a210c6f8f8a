//! The judgement of a hello whose sender has proved itself.

use super::super::ids::{ClusterId, NodeId};
use super::super::refusal::Refusal;
use super::Hello;
use crate::config::ClusterNode;

/// The knowledge of a node about its cluster when it judges a hello.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub(crate) cluster: ClusterId,
    pub(crate) own: NodeId,
    /// All nodes of the configuration.
    pub(crate) nodes: &'a [ClusterNode],
    /// The node that was dialed; none for an accepted connection.
    pub(crate) dialed: Option<&'a ClusterNode>,
}

/// The node that a proved hello is from.
///
/// # Errors
/// [`Refusal`]: the node is another one than was dialed, of another cluster, unknown, or this one.
pub(crate) fn judge<'a>(hello: &Hello, known: &Known<'a>) -> Result<&'a ClusterNode, Refusal> {
    if hello.node == known.own {
        return Err(Refusal::OwnNode);
    }
    if let Some(dialed) = known.dialed
        && dialed.name != hello.name
    {
        return Err(Refusal::Name {
            address: dialed.address(),
            expected: dialed.name.clone(),
            found: hello.name.clone(),
            key: dialed.key.clone(),
        });
    }
    if hello.cluster != known.cluster {
        return Err(Refusal::Cluster {
            name: hello.name.clone(),
            ours: known.cluster,
            theirs: hello.cluster,
        });
    }
    if NodeId::of(&hello.name) != hello.node {
        return Err(Refusal::Malformed);
    }
    let listed = known.nodes.iter().find(|node| node.name == hello.name);
    listed.ok_or_else(|| Refusal::Node { name: hello.name.clone() })
}

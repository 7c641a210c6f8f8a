//! The nodes of a cluster, with their names and ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use replication::{ClusterId, MemberId, NodeId};

/// The nodes of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    pub(crate) cluster: ClusterId,
    /// The own node.
    pub(crate) me: NodeId,
    /// All nodes, this one included.
    pub(crate) names: BTreeMap<NodeId, Arc<str>>,
}

impl Nodes {
    /// Names of all nodes, in order of the names.
    pub(crate) fn sorted_names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = self.names.values().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Name of this node.
    pub(crate) fn my_name(&self) -> Arc<str> {
        Arc::clone(self.names.get(&self.me).expect("this node is one of the cluster"))
    }

    /// Name of the node of a member.
    pub(crate) fn name_of(&self, member: MemberId) -> Option<Arc<str>> {
        self.names.get(&member.node()).cloned()
    }
}

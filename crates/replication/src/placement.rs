//! The nodes that a group is to be on.

use std::ops::RangeInclusive;

use crate::ids::{MemberId, NodeId};

/// The nodes that a group is to be on, as one node knows them. Nodes learn of a change one after the other.
pub trait GroupPlacement {
    /// The incarnations that the member of a node may have; none if the group is not to be on the node.
    fn incarnations(&self, node: NodeId) -> Option<RangeInclusive<u16>>;

    /// True for a node of the cluster.
    fn is_known(&self, node: NodeId) -> bool;

    /// True if a member is of a node that is forgotten, or of a time before its node was.
    fn is_gone(&self, member: MemberId) -> bool;

    /// The nodes that the group is to be on; none if they are not all known, so that no member leaves.
    fn chosen(&self) -> Option<Vec<NodeId>>;

    /// True if a member is of a node of the cluster that is not to have it any more, or is to have another one.
    fn is_leaving(&self, member: MemberId) -> bool {
        let node = member.node();
        let may_be = self.incarnations(node);
        self.is_known(node) && may_be.is_none_or(|may_be| member.incarnation() < *may_be.start())
    }

    /// True if each node that the group is to be on has one of these voters: members may leave.
    fn have_all(&self, voters: &[MemberId]) -> bool {
        let has_one = |node: NodeId| {
            let may_be = self.incarnations(node);
            let mut of_node = voters.iter().filter(|voter| voter.node() == node);
            may_be.is_some_and(|may_be| of_node.any(|it| may_be.contains(&it.incarnation())))
        };
        self.chosen().is_some_and(|chosen| chosen.into_iter().all(has_one))
    }
}

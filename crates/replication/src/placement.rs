//! The nodes that a group is to be on.

use std::ops::RangeInclusive;

use crate::ids::{MemberId, NodeId};

/// The nodes that a group is to be on, as one node knows them. Nodes learn of a change one after the other.
pub trait GroupPlacement {
    /// The incarnations that a new member on a node may have; none if the group is not to be on the node.
    fn incarnations(&self, node: NodeId) -> Option<RangeInclusive<u16>>;

    /// The first incarnation of the members that a node may have since it was chosen, or, if it is not, may have once it is
    /// chosen again; none if it is not a node of the cluster.
    fn first_incarnation(&self, node: NodeId) -> Option<u16>;

    /// True if a member is of a node that is forgotten, or of a time before its node was.
    fn is_gone(&self, member: MemberId) -> bool;

    /// The nodes that the group is to be on; none if they are not all known, so that no member leaves.
    fn chosen(&self) -> Option<Vec<NodeId>>;

    /// True if a member is of a node of the cluster that is not to have the group. One that is of an earlier choice of a
    /// node that is chosen again stays, if it is still there.
    fn is_leaving(&self, member: MemberId) -> bool {
        self.incarnations(member.node()).is_none() && self.may_be_left_out(member)
    }

    /// True if the group need not have a member. One of a later choice than is known here is needed.
    fn may_be_left_out(&self, member: MemberId) -> bool {
        let first = self.first_incarnation(member.node());
        first.is_some_and(|first| member.incarnation() < first)
    }

    /// True if each node that the group is to be on has one of these voters: members may leave.
    fn have_all(&self, voters: &[MemberId]) -> bool {
        let has_one = |node: NodeId| {
            let last = self.incarnations(node).map(|new| *new.end());
            let mut of_node = voters.iter().filter(|voter| voter.node() == node);
            last.is_some_and(|last| of_node.any(|voter| voter.incarnation() <= last))
        };
        self.chosen().is_some_and(|chosen| chosen.into_iter().all(has_one))
    }
}

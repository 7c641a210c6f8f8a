//! The ids of the simulated cluster.

use replication::{ClusterId, GroupId, MemberId, NodeId};

pub(crate) const CLUSTER: ClusterId = ClusterId(77);
pub(crate) const GROUP: GroupId = GroupId(5);

/// The id of a node by its number.
pub(crate) fn node_id(number: usize) -> NodeId {
    NodeId::new(number as u64 + 1).expect("a node has a number")
}

/// The first member of a node.
pub(crate) fn member_id(number: usize) -> MemberId {
    node_id(number).member(1)
}

/// The number of the node of a member.
pub(crate) fn number_of(member: MemberId) -> usize {
    node_number(member.node())
}

/// The number of a node.
pub(crate) fn node_number(node: NodeId) -> usize {
    usize::try_from(node.get()).expect("few nodes") - 1
}

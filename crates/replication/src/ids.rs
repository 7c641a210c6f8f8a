//! Ids of clusters, groups, nodes and members.

use std::fmt;

/// Id of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClusterId(pub u64);

/// Id of a group: that of its vhost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(pub u64);

impl GroupId {
    /// The group of the metadata.
    pub const METADATA: Self = Self(u64::MAX);
    /// No group: frames that concern two nodes and not a group.
    pub const NODES: Self = Self(u64::MAX - 1);
}

/// Id of a node, of 48 bits. Never 0, never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u64);

impl NodeId {
    /// The id, unless it is 0 or has more than 48 bits.
    #[must_use]
    pub fn new(id: u64) -> Option<Self> {
        (id != 0 && id >> 48 == 0).then_some(Self(id))
    }

    /// The id as a number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// The member on this node with the given incarnation.
    #[must_use]
    pub fn member(self, incarnation: u16) -> MemberId {
        MemberId(self.0 << 16 | u64::from(incarnation))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Id of a member of a group: its node, and the incarnation of its replica. The incarnation rises when a replica is
/// rebuilt, so that a disk that has lost its vote never votes twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemberId(u64);

impl MemberId {
    /// The id, unless its node is 0.
    #[must_use]
    pub fn new(id: u64) -> Option<Self> {
        (id >> 16 != 0).then_some(Self(id))
    }

    /// The id as a number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// The node of the member.
    #[must_use]
    pub fn node(self) -> NodeId {
        NodeId(self.0 >> 16)
    }

    /// The incarnation of its replica.
    #[must_use]
    pub fn incarnation(self) -> u16 {
        let [.., high, low] = self.0.to_be_bytes();
        u16::from_be_bytes([high, low])
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.node(), self.incarnation())
    }
}

/// Id of a run of a node's process, drawn when it starts: its monotonic clock begins anew with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunId(pub u64);

//! Files on their way to a node.

use replication::{MemberId, NodeId};
use simdisk::Disk;
use storage::{EntryIndex, HardState, Installation, Shipment};

/// The files that a node asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Need {
    /// The log ends before the first entry that the leader still has.
    Behind,
    /// The replica is lost, or must not be used any more.
    Replacement,
}

/// Files that are being prepared for a node.
#[derive(Debug)]
pub(crate) struct Preparation {
    pub(super) node: NodeId,
    pub(super) need: Need,
    pub(super) sealed: Option<EntryIndex>,
}

/// Files for a node.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) need: Need,
    pub(crate) member: MemberId,
    pub(crate) shipment: Shipment<Disk>,
    pub(crate) state: HardState,
}

/// A shipment that arrives at a node.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// The leader, with the run of its process.
    pub(crate) from: (usize, u64),
    pub(crate) need: Need,
    pub(crate) member: MemberId,
    pub(crate) state: HardState,
    pub(crate) shipment: Shipment<Disk>,
    pub(crate) installation: Installation<Disk>,
}

//! Files on their way to a node.

use replica::{PreparedShipment, ShipmentNeed};
use replication::MemberId;
use simdisk::Disk;
use storage::{HardState, Installation, Shipment};

/// Files for a node.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) need: ShipmentNeed,
    pub(crate) files: Box<PreparedShipment<Disk>>,
}

/// A shipment that arrives at a node.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// The leader, with the run of its process.
    pub(crate) from: (usize, u64),
    pub(crate) need: ShipmentNeed,
    pub(crate) member: MemberId,
    pub(crate) state: HardState,
    pub(crate) shipment: Shipment<Disk>,
    pub(crate) installation: Installation<Disk>,
}

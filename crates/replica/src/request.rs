//! Requests to a replica.

use replication::{MemberId, NodeId};

/// A request to a replica. The driver chooses an id for each, and gets it back with the answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RequestId(pub u64);

/// The files that a member asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ShipmentNeed {
    /// The member has a log, which ends before the first entry that the leader still has.
    Behind,
    /// The replica is lost, or must not be used any more: its next incarnation gets the files.
    Replacement,
}

/// A node asks for files.
#[derive(Clone, Copy, Debug)]
pub struct ShipmentRequest {
    /// The id of the request.
    pub id: RequestId,
    /// The node.
    pub node: NodeId,
    /// The files.
    pub need: ShipmentNeed,
    /// The member for which the node has files of this leader already, as long as it leads in the same term.
    pub known: Option<MemberId>,
}

//! Work and news for the driver of a replica.

use replication::{AxisOrigin, MemberId, MembershipChange, NodeId, Role};
use storage::{Directory, EntryIndex, LogEntry, Term};

use crate::leading::preparation::Files;
use crate::leading::transfer::TransferError;
use crate::request::{RequestId, ShipmentNeed};
use crate::service::Effects;

/// Work for the driver, in order.
#[derive(Debug)]
pub enum Output<D: Directory> {
    /// The node that leads the vhost has changed; none if no leader is known.
    Leader(Option<NodeId>),
    /// An entry is committed. If its effects are due, the vhost has to apply it, after the outputs before.
    Committed(LogEntry, Effects),
    /// The vhost has to become the one that serves clients, after the outputs before.
    Promote {
        /// The term in which the node is elected, for [`Replica::promoted`](crate::Replica::promoted).
        term: Term,
        /// Microseconds by which the axis of the vhost is ahead of the clock of the node.
        shift_us: i64,
    },
    /// The node serves the vhost no more.
    ServesNoMore,
    /// Close the clients of the vhost at once, and give its contents up. The replica is opened anew later.
    Depose(Deposition),
    /// Log a digest of the durable state, which the replicas compare with theirs.
    LogDigest,
    /// The disk has no room for the log, or has room again.
    OutOfRoom(bool),
    /// Ask for files of the leader, which may be on this node.
    Wanted(ShipmentNeed, NodeId),
    /// The result of a transfer of the lead.
    Transferred(RequestId, Result<(), TransferError>),
    /// The entry of a barrier is committed; none if the node does not lead any more.
    Barrier(RequestId, Option<EntryIndex>),
    /// Files for another node, or the reason why there are none.
    Shipment(RequestId, Result<Files<D>, String>),
    /// News for the operator.
    Event(Event),
}

/// The reason why a node leads a vhost no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deposition {
    /// Another node leads, or may.
    LeaderChanged,
    /// The disk of this node does not answer.
    DiskStalls,
    /// The disk of this node has no room for the log.
    DiskFull,
}

/// News for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The member has this role now.
    Role(Role),
    /// The member begins to lead, and continues the axis of time from there.
    AxisContinued(AxisOrigin),
    /// The node serves the vhost in this term.
    Serves(Term),
    /// An entry is proposed.
    Proposed(EntryIndex),
    /// The members of the group change with an entry.
    MembersChange(MembershipChange, EntryIndex),
    /// A member is to be removed, because its node is forgotten.
    ForgottenLeaves(MemberId),
    /// A member is to be removed, because the vhost is on other nodes.
    MovedLeaves(MemberId),
    /// A rebuilt member votes from now on.
    Votes(MemberId),
    /// Files up to an entry are offered to a member.
    Offered(MemberId, EntryIndex),
    /// The transfer of the lead to a node begins.
    TransferBegins(NodeId),
    /// The lead is transferred.
    LeadTransferred,
    /// The other node did not take the lead in time.
    TransferTooLate(NodeId),
    /// The node leads no more, and this was not planned.
    LeadLost,
    /// The replica must be rebuilt, for this reason.
    Quarantined(String),
    /// The disk is full, as this error says: the node takes no part in the vhost until there is room.
    DiskFull(String),
    /// The disk has room again.
    DiskHasRoom,
    /// No entry is committed behind this one although work waits.
    StandsStill(EntryIndex),
    /// No entry was committed behind this one for too long: the node gives up the lead.
    StandsStillTooLong(EntryIndex),
}

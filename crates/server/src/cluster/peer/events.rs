//! The events of links for the rest of the node, and the questions of links.

use bytes::Bytes;

use crate::auth::user_slots::UserCounts;
use crate::cluster::frames::control::Facts;
use crate::cluster::frames::wire::WireError;
use crate::cluster::refusal::Refusal;
use crate::membership::ids::NodeId;

/// The reason why a link is lost.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum LostCause {
    /// The peer, or the network, closed it: a process that ends closes its sockets at once.
    #[error("{0}")]
    Closed(String),
    /// The peer has sent nothing for a while.
    #[error("nothing was heard for {} ms", crate::limits::LINK_SILENCE.as_millis())]
    Silent,
    /// The peer takes no bytes.
    #[error("the peer took nothing for {} ms", crate::limits::LINK_STALL.as_millis())]
    Stalled,
    #[error("it is damaged: {0}")]
    Damaged(WireError),
    /// The peer has opened another one.
    #[error("the peer opened another one")]
    Replaced,
    #[error("{0}")]
    Refused(Refusal),
    /// The peer stops.
    #[error("the peer stops")]
    PeerStops,
    /// The node itself stops.
    #[error("this node stops")]
    Stopping,
}

/// Receives what happens on links.
///
/// All calls come from the thread of the links, those about one peer one at a time and in order: `connected`, then
/// frames and pings, then `lost`. A call must not wait for anything, and may call [`Links::send`](crate::cluster::Links::send).
pub(crate) trait LinkEvents: Send + Sync {
    /// A link with a peer is open, in both directions.
    fn connected(&self, peer: NodeId);

    /// The link with a peer is lost: nothing that was sent and not answered can be relied on.
    fn lost(&self, peer: NodeId, cause: &LostCause);

    /// Frames have arrived together.
    fn frames(&self, peer: NodeId, frames: Vec<Bytes>);

    /// A ping has arrived: `sent_us` by the peer's clock before it wrote it, `received_us` by this node's clock after
    /// it was read, in microseconds of the monotonic time axes of both. `wall_skew_ms` is the distance of the peer's
    /// wall clock, positive if it is ahead.
    fn clock(&self, peer: NodeId, sent_us: u64, received_us: u64, wall_skew_ms: i64);

    /// The disk of this node is lost, and the node is to be taken in again: what its start has begun must not be used.
    fn lost_disk(&self);

    /// The cluster is founded: from now on the node may vote.
    fn founded(&self);
}

/// The part of the node that links tell their peers about.
pub(crate) trait LocalNode: Send + Sync {
    /// Facts for other nodes to show, with the alarms of this one. May take some milliseconds.
    fn facts(&self) -> Facts;

    /// The clients that this node counts for users with limits.
    fn users(&self) -> UserCounts;

    /// A peer has told a change of its alarms. Must not wait.
    fn alarm_told(&self);

    /// A peer has told a newer list of the nodes, which the links follow already. Must not wait.
    fn nodes_told(&self);

    /// The metadata have taken effect at a peer, up to this position of their log.
    fn followed(&self, peer: NodeId, position: u64);
}

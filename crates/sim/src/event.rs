//! Events of a run.

use replica::ShipmentNeed;

use crate::cluster::network::Arrival;
use crate::cluster::process::Later;
use crate::relays::ends::RelayEvent;

/// An event.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Event {
    Tick(usize),
    Ping(usize),
    Look,
    Arrival(Arrival),
    /// A node learns that the process of another is gone.
    Lost(usize, usize),
    Later(usize, u64, Later),
    Start(usize),
    /// A node asks for files.
    Ask(usize, ShipmentNeed),
    /// Octets of files arrive at a node.
    Chunk(usize),

    Client(usize),
    Bytes(usize, usize, u64, u64, Vec<u8>),
    Nemesis(usize),
    /// A direction heals.
    Heal(usize, usize),
    /// The disk of a node has room again.
    Room(usize),
    /// A node learns of a change of the nodes that are to have the replica.
    Placed(usize, usize),
    /// A node learns that the level of record kinds has risen.
    Risen(usize),
    /// A node gets a version that reads up to this level.
    Version(usize, u16),
    /// The process of a node goes on.
    Resume(usize),
    /// The alarm of a node may be over.
    AlarmOver(usize),
    /// A piece of a stream, or octets of a relayed client, arrive.
    Relayed(RelayEvent),
    /// A node is killed for so long.
    Strike(usize, u64),
}

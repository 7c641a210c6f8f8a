//! Events of a run.

use crate::cluster::network::Arrival;
use crate::cluster::process::Later;

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

    Client(usize),
    Bytes(usize, usize, u64, u64, Vec<u8>),
    Nemesis(usize),
    /// A direction heals.
    Heal(usize, usize),
    /// The disk of a node has room again.
    Room(usize),
    /// The process of a node goes on.
    Resume(usize),
    /// A node is killed for so long.
    Strike(usize, u64),
}

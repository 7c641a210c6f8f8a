//! The ends of relays, and what arrives there.

/// The place of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Side {
    pub(crate) node: usize,
    pub(crate) run: u64,
}

/// A direction of a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Way {
    /// To the leader.
    Up,
    /// To the entry node.
    Down,
}

/// An event of a relay: something that is on its way to a node, or to a client, arrives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum RelayEvent {
    /// The next piece of a stream, at a node.
    Piece(u64, Way, usize),
    /// The next octets of the client of a relay, at its entry node.
    FromClient(u64, usize),
    /// The next octets for the client of a relay.
    ToClient(u64),
}

impl RelayEvent {
    /// The node at which it arrives.
    pub(crate) fn node(&self) -> Option<usize> {
        match self {
            Self::Piece(_, _, node) | Self::FromClient(_, node) => Some(*node),
            Self::ToClient(_) => None,
        }
    }
}

//! The stream between the entry node of a client and the leader of its vhost, over the simulated network.

use std::collections::VecDeque;

use broker::ConnectionId;
use replica::relay::Answer;

use crate::clients::client::Client;
use crate::relays::ends::{Side, Way};

/// A piece of a stream.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// The description of a client.
    Adopt,
    Answer(Answer),
    Octets(Vec<u8>),
    /// The end of this direction, or the reset of the stream.
    End,
}

/// One direction of a stream.
#[derive(Default, Debug)]
pub(super) struct Pipe {
    pub(super) newest_us: u64,
    pub(super) flying: VecDeque<Piece>,
    /// Pieces that the network holds back.
    pub(super) held: VecDeque<Piece>,
    /// Octets that were sent and not read.
    pub(super) unread: usize,
    pub(super) has_ended: bool,
    /// Since when the sender is gone, by the time that the receiver has run.
    pub(super) gone_us: Option<u64>,
    /// True once pieces were lost.
    pub(super) is_torn: bool,
}

impl Pipe {
    /// True if nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.flying.is_empty() && self.held.is_empty()
    }

    pub(super) fn tear(&mut self) {
        self.is_torn |= !self.flying.is_empty() || !self.held.is_empty();
        self.flying.clear();
        self.held.clear();
    }
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) relay: u64,
    pub(super) client: usize,
    pub(super) entry: Side,
    pub(super) leader: Side,
    pub(super) up: Pipe,
    pub(super) down: Pipe,
    /// Octets that a direction takes before it is read.
    pub(super) window: usize,
    /// Since when the question waits for an answer, by the time that the leader has run.
    pub(super) asked_us: Option<u64>,
    /// True once the leader has adopted the client.
    pub(super) was_adopted: bool,
    /// The client at the leader.
    pub(super) adopted: Option<ConnectionId>,
    /// Since when no entry node passes on octets, by the time that the leader has run.
    pub(super) left_us: Option<u64>,
    /// True once the leader has no more to do with the client.
    pub(super) is_over: bool,
    /// Octets of the leader that the stream has not taken.
    pub(super) unsent: VecDeque<u8>,
    /// Octets that have left the leader, and that the client has not heard.
    pub(super) expected: VecDeque<u8>,
    /// Octets of the client that have reached the leader.
    pub(super) up_bytes: u64,
    /// Octets that the client had sent when it ended its stream, once the entry node has passed on that end.
    pub(super) sent_bytes: Option<u64>,
    /// Reads what leaves the leader, for the checks of what leaves a node.
    pub(super) tap: Option<Client>,
    /// Purges of the client that are not answered, and that may still be done; and those that are deletions.
    pub(super) doubts: (usize, u64),
}

impl Stream {
    pub(super) fn new(
        relay: u64,
        client: usize,
        (entry, leader): (Side, Side),
        window: usize,
    ) -> Self {
        Self {
            relay,
            client,
            entry,
            leader,
            up: Pipe::default(),
            down: Pipe::default(),
            window,
            asked_us: None,
            was_adopted: false,
            adopted: None,
            left_us: None,
            is_over: false,
            unsent: VecDeque::new(),
            expected: VecDeque::new(),
            up_bytes: 0,
            sent_bytes: None,
            tap: None,
            doubts: (0, 0),
        }
    }

    pub(super) fn pipe(&mut self, way: Way) -> &mut Pipe {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }

    pub(super) fn ends(&self, way: Way) -> (usize, usize) {
        match way {
            Way::Up => (self.entry.node, self.leader.node),
            Way::Down => (self.leader.node, self.entry.node),
        }
    }

    /// Octets that a direction takes now.
    pub(super) fn room(&mut self, way: Way) -> usize {
        let window = self.window;
        window.saturating_sub(self.pipe(way).unread)
    }
}

//! A relay: the entry node of a client, and the sockets of both.

use std::collections::VecDeque;
use std::sync::Arc;

use replica::relay::{Downwards, Farewell, LeaderWatch, Seek, Upwards};
use session::Session;

use crate::relays::ends::Side;

/// The phase of a relay.
#[derive(Debug)]
pub(super) enum Phase {
    Seeks(Seeking),
    Copies,
    /// The client gets `connection.close` of the entry node.
    Closes(Farewell),
    /// The client gets the last octets.
    Over,
}

/// The search for the leader.
#[derive(Debug)]
pub(super) struct Seeking {
    pub(super) seek: Seek,
    /// The node that is asked, and the leader that was known then.
    pub(super) asked: Option<(Arc<str>, Option<Arc<str>>)>,
    /// The time from which on the next one is asked, by the time that the entry node has run.
    pub(super) again_us: u64,
}

/// Octets that have arrived at the entry node, and wait for it to read.
#[derive(Default, Debug)]
pub(super) struct Inbox {
    pub(super) octets: VecDeque<u8>,
    pub(super) has_ended: bool,
}

/// Octets on their way over a client's socket, with their time, the last ones with the end of the stream.
#[derive(Default, Debug)]
pub(super) struct Flying {
    pieces: VecDeque<(u64, Vec<u8>, bool)>,
    /// Octets of all pieces: asked for with each piece, of which a slow client leaves thousands.
    count: usize,
}

impl Flying {
    pub(super) fn push(&mut self, at_us: u64, octets: Vec<u8>, is_last: bool) {
        self.count += octets.len();
        self.pieces.push_back((at_us, octets, is_last));
    }

    /// Takes the first piece that has arrived until now.
    pub(super) fn pop_arrived(&mut self, now_us: u64) -> Option<(Vec<u8>, bool)> {
        let (_, octets, is_last) = self.pieces.pop_front_if(|it| it.0 <= now_us)?;
        self.count -= octets.len();
        Some((octets, is_last))
    }

    /// Number of octets.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// A relay, or the search for one.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) client: usize,
    pub(super) entry: Side,
    pub(super) phase: Phase,
    /// The stream to the node that is asked, or leads.
    pub(super) stream: Option<u64>,
    /// The session of the entry node, up to `connection.open`.
    pub(super) session: Session,
    pub(super) up: Upwards,
    pub(super) down: Downwards,
    pub(super) watch: LeaderWatch,
    pub(super) from_client: Inbox,
    pub(super) from_leader: Inbox,
    /// Octets that were read, and wait for the other side.
    pub(super) to_leader: Vec<u8>,
    pub(super) to_client: Vec<u8>,
    /// Most octets of a read, and of what a client's socket takes before the client reads.
    pub(super) read_max: usize,
    pub(super) window: usize,
    pub(super) client_up: Flying,
    pub(super) client_down: Flying,
    pub(super) client_newest_us: [u64; 2],
    /// The time from which on the client reads.
    pub(super) client_reads_from_us: u64,
    /// Octets that the client has sent.
    pub(super) client_sent: u64,
    /// The beginning of a frame that the client has heard.
    pub(super) heard: Vec<u8>,
    /// Octets of the entry node's own, once there are any, behind so many of the leader's that the client has not heard.
    pub(super) own: Option<(usize, VecDeque<u8>)>,
    /// True once the client has heard a close.
    pub(super) has_close: bool,
    /// True if the client has ended the connection, or is told that it is over.
    pub(super) has_left: bool,
    /// The times since when the leader is another one, has hung up, is lost, and the client has gone, by the time that the entry
    /// node has run.
    pub(super) since_us: [Option<u64>; 4],
    /// True if the end of the relay promises that no frame is cut.
    pub(super) is_orderly: bool,
}

impl Relay {
    /// Octets that the socket of the client takes now.
    pub(super) fn client_room(&self) -> usize {
        self.window.saturating_sub(self.client_down.count())
    }
}

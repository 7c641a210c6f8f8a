//! One connection as the server has it: a session, an outbox, and the client's ear at its end.

use std::io::IoSlice;
use std::sync::Arc;

use broker::time::Time;
use broker::{ConnectionId, Lsn};
use session::{Alive, Outbox, Session, SessionOptions, Traffic};

use super::ear::Ear;

/// Bytes that may wait for a client that does not read before the server stops reading from it.
const UNSENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Condition that a connection waits for before more is read from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    Nothing,
    /// The log has to be durable up to here.
    Log(Lsn),
}

/// A connection.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Peer {
    pub(super) session: Session,
    pub(super) connection: Option<ConnectionId>,
    pub(super) outbox: Outbox,
    pub(super) unread: Vec<u8>,
    pub(super) user: String,
    pub(super) wait: Wait,
    /// The core has sent `connection.close`.
    pub(super) is_closing: bool,
    /// The core wants to know when less waits.
    pub(super) is_stalled: bool,
    /// The client reads.
    pub(super) listens: bool,
    pub(super) is_over: bool,
    wrote: bool,
    ear: Ear,
}

impl Peer {
    pub(super) fn new(options: &Arc<SessionOptions>, now: Time) -> Self {
        Self {
            session: Session::new(Arc::clone(options), now),
            connection: None,
            outbox: Outbox::default(),
            unread: Vec::new(),
            user: String::new(),
            wait: Wait::Nothing,
            is_closing: false,
            is_stalled: false,
            listens: true,
            is_over: false,
            wrote: false,
            ear: Ear::default(),
        }
    }

    /// True if the server reads from the connection now.
    pub(super) fn is_read(&self) -> bool {
        !self.is_over && self.wait == Wait::Nothing && self.outbox.len() < UNSENT_BYTES_MAX
    }

    /// Largest frame that is written to it.
    pub(super) fn frame_max(&self) -> u32 {
        self.session.frame_max()
    }

    /// A client that reads takes everything, in slices of `piece` bytes.
    pub(super) fn write(&mut self, piece: usize) {
        while self.listens && !self.outbox.is_empty() {
            let mut slices = [IoSlice::new(&[]); 3];
            let filled = self.outbox.slices(&mut slices);
            assert!(filled > 0, "what waits is offered");
            let bytes: Vec<u8> = slices[..filled]
                .iter()
                .flat_map(|slice| slice.iter().copied())
                .take(piece)
                .collect();
            let before = self.outbox.len();
            self.outbox.consume(bytes.len());
            assert_eq!(self.outbox.len() + bytes.len() as u64, before);
            let frame_max = self.connection.map(|_| self.session.frame_max());
            self.ear.hear(&bytes, frame_max);
            self.wrote = true;
        }
    }

    /// Checks that all output was read and is whole.
    pub(super) fn check(&self) {
        assert!(!self.outbox.is_empty() || self.ear.is_idle(), "half said: {:?}", self.ear);
    }

    /// The session is called when its time has come.
    pub(super) fn tick(&mut self, now: Time) {
        let has_written = std::mem::take(&mut self.wrote);
        let traffic = Traffic { has_written, is_read: self.is_read() };
        let alive = self.session.tick(now, traffic, self.outbox.tail());
        self.is_over |= alive == Alive::No;
    }
}

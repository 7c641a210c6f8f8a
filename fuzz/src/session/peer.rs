//! One connection as the server has it: a session, an outbox, and the client's ear at its end.

use std::io::IoSlice;
use std::sync::Arc;

use broker::time::Time;
use broker::{ConnectionId, Lsn};
use session::{Alive, Session, SessionOptions, Traffic};

use super::ear::Ear;
use super::node::SharedWire;

/// Bytes that may wait for a client that does not read before the server stops reading from it.
const UNSENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A connection.
pub(super) struct Peer {
    pub(super) session: Session,
    pub(super) connection: Option<ConnectionId>,
    pub(super) wire: SharedWire,
    pub(super) unread: Vec<u8>,
    pub(super) user: String,
    /// The position up to which the log has to be durable before more is read.
    pub(super) waits_for: Option<Lsn>,
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
            wire: SharedWire::default(),
            unread: Vec::new(),
            user: String::new(),
            waits_for: None,
            listens: true,
            is_over: false,
            wrote: false,
            ear: Ear::default(),
        }
    }

    /// True if the server reads from the connection now.
    pub(super) fn is_read(&self) -> bool {
        let unsent = self.wire.get().outbox.len();
        !self.is_over && self.waits_for.is_none() && unsent < UNSENT_BYTES_MAX
    }

    /// A client that reads takes everything, in slices of `piece` bytes.
    pub(super) fn write(&mut self, piece: usize) {
        let outbox = &mut self.wire.get_mut().outbox;
        while self.listens && !outbox.is_empty() {
            let mut slices = [IoSlice::new(&[]); 3];
            let filled = outbox.slices(&mut slices);
            assert!(filled > 0, "what waits is offered");
            let bytes: Vec<u8> = slices[..filled]
                .iter()
                .flat_map(|slice| slice.iter().copied())
                .take(piece)
                .collect();
            let before = outbox.len();
            outbox.consume(bytes.len());
            assert_eq!(outbox.len() + bytes.len() as u64, before);
            let frame_max = self.connection.map(|_| self.session.frame_max());
            self.ear.hear(&bytes, frame_max);
            self.wrote = true;
        }
    }

    /// Checks that all output was read and is whole.
    pub(super) fn check(&self) {
        let is_unread = !self.wire.get().outbox.is_empty();
        assert!(is_unread || self.ear.is_idle(), "half said: {:?}", self.ear);
    }

    /// The session is called when its time has come.
    pub(super) fn tick(&mut self, now: Time) {
        let has_written = std::mem::take(&mut self.wrote);
        let traffic = Traffic { has_written, is_read: self.is_read() };
        let alive = self.session.tick(now, traffic, self.wire.get_mut().outbox.tail());
        self.is_over |= alive == Alive::No;
    }
}

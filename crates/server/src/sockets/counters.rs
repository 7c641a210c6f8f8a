//! Byte counters of one connection's two halves.
//!
//! No counter changes per message. Each half counts its reads or writes and their bytes; sums are computed
//! for HTTP requests and samples.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::snapshot::client::Traffic;
use crate::sockets::socket_writer::SocketWriter;

/// State of the reading half of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadState {
    Reading,
    /// The client has published while an alarm is on.
    Blocked,
    /// The next read waits for the disk.
    Throttled,
}

/// Counters of the reading half. Only its task writes them, so relaxed loads and stores are enough.
#[derive(Default, Debug)]
pub(crate) struct ReadCounters {
    bytes: AtomicU64,
    reads: AtomicU64,
    state: AtomicU8,
}

impl ReadCounters {
    /// Counts a read of `bytes` bytes.
    pub(crate) fn count(&self, bytes: usize) {
        self.bytes.store(self.bytes() + bytes as u64, Ordering::Relaxed);
        self.reads.store(self.reads() + 1, Ordering::Relaxed);
    }

    pub(crate) fn set_state(&self, state: ReadState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> ReadState {
        let state = self.state.load(Ordering::Relaxed);
        let all = [ReadState::Reading, ReadState::Blocked, ReadState::Throttled];
        all.into_iter().find(|one| *one as u8 == state).expect("only states are stored")
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

/// The two halves of a connection, as other threads see them.
#[derive(Clone, Debug)]
pub(crate) struct Socket {
    pub(crate) writer: Arc<SocketWriter>,
    pub(crate) read_counters: Arc<ReadCounters>,
}

impl Socket {
    /// Traffic so far.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            received_bytes: self.read_counters.bytes(),
            reads: self.read_counters.reads(),
            sent_bytes: self.writer.written(),
            writes: self.writer.writes(),
            unsent_bytes: self.writer.unsent(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_counters_hold_bytes_reads_and_state() {
        let read_counters = ReadCounters::default();
        assert_eq!(read_counters.state(), ReadState::Reading);
        read_counters.count(10);
        read_counters.count(5);
        read_counters.set_state(ReadState::Throttled);
        let counted = (read_counters.bytes(), read_counters.reads(), read_counters.state());
        assert_eq!(counted, (15, 2, ReadState::Throttled));
    }
}

//! Options of a log, the errors of writing it, and the result of a write.

use std::io;

use crate::format::Lsn;
use crate::limits::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};
use crate::replicated::EntryFault;

/// Options of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogOptions {
    /// Id that a new log gets and that all its files carry.
    pub log_id: u64,
    /// Condition for a batch to count as durable.
    pub durability: Durability,
    /// Smallest size of a segment, in bytes.
    pub segment_bytes_min: u64,
    /// Largest size of a segment, in bytes, unless a single batch is larger.
    pub segment_bytes_max: u64,
    /// Creates a log in a directory that has none; otherwise opening such a directory fails.
    pub create_if_missing: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            log_id: 0,
            durability: Durability::default(),
            segment_bytes_min: SEGMENT_BYTES_MIN,
            segment_bytes_max: SEGMENT_BYTES_MAX,
            create_if_missing: true,
        }
    }
}

/// Condition for a batch to count as durable, so that it may be confirmed to a client.
///
/// At either level a batch reaches the log as a whole or not at all, and batches keep their order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Durability {
    /// After `fdatasync`: a batch survives a crash of the process or of the operating system, and a
    /// power cut.
    ///
    /// Not promised: that a batch survives a disk that acknowledges a sync before the bytes are safe,
    /// or the loss of the disk.
    #[default]
    Fsync,
    /// As soon as the operating system has accepted the write: a batch survives a crash of the process.
    ///
    /// Not promised: that a batch survives a crash of the operating system or a power cut. Any batch
    /// of the segment in use may be lost then, with all later ones. Sealed segments are synced.
    Os,
}

/// Reason for which the log cannot be written. A batch that is not confirmed yet must never be.
#[derive(thiserror::Error, Debug)]
pub enum LogError {
    /// A write or a sync failed. It is not retried: after a failed sync the content of the disk is
    /// unknown.
    #[error("{doing}: {error}")]
    Io {
        /// The operation.
        doing: String,
        /// The system's error.
        error: io::Error,
    },
    /// The disk has no room for the next segment. Nothing was written: the same batch can be written
    /// when there is room again.
    #[error("{doing}: {error}")]
    Full {
        /// The operation.
        doing: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// An entry cannot follow the last one. Nothing was written.
    #[error(transparent)]
    Entry(#[from] EntryFault),
    /// An earlier write failed.
    #[error("the log has failed before")]
    Failed,
}

impl LogError {
    /// True if nothing was written, so that the log can be written on.
    pub(crate) fn leaves_log_usable(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Entry(_))
    }

    /// True if the same batch can be written when the disk has room again.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }
}

/// Result of a write.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Written {
    /// All records up to this position are durable.
    pub durable: Lsn,
    /// Bytes written.
    pub bytes: u64,
    /// Records written.
    pub records: u64,
}

/// Makes a [`LogError::Io`] of an error in `operation`.
pub(crate) fn io_failed(operation: &'static str) -> impl FnOnce(io::Error) -> LogError {
    move |error| LogError::Io { doing: operation.to_owned(), error }
}

//! Options of a replicated log, and the errors of reading entries.

use std::io;

use super::entry::{EntryFault, EntryIndex};
use crate::log::LogOptions;

/// Members of a group that begins.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Founding {
    /// Members that vote.
    pub voters: Vec<u64>,
    /// Members that only receive.
    pub learners: Vec<u64>,
    /// Treatment of a log without a group in the directory.
    pub lone_log: LoneLog,
}

/// Treatment of a log without a group, where a group begins.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LoneLog {
    /// An empty log takes the place of one without records, and all members begin with entry 1. Records are refused.
    #[default]
    Replace,
    /// The content becomes the snapshot at entry 1, which every other member needs.
    Adopt,
}

/// Options of a replicated log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplicatedOptions {
    /// Options of the files; the log's id is the group's.
    pub log: LogOptions,
    /// Id of the cluster.
    pub cluster_id: u64,
    /// Id of the member whose log this is.
    pub member_id: u64,
    /// Begins the group if the directory holds no replicated log. `None`: such a directory is refused.
    pub founding: Option<Founding>,
    /// Bytes of the newest entries that are kept in memory.
    pub tail_bytes_max: usize,
    /// Bytes of entries in sealed files that are kept for members that still need them.
    pub retention_bytes: u64,
}

/// Reason for which an entry or its term cannot be read.
#[derive(thiserror::Error, Debug)]
pub enum EntryError {
    /// The entry is older than the first: its records stand in files without entries.
    #[error("entries before {first} are compacted")]
    Compacted {
        /// First entry that is there.
        first: EntryIndex,
    },
    /// The entry is newer than the last.
    #[error("the last entry is {last}")]
    Unavailable {
        /// Last entry.
        last: EntryIndex,
    },
    /// The octets of an entry on the disk have changed.
    #[error("{file}, octet {offset}: entry {index} is damaged")]
    Damaged {
        /// Name of the file.
        file: String,
        /// Offset in the file.
        offset: u64,
        /// The entry.
        index: EntryIndex,
    },
    /// An entry on the disk has a fault.
    #[error(transparent)]
    Fault(#[from] EntryFault),
    /// An operation on the disk failed.
    #[error("{doing}: {error}")]
    Io {
        /// The operation.
        doing: String,
        /// The system's error.
        error: io::Error,
    },
}

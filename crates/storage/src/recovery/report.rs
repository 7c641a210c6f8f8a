//! Result of opening a log: the report, the progress on the way, and the errors.

use std::io;

use crate::format::Lsn;
use crate::manifest::{MANIFEST, Manifest};

/// Reason for which a log cannot be opened. Nothing was changed.
#[derive(thiserror::Error, Debug)]
pub enum OpenError {
    /// An operation on the disk failed.
    #[error("{doing}: {error}")]
    Io {
        /// The operation.
        doing: String,
        /// The system's error.
        error: io::Error,
        /// True if the disk did not take something: what it has stored may be readable.
        is_write: bool,
    },
    /// A file was written by a newer version of Leveret.
    #[error("{file} has format version {version}, but this Leveret knows version {known}")]
    Version {
        /// Name of the file.
        file: String,
        /// Version of its format.
        version: u32,
        /// Newest version that this program knows.
        known: u32,
    },
    /// The manifest is missing, damaged, or that of another log.
    #[error("{file}: {problem}")]
    Manifest {
        /// Name of the file.
        file: &'static str,
        /// The problem.
        problem: String,
    },
    /// The log without a group that is to be replaced by one of a group is not empty.
    #[error("{records} records and {damages} damaged places are in a log that belongs to no group")]
    HasContent {
        /// Records that are in use.
        records: u64,
        /// Places that cannot be read.
        damages: usize,
    },
    /// The hard state of a replicated log is lost or that of another member: the member must not vote, and is
    /// rebuilt under a new id.
    #[error("raft: {problem}; the member does not vote")]
    DoesNotVote {
        /// The problem.
        problem: String,
    },
}

/// Damage to bytes that were durable. Copies of the bytes are kept in a file of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Name of the damaged file.
    pub file: String,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length, in bytes.
    pub len: u64,
    /// Last position before the damage that could be read.
    pub after: Lsn,
    /// The problem.
    pub problem: &'static str,
    /// Name of the file with the copies, if there were bytes to copy.
    pub kept_in: Option<String>,
    /// Position and kind of the record that was damaged, as far as they can be read.
    pub record: Option<(Lsn, u8)>,
}

impl OpenError {
    pub(crate) fn no_manifest() -> Self {
        Self::Manifest { file: MANIFEST, problem: "missing".to_owned() }
    }

    /// Error of opening a replicated log as one without a group.
    pub(crate) fn is_replicated() -> Self {
        let problem = "belongs to a replicated log; nothing is changed".to_owned();
        Self::Manifest { file: MANIFEST, problem }
    }

    /// Error of opening a log without a group as a replicated one.
    pub(crate) fn is_not_replicated() -> Self {
        let problem = "belongs to a log without a group; nothing is changed".to_owned();
        Self::Manifest { file: MANIFEST, problem }
    }

    pub(crate) fn does_not_vote(problem: impl Into<String>) -> Self {
        Self::DoesNotVote { problem: problem.into() }
    }

    /// Error for the manifest of another log.
    pub(crate) fn other_log(manifest: &Manifest, log_id: u64) -> Self {
        let problem = format!(
            "belongs to log {}, and this is log {log_id}; nothing is changed",
            manifest.log_id
        );
        Self::Manifest { file: MANIFEST, problem }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}: {}, {} bytes", self.file, self.offset, self.problem, self.len)?;
        match &self.kept_in {
            Some(name) => write!(f, ", kept in {name}"),
            None => Ok(()),
        }
    }
}

/// Result of opening a log.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OpenReport {
    /// Version of the log's format: the oldest that suffices for its records. A new log has the oldest of all.
    pub format_version: u32,
    /// Number of files read.
    pub files: usize,
    /// Bytes read.
    pub bytes: u64,
    /// Number of records read.
    pub records: u64,
    /// Last position in the log.
    pub last: Lsn,
    /// Bytes at the end that a crash has left half written.
    pub torn_bytes: u64,
    /// True if the log was not closed: the last changes before a crash may be missing.
    pub was_open: bool,
    /// Damage to bytes that were durable.
    pub damages: Vec<Damage>,
}

/// Progress of reading a log.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadProgress {
    /// Number of files read.
    pub files: usize,
    /// Number of all files.
    pub files_total: usize,
    /// Bytes read, with the empty rest of the segment that was written last.
    pub bytes: u64,
    /// Bytes of all files.
    pub bytes_total: u64,
    /// Number of records read.
    pub records: u64,
}

impl ReadProgress {
    /// Share of the bytes that have been read, in percent.
    #[must_use]
    pub fn percent(&self) -> u64 {
        (self.bytes.saturating_mul(100)).checked_div(self.bytes_total).unwrap_or(100)
    }
}

/// The error of an operation that reads.
pub(crate) fn io_error(doing: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
    let doing = doing.into();
    |error| OpenError::Io { doing, error, is_write: false }
}

/// The error of an operation that changes something.
pub(crate) fn write_error(doing: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
    let doing = doing.into();
    |error| OpenError::Io { doing, error, is_write: true }
}

//! Durability of the logs, and the check of the files that are in use.

use std::time::Duration;

use crate::limits::{FILE_CHECK_BYTES_PER_SECOND, FILE_CHECK_INTERVAL};

/// The condition under which a persistent message counts as safe.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Durability {
    /// After the disk has confirmed an fsync.
    #[default]
    Fsync,
    /// After the operating system has the data: a crash of the broker loses nothing, a power failure may.
    Os,
}

impl Durability {
    /// The value in the configuration.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Os => "os",
        }
    }

    /// The value for a log.
    pub(crate) const fn of_log(self) -> storage::Durability {
        match self {
            Self::Fsync => storage::Durability::Fsync,
            Self::Os => storage::Durability::Os,
        }
    }
}

/// The files of the logs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct StorageOptions {
    /// The moment at which a confirmed message is safe; `durability`.
    pub(crate) durability: Durability,
    /// The check of the files that are in use.
    pub(crate) file_check: FileCheckOptions,
}

/// The check of the files that are in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileCheckOptions {
    /// Time from one check to the next; none for checks on demand only.
    pub(crate) interval: Option<Duration>,
    /// Bytes that a check reads in a second, at most; above 0.
    pub(crate) bytes_per_second: u64,
}

impl Default for FileCheckOptions {
    fn default() -> Self {
        Self { interval: Some(FILE_CHECK_INTERVAL), bytes_per_second: FILE_CHECK_BYTES_PER_SECOND }
    }
}

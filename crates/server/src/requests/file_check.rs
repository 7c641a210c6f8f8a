//! The check of the files that are in use.

/// The check of files that runs, or the last one since the start.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FileCheck {
    /// True while files are read.
    pub is_running: bool,
    /// Checks that have ended since the start.
    pub ended: u64,
    /// Begin of the check, in milliseconds since the Unix epoch; none before the first one.
    pub started_ms: Option<u64>,
    /// End of the check, in milliseconds since the Unix epoch; none while it runs.
    pub ended_ms: Option<u64>,
    /// Files that the check has read.
    pub files: u64,
    /// Bytes that the check has read.
    pub bytes: u64,
    /// Bytes of the files of all logs at the begin of the check.
    pub bytes_total: u64,
    /// Bytes that all checks since the start have read.
    pub bytes_ever: u64,
    /// Files that have changed since they were written: those of this check, and those that were repaired since the
    /// start.
    pub damaged: Vec<DamagedFile>,
    /// Logs that could not be read, each with the reason.
    pub unread: Vec<(String, String)>,
}

impl FileCheck {
    /// The damaged files that no other node mends.
    pub fn not_repaired(&self) -> impl Iterator<Item = &DamagedFile> {
        self.damaged.iter().filter(|one| one.repair != FileRepair::Rebuilt)
    }
}

/// A file that has changed since it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DamagedFile {
    /// Name of the vhost; `metadata` for the log of that name.
    pub vhost: String,
    /// Path of the file below the data directory.
    pub file: String,
    /// The first damaged places: offset, length, and the former content, if it is known.
    pub damages: Vec<String>,
    /// Number of damaged places.
    pub places: u64,
    /// The way in which the file is mended.
    pub repair: FileRepair,
}

/// The way in which a damaged file is mended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileRepair {
    /// The replica is rebuilt from the files of the leader.
    Rebuilt,
    /// No other node can mend it, for this reason.
    None(&'static str),
}

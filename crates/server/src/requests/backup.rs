//! Backups of the running node.

use serde_json::{Value, json};

/// The reason why a backup does not begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BackupError {
    /// Another backup runs, into this directory.
    Running(String),
    /// The directory cannot be used; a sentence for the user.
    Refused(String),
}

/// State of a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BackupState {
    /// The backup runs.
    Running,
    /// The backup is complete.
    Finished,
    /// Cancelled; the files are removed.
    Cancelled,
    /// Failed for this reason; the files are removed.
    Failed(String),
}

/// A backup, and how far it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupJob {
    /// The directory, as it was asked for.
    pub directory: String,
    /// The user who asked.
    pub user: String,
    /// State of the job.
    pub state: BackupState,
    /// Time of the beginning, in milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// Time of the end, in milliseconds since the Unix epoch; none while it runs.
    pub ended_ms: Option<u64>,
    /// Vhosts that other nodes have, and this one not: they are not in the backup.
    pub vhosts_elsewhere: Vec<String>,
    /// Number of vhosts in it.
    pub vhosts_total: u64,
    /// The vhosts that are done.
    pub vhosts: Vec<BackupVhost>,
    /// Files that the backup shares with the data directory.
    pub files_linked: u64,
    /// Bytes of these files.
    pub bytes_linked: u64,
    /// Bytes that were copied.
    pub bytes_copied: u64,
}

/// A vhost in a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupVhost {
    /// Name of the vhost.
    pub name: String,
    /// Position of the last record of its log in the backup.
    pub position: u64,
    /// A time before which all that was confirmed is in the backup, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// Files of its log.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
}

impl BackupVhost {
    /// The vhost as JSON, in answers and in `backup.json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { name, position, time_ms, files, bytes } = self;
        json!({"name": name, "position": position, "time_ms": time_ms, "files": files, "bytes": bytes})
    }
}

/// Numbers of backups since the start of the node.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BackupTotals {
    /// True while one runs.
    pub is_running: bool,
    /// Complete ones.
    pub finished: u64,
    /// Failed ones.
    pub failed: u64,
}

/// The text of `backup.json`: the node with the version of its program, beginning and end in milliseconds since the
/// Unix epoch, and the vhosts.
#[must_use]
pub(crate) fn backup_file(
    (node, version): (&str, &str),
    (started_ms, ended_ms): (u64, u64),
    vhosts: &[BackupVhost],
) -> String {
    let text = json!({
        "format": 1,
        "node": node,
        "leveret_version": version,
        "started_ms": started_ms,
        "ended_ms": ended_ms,
        "vhosts": vhosts.iter().map(BackupVhost::to_json).collect::<Vec<_>>(),
    });
    format!("{text:#}\n")
}

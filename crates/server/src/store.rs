//! The data directory as the node uses it: which vhosts there are and where, and their logs.
//!
//! ```text
//! lock                 held by the process that uses the directory
//! node.json            the format's version, users, permissions, and the id of each vhost
//! vhosts/ID/           the log of a vhost; names never become paths
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use broker::time::Now;
use broker::{Lsn, Record, Replay, Vhost};
use storage::{Flags, Log, LogOptions, OpenError, RealDirectory, Releases};

use crate::config::Durability;

/// A vhost's log.
pub(crate) type VhostLog = Log<RealDirectory>;

/// Why a vhost cannot come back.
#[derive(thiserror::Error, Debug)]
pub(crate) enum RestoreError {
    #[error("cannot use {path}: {error}")]
    Directory { path: PathBuf, error: io::Error },
    #[error("log of vhost '{vhost}' in {path}: {error}")]
    Log { vhost: String, path: PathBuf, error: OpenError },
}

/// The directory of the vhost with that id.
pub(crate) fn vhost_path(data_dir: &Path, id: u64) -> PathBuf {
    data_dir.join("vhosts").join(id.to_string())
}

/// Applies a record that was read from a vhost's log.
///
/// # Errors
/// Why the record is left out; what was applied before stays.
pub(crate) fn replay_record(
    replay: &mut Replay,
    record: &storage::Record<'_>,
    releases: &mut Releases<'_>,
) -> Result<(), String> {
    let decoded = Record::decode(record.kind, record.payload).map_err(|error| error.to_string())?;
    let is_spent = record.flags.has(Flags::SPENT);
    let mut ended = |lsn: Lsn| releases.release(storage::Lsn(lsn.0));
    replay.apply(Lsn(record.lsn.0), decoded, is_spent, &mut ended)
}

/// Brings a vhost back from its log, which is begun if there is none. `vhost` is as new.
///
/// # Errors
/// [`RestoreError`], a sentence for the operator.
pub(crate) fn restore(
    path: &Path,
    id: u64,
    vhost: Vhost,
    durability: Durability,
    now: Now,
) -> Result<(VhostLog, Vhost), RestoreError> {
    let name = vhost.name().to_string();
    let began = Instant::now();
    let directory = RealDirectory::open(path)
        .map_err(|error| RestoreError::Directory { path: path.to_owned(), error })?;
    let options =
        LogOptions { log_id: id, syncs: durability == Durability::Fsync, ..LogOptions::default() };
    let mut replay = Replay::new(vhost);
    let mut problems = 0_u64;
    let opened = Log::open(directory, options, &mut |record, releases| {
        if let Err(problem) = replay_record(&mut replay, &record, releases) {
            problems += 1;
            tracing::error!(vhost = name, lsn = record.lsn.0, problem, "record left out");
        }
    });
    let (log, report) = opened.map_err(|error| RestoreError::Log {
        vhost: name.clone(),
        path: path.to_owned(),
        error,
    })?;
    for damage in &report.damages {
        tracing::error!(vhost = name, after = damage.after.0, "damaged log: {damage}");
    }
    let vhost = replay.finish(now, Lsn(report.last.0));
    let messages: u64 = vhost.queues().map(|(_, queue)| queue.message_count()).sum();
    tracing::info!(
        vhost = name,
        files = report.files,
        bytes = report.bytes,
        records = report.records,
        torn_bytes = report.torn_bytes,
        damages = report.damages.len(),
        problems,
        queues = vhost.queues().count(),
        messages,
        took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "vhost restored"
    );
    Ok((log, vhost))
}

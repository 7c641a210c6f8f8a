//! The data directory as the node uses it: which vhosts there are and where, and their logs.
//!
//! ```text
//! lock                 held by the process that uses the directory
//! node.json            the format's version, users, permissions, and each vhost with its id
//! global_parameters.json  what its name says
//! vhosts/ID/           the log of a vhost; names never become paths
//! vhosts/ID/pages/     what of its long queues waits on disk; means nothing to the next start
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use broker::page::Pages;
use broker::time::{Now, Time};
use broker::{Envelopes, Lsn, PolicyKind, Record, Recovered, RecoveredQueue, Replay, Vhost};
use storage::{Damage, Flags, Log, LogOptions, OpenError, ReadProgress, RealDirectory, References};

use crate::config::Durability;
use crate::disk::node_file::NodeFile;
use crate::disk::page_files::PageFiles;
use crate::disk::recovery_pages::PageRecovery;
use crate::disk::reserve::Reserve;
use crate::limits::{RESTORE_REPORT_INTERVAL, REUSED_PAGES_FREE_BYTES_MIN};
use crate::node::alarms;

/// A vhost's log.
pub(crate) type VhostLog = Log<RealDirectory>;

/// Why a vhost cannot come back.
#[derive(thiserror::Error, Debug)]
pub(crate) enum RestoreError {
    #[error("cannot use {path}, the log of a vhost: {error}")]
    Directory { path: PathBuf, error: io::Error },
    #[error("log of vhost '{vhost}' in {path}: {error}")]
    Log { vhost: String, path: PathBuf, error: OpenError },
    #[error("messages of vhost '{vhost}' that wait on disk cannot be read back: {problem}")]
    Pages { vhost: String, problem: String },
}

/// The directory of the vhost with that id.
pub(crate) fn vhost_path(data_dir: &Path, id: u64) -> PathBuf {
    data_dir.join("vhosts").join(id.to_string())
}

/// Removes what is left of a vhost that is deleted.
pub(crate) fn remove_vhost(data_dir: &Path, id: u64) -> io::Result<()> {
    std::fs::remove_dir_all(vhost_path(data_dir, id))?;
    std::fs::File::open(data_dir.join("vhosts"))?.sync_all()
}

/// Removes the directories of vhosts that were deleted when the broker ended. One that no vhost of this
/// node can have had is left alone.
pub(crate) fn remove_leftovers(data_dir: &Path, known: &NodeFile) {
    let Ok(entries) = std::fs::read_dir(data_dir.join("vhosts")) else { return };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_known = |id| known.vhosts.iter().any(|vhost| vhost.id == id);
    for id in ids.filter(|id| *id < known.next_vhost_id && !is_known(*id)) {
        match remove_vhost(data_dir, id) {
            Ok(()) => tracing::info!(id, "the rest of a deleted vhost is removed"),
            Err(error) => {
                tracing::warn!(id, %error, "the rest of a deleted vhost cannot be removed")
            }
        }
    }
}

/// Removes the pages that an earlier life has left, if the disk has little room: they mean nothing to this
/// one, and what is to be written at a start needs the room.
pub(crate) fn remove_stale_pages(data_dir: &Path) {
    let free = alarms::free_bytes(data_dir);
    if free.is_none_or(|free| free >= REUSED_PAGES_FREE_BYTES_MIN) {
        return;
    }
    let Ok(vhosts) = std::fs::read_dir(data_dir.join("vhosts")) else { return };
    let (mut files, mut bytes) = (0_u64, 0);
    for vhost in vhosts.flatten() {
        let Ok(pages) = std::fs::read_dir(vhost.path().join("pages")) else { continue };
        for page in pages.flatten() {
            if page.path().extension().is_none_or(|extension| extension != "page") {
                continue;
            }
            let len = page.metadata().map_or(0, |page| page.len());
            match std::fs::remove_file(page.path()) {
                Ok(()) => (files, bytes) = (files + 1, bytes + len),
                Err(error) => {
                    tracing::warn!(path = %page.path().display(), %error, "cannot remove a page");
                }
            }
        }
    }
    if files > 0 {
        tracing::info!(files, bytes, free, "pages of an earlier life are removed for their room");
    }
}

/// Replays a vhost's log.
#[derive(Debug)]
pub(crate) struct LogReplay<'a> {
    replay: Replay,
    pages: &'a mut dyn Pages,
    envelopes: Envelopes,
}

impl<'a> LogReplay<'a> {
    /// Into a new vhost, at `now`; `pages` keeps what does not stay in memory.
    pub(crate) fn new(vhost: Vhost, now: Time, pages: &'a mut dyn Pages) -> Self {
        Self { replay: Replay::new(vhost, now), pages, envelopes: Envelopes::default() }
    }

    /// Applies a record that was read.
    ///
    /// # Errors
    /// Why the record is left out; what was applied before stays.
    pub(crate) fn apply(
        &mut self,
        record: &storage::Record<'_>,
        references: &mut References<'_>,
    ) -> Result<(), String> {
        let decoded = Record::decode(record.kind, record.payload, &mut self.envelopes)
            .map_err(|error| error.to_string())?;
        let is_spent = record.flags.has(Flags::SPENT);
        let mut ended = |lsn: Lsn| references.release(storage::Lsn(lsn.0));
        self.replay.apply(Lsn(record.lsn.0), decoded, is_spent, self.pages, &mut ended)
    }

    /// Records are missing, or may be.
    pub(crate) fn records_lost(&mut self) {
        self.replay.records_lost();
    }

    /// The log has been read: queues whose declaration is lost come back. What there is to say of it, a
    /// sentence each.
    pub(crate) fn recover(&mut self) -> Vec<String> {
        let Recovered { queues, problems } = self.replay.recover();
        let queues = queues.into_iter().map(|queue| {
            let RecoveredQueue { number, name, is_original_name, messages } = queue;
            let whose = if is_original_name { "its old" } else { "a new" };
            format!(
                "queue {number} has lost its declaration: its {messages} messages are kept in queue \
                 '{name}', under {whose} name, without its arguments, and do not expire by their own"
            )
        });
        let problems = problems.into_iter();
        queues.chain(problems.map(|(lsn, problem)| format!("record {lsn}: {problem}"))).collect()
    }

    /// The vhost lives on from `now`.
    pub(crate) fn finish(self, now: Now, last: storage::Lsn) -> Vhost {
        self.replay.finish(now, Lsn(last.0), self.pages)
    }
}

/// Tells the operator of patterns that were accepted once and exceed a bound by now.
fn tell_unusable(vhost: &Vhost) {
    let policies = vhost.policies();
    for policy in policies.iter(PolicyKind::User).chain(policies.iter(PolicyKind::Operator)) {
        if let Some(problem) = policy.pattern.problem() {
            let (vhost, name, pattern) = (vhost.name(), &policy.name, policy.pattern.as_str());
            tracing::warn!(%vhost, policy = %name, pattern, problem, "a policy matches nothing");
        }
    }
}

/// A vhost that came back.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) log: VhostLog,
    pub(crate) vhost: Vhost,
    pub(crate) page_files: Arc<PageFiles>,
}

/// What damaged octets seem to have told, to be said behind the damage.
pub(crate) fn in_words(damage: &Damage) -> String {
    let known = damage.record.and_then(|(lsn, kind)| Some((lsn, broker::record_in_words(kind)?)));
    known.map_or_else(String::new, |(lsn, told)| format!("; record {lsn} told {told}, it seems"))
}

/// Says how far a vhost is.
fn tell(vhost: &str, done: ReadProgress) {
    tracing::info!(
        vhost,
        files = done.files,
        files_total = done.files_total,
        bytes = done.bytes,
        records = done.records,
        percent = done.percent(),
        "restoring vhost"
    );
}

/// Brings a vhost back from its log, which is begun if there is none and the vhost is new. `vhost` is
/// empty.
///
/// # Errors
/// [`RestoreError`], a sentence for the operator.
pub(crate) fn restore(
    path: &Path,
    id: u64,
    is_new: bool,
    vhost: Vhost,
    (durability, reserve): (Durability, &Arc<Reserve>),
    now: Now,
) -> Result<Restored, RestoreError> {
    let name = vhost.name().to_string();
    let began = Instant::now();
    let unusable = |error| RestoreError::Directory { path: path.to_owned(), error };
    if !is_new {
        std::fs::metadata(path).map_err(unusable)?;
    }
    let gives = Arc::clone(reserve);
    let directory = RealDirectory::open(path).map_err(unusable)?.with_room(move || gives.give());
    let page_files = PageFiles::open(path, now.time.as_micros(), Some(Arc::clone(reserve)));
    let page_files = Arc::new(page_files.map_err(unusable)?);
    let mut pages = PageRecovery::start(Arc::clone(&page_files)).map_err(unusable)?;
    let durability = match durability {
        Durability::Fsync => storage::Durability::Fsync,
        Durability::Os => storage::Durability::Os,
    };
    let options =
        LogOptions { log_id: id, durability, create_if_missing: is_new, ..LogOptions::default() };
    let mut replaying = LogReplay::new(vhost, now.time, &mut pages);
    let mut problems = 0_u64;
    let mut each = |record: storage::Record<'_>, references: &mut References<'_>| {
        if let Err(problem) = replaying.apply(&record, references) {
            problems += 1;
            tracing::error!(vhost = name, lsn = record.lsn.0, problem, "record left out");
        }
    };
    let mut told = began;
    let mut progress = |done: ReadProgress| {
        // What is done at once needs no patience, and its end is told anyway.
        if told.elapsed() >= RESTORE_REPORT_INTERVAL && done.files < done.files_total {
            told = Instant::now();
            tell(&name, done);
        }
    };
    let opened = Log::open(directory, options, &mut each, &mut progress);
    let (log, report) = opened.map_err(|error| RestoreError::Log {
        vhost: name.clone(),
        path: path.to_owned(),
        error,
    })?;
    for damage in &report.damages {
        let what = in_words(damage);
        tracing::error!(vhost = name, after = damage.after.0, "damaged log: {damage}{what}");
    }
    for problem in replaying.recover() {
        problems += 1;
        tracing::error!(vhost = name, "{problem}");
    }
    if report.was_open || !report.damages.is_empty() {
        replaying.records_lost();
    }
    let vhost = replaying.finish(now, report.last);
    if let Err(problem) = pages.finish() {
        return Err(RestoreError::Pages { vhost: name, problem });
    }
    page_files.restored().map_err(unusable)?;
    tell_unusable(&vhost);
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
    Ok(Restored { log, vhost, page_files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::node_file::VhostEntry;

    #[test]
    fn only_what_a_vhost_of_this_node_can_have_left_is_removed() {
        let name = format!("leveret-leftovers-{}", std::process::id());
        let data_dir = std::env::temp_dir().join(name);
        for name in ["1", "2", "5", "lost+found"] {
            std::fs::create_dir_all(data_dir.join("vhosts").join(name).join("pages")).unwrap();
        }
        let vhosts = vec![VhostEntry { name: "/".to_owned(), id: 1, settings: Arc::default() }];
        let known = NodeFile { next_vhost_id: 5, vhosts, users: Vec::new() };
        remove_leftovers(&data_dir, &known);
        let is_there = |name| data_dir.join("vhosts").join(name).exists();
        assert!(is_there("1") && is_there("5") && is_there("lost+found"));
        assert!(!is_there("2"));
        std::fs::remove_dir_all(&data_dir).unwrap();
    }
}

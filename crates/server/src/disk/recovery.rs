//! Recovery of a vhost at the start: replays its log and writes new page files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use broker::page::Pages;
use broker::time::{Now, Time};
use broker::{Envelopes, Lsn, PolicyKind, Record, Recovered, RecoveredQueue, Replay, Vhost};
use storage::{
    Damage, Flags, IoCounters, Log, LogOptions, OpenError, ReadProgress, RealDirectory, References,
};

use crate::config::Durability;
use crate::disk::page_files::{PageError, PageFiles};
use crate::disk::recovery_pages::PageRecovery;
use crate::disk::reserve::Reserve;
use crate::disk::vhost_files::VhostId;
use crate::limits::RESTORE_REPORT_INTERVAL;
use crate::service_state;

/// A vhost's log.
pub(crate) type VhostLog = Log<RealDirectory>;

/// Reason why a vhost cannot be recovered; each is a sentence for the operator.
#[derive(thiserror::Error, Debug)]
pub(crate) enum RestoreError {
    #[error("cannot use {path}, the log of a vhost: {error}")]
    Directory { path: PathBuf, error: io::Error },
    #[error("log of vhost '{vhost}' in {path}: {error}")]
    Log { vhost: String, path: PathBuf, error: OpenError },
    #[error("messages of vhost '{vhost}' that wait on disk cannot be read back: {error}")]
    Pages { vhost: String, error: PageError },
}

/// Replay of a vhost's log.
#[derive(Debug)]
pub(crate) struct LogReplay<'a> {
    replay: Replay,
    pages: &'a mut dyn Pages,
    envelopes: Envelopes,
}

impl<'a> LogReplay<'a> {
    /// Begins a replay into an empty vhost, at `now`; `pages` receives messages that do not stay in memory.
    pub(crate) fn new(vhost: Vhost, now: Time, pages: &'a mut dyn Pages) -> Self {
        Self { replay: Replay::new(vhost, now), pages, envelopes: Envelopes::default() }
    }

    /// Applies a record read from the log.
    ///
    /// # Errors
    /// The reason why the record is left out. Records applied before stay.
    pub(crate) fn apply(
        &mut self,
        record: &storage::Record<'_>,
        references: &mut References<'_>,
    ) -> Result<(), String> {
        let decoded = Record::decode(record.kind, record.payload, &mut self.envelopes)
            .map_err(|error| error.to_string())?;
        let is_spent = record.flags.has(Flags::SPENT);
        let mut ended = |lsn: Lsn| references.release(storage::Lsn(lsn.0));
        let applied =
            self.replay.apply(Lsn(record.lsn.0), decoded, is_spent, self.pages, &mut ended);
        applied.map_err(|divergence| divergence.problem)
    }

    /// Notes that records are or may be missing.
    pub(crate) fn records_lost(&mut self) {
        self.replay.records_lost();
    }

    /// Ends the reading of the log: queues whose declaration is lost are declared again. Returns one sentence
    /// for the operator per problem.
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

    /// Completes the replay; the vhost continues from `now`.
    pub(crate) fn finish(self, now: Now, last: storage::Lsn) -> Vhost {
        self.replay.finish(now, Lsn(last.0), self.pages)
    }
}

/// Logs policies whose pattern was accepted before and exceeds a bound of this version.
fn log_unusable_policies(vhost: &Vhost) {
    let policies = vhost.policies();
    for policy in policies.iter(PolicyKind::User).chain(policies.iter(PolicyKind::Operator)) {
        if let Some(problem) = policy.pattern.problem() {
            let (vhost, name, pattern) = (vhost.name(), &policy.name, policy.pattern.as_str());
            tracing::warn!(%vhost, policy = %name, pattern, problem, "a policy matches nothing");
        }
    }
}

/// A recovered vhost.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) log: VhostLog,
    pub(crate) vhost: Vhost,
    pub(crate) page_files: Arc<PageFiles>,
    /// Damaged places and unusable records of the log.
    pub(crate) problems: u64,
}

/// A description of the record that damaged bytes seem to have held, to append to the report of the damage.
pub(crate) fn damaged_record(damage: &Damage) -> String {
    let known =
        damage.record.and_then(|(lsn, kind)| Some((lsn, broker::record_description(kind)?)));
    known.map_or_else(String::new, |(lsn, what)| format!("; record {lsn} told {what}, it seems"))
}

fn log_progress(vhost: &str, done: ReadProgress) {
    service_state::start_step(&format!("restoring vhost '{vhost}', {} %", done.percent()));
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

/// The files of a vhost, and their use.
#[derive(Debug)]
pub(crate) struct VhostFiles<'a> {
    pub(crate) id: VhostId,
    /// The vhost's directory.
    pub(crate) path: &'a Path,
    /// True if the vhost is new, so that a missing log is created.
    pub(crate) is_new: bool,
    pub(crate) durability: Durability,
    pub(crate) reserve: &'a Arc<Reserve>,
    /// Counts operations on the files.
    pub(crate) io: &'a Arc<IoCounters>,
}

/// Recovers a vhost from its log into `vhost`, which must be empty.
///
/// # Errors
/// [`RestoreError`], a sentence for the operator.
pub(crate) fn restore(
    files: &VhostFiles<'_>,
    vhost: Vhost,
    now: Now,
) -> Result<Restored, RestoreError> {
    let VhostFiles { id, path, is_new, durability, reserve, io } = *files;
    let name = vhost.name().to_string();
    let began = Instant::now();
    let unusable = |error| RestoreError::Directory { path: path.to_owned(), error };
    if !is_new {
        std::fs::metadata(path).map_err(unusable)?;
    }
    let room = Arc::clone(reserve);
    let directory = RealDirectory::open(path).map_err(unusable)?;
    let directory = directory.with_room(move || room.release()).with_counters(io);
    let page_files = PageFiles::open(path, now.time.as_micros(), Some(Arc::clone(reserve)), io);
    let page_files = Arc::new(page_files.map_err(unusable)?);
    let mut pages = PageRecovery::start(Arc::clone(&page_files)).map_err(unusable)?;
    let durability = match durability {
        Durability::Fsync => storage::Durability::Fsync,
        Durability::Os => storage::Durability::Os,
    };
    let options =
        LogOptions { log_id: id.0, durability, create_if_missing: is_new, ..LogOptions::default() };
    let mut replay = LogReplay::new(vhost, now.time, &mut pages);
    let mut problems = 0_u64;
    let mut each = |record: storage::Record<'_>, references: &mut References<'_>| {
        if let Err(problem) = replay.apply(&record, references) {
            problems += 1;
            tracing::error!(vhost = name, lsn = record.lsn.0, problem, "record left out");
        }
    };
    let mut reported = began;
    let mut progress = |done: ReadProgress| {
        // The end has a log line of its own.
        if reported.elapsed() >= RESTORE_REPORT_INTERVAL && done.files < done.files_total {
            reported = Instant::now();
            log_progress(&name, done);
        }
    };
    let opened = Log::open(directory, options, &mut each, &mut progress);
    let (log, report) = opened.map_err(|error| RestoreError::Log {
        vhost: name.clone(),
        path: path.to_owned(),
        error,
    })?;
    for damage in &report.damages {
        let record = damaged_record(damage);
        tracing::error!(vhost = name, after = damage.after.0, "damaged log: {damage}{record}");
    }
    for problem in replay.recover() {
        problems += 1;
        tracing::error!(vhost = name, "{problem}");
    }
    if report.was_open || !report.damages.is_empty() {
        replay.records_lost();
    }
    let vhost = replay.finish(now, report.last);
    if let Err(error) = pages.finish() {
        return Err(RestoreError::Pages { vhost: name, error });
    }
    page_files.trim().map_err(unusable)?;
    log_unusable_policies(&vhost);
    let messages: u64 = vhost.queues().map(|(_, queue)| queue.message_count()).sum();
    tracing::info!(
        vhost = name,
        format_version = report.format_version,
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
    problems += report.damages.len() as u64;
    Ok(Restored { log, vhost, page_files, problems })
}

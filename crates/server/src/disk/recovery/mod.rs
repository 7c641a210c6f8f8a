//! Recovery of a vhost at the start: replays its log and writes new page files.

pub(crate) mod pages;
pub(crate) mod replay_thread;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use broker::time::{Now, Time};
use broker::{Lsn, PolicyKind, Vhost};
use storage::{
    Damage, Founding, IoCounters, Log, LogOptions, OpenError, OpenReport, ReadProgress,
    RealDirectory, ReplicatedLog, ReplicatedOptions,
};

use crate::config::Durability;
use crate::disk::pages::page_files::{PageError, PageFiles};
use crate::disk::recovery::pages::{LogReplay, PageRecovery};
use crate::disk::recovery::replay_thread::replay_log;
use crate::disk::reserve::Reserve;
use crate::disk::vhost_files::VhostId;
use crate::limits::{ENTRY_TAIL_BYTES_MAX, RESTORE_REPORT_INTERVAL};
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
    #[error(
        "vhost '{vhost}' has {records} records in {path} that this node wrote without a cluster, and the other nodes do not \
         have them; move its definitions and messages to the cluster, or remove cluster.json and start without a cluster"
    )]
    WrittenAlone { vhost: String, path: PathBuf, records: u64 },
    #[error("messages of vhost '{vhost}' that wait on disk cannot be read back: {error}")]
    Pages { vhost: String, error: PageError },
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

/// A log that is about to be read into an empty vhost.
struct Reading {
    name: String,
    began: Instant,
    directory: RealDirectory,
    options: LogOptions,
    page_files: Arc<PageFiles>,
    replay: LogReplay,
}

impl Reading {
    /// Opens the directory of a vhost, with new pages. Arrivals after `arrivals_until` count as of that time.
    fn begin(
        files: &VhostFiles<'_>,
        vhost: Vhost,
        now: Now,
        arrivals_until: Time,
    ) -> Result<Self, RestoreError> {
        let VhostFiles { id, path, is_new, durability, reserve, io } = *files;
        let (name, began) = (vhost.name().to_string(), Instant::now());
        if !is_new {
            std::fs::metadata(path).map_err(unusable(path))?;
        }
        let room = Arc::clone(reserve);
        let directory = RealDirectory::open(path).map_err(unusable(path))?;
        let directory = directory.with_room(move || room.release()).with_counters(io);
        let page_files = PageFiles::open(path, now.time.as_micros(), Some(Arc::clone(reserve)), io);
        let page_files = Arc::new(page_files.map_err(unusable(path))?);
        let pages = PageRecovery::start(Arc::clone(&page_files)).map_err(unusable(path))?;
        let options = LogOptions {
            log_id: id.0,
            durability: durability.of_log(),
            create_if_missing: is_new,
            ..LogOptions::default()
        };
        let replay = LogReplay::new(vhost, arrivals_until, pages);
        Ok(Self { name, began, directory, options, page_files, replay })
    }
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> RestoreError {
    |error| RestoreError::Directory { path: path.to_owned(), error }
}

/// Logs the progress of reading a long log from time to time.
fn report_progress(name: &str) -> impl FnMut(ReadProgress) {
    let mut reported = Instant::now();
    move |done| {
        // The end has a log line of its own.
        if reported.elapsed() >= RESTORE_REPORT_INTERVAL && done.files < done.files_total {
            reported = Instant::now();
            log_progress(name, done);
        }
    }
}

/// Logs the damages of a log that was read.
fn log_damages(name: &str, damages: &[Damage]) {
    for damage in damages {
        let record = damaged_record(damage);
        tracing::error!(vhost = name, after = damage.after.0, "damaged log: {damage}{record}");
    }
}

/// Logs that a vhost is restored.
fn log_restored(name: &str, began: Instant, report: &OpenReport, vhost: &Vhost, problems: u64) {
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
    let Reading { name, began, directory, options, page_files, mut replay } =
        Reading::begin(files, vhost, now, now.time)?;
    let path = files.path;
    let mut problems = 0_u64;
    let mut left_out = |lsn: storage::Lsn, problem: String| {
        problems += 1;
        tracing::error!(vhost = name, lsn = lsn.0, problem, "record left out");
    };
    let opened = replay_log(&mut replay, &mut left_out, |records| {
        Log::open(directory, options, records, &mut report_progress(&name))
    });
    let (log, report) = opened.map_err(|error| RestoreError::Log {
        vhost: name.clone(),
        path: path.to_owned(),
        error,
    })?;
    log_damages(&name, &report.damages);
    for problem in replay.recover() {
        problems += 1;
        tracing::error!(vhost = name, "{problem}");
    }
    if report.was_open || !report.damages.is_empty() {
        replay.records_lost();
    }
    let vhost = replay
        .finish(now, report.last)
        .map_err(|error| RestoreError::Pages { vhost: name.clone(), error })?;
    page_files.trim().map_err(unusable(path))?;
    log_unusable_policies(&vhost);
    log_restored(&name, began, &report, &vhost, problems);
    problems += report.damages.len() as u64;
    Ok(Restored { log, vhost, page_files, problems })
}

/// The member of a group whose log is opened.
#[derive(Clone, Debug)]
pub(crate) struct MemberIdentity {
    pub(crate) cluster_id: u64,
    pub(crate) member_id: u64,
    /// The members of a group that begins.
    pub(crate) voters: Vec<u64>,
    /// Bytes of entries that are kept for members that are behind.
    pub(crate) retention_bytes: u64,
}

impl MemberIdentity {
    /// The options of the log of the member, which is created if it is missing: a directory without one belongs to a
    /// group that begins.
    pub(crate) fn options(self, log: LogOptions) -> ReplicatedOptions {
        let Self { cluster_id, member_id, voters, retention_bytes } = self;
        ReplicatedOptions {
            log: LogOptions { create_if_missing: true, ..log },
            cluster_id,
            member_id,
            founding: Some(Founding { voters, ..Founding::default() }),
            tail_bytes_max: ENTRY_TAIL_BYTES_MAX,
            retention_bytes,
        }
    }
}

/// A replica with its log, which applies the entries that follow.
#[derive(Debug)]
pub(crate) struct RestoredReplica {
    pub(crate) log: ReplicatedLog<RealDirectory>,
    pub(crate) replica: LogReplay,
    pub(crate) page_files: Arc<PageFiles>,
    /// The first fault of the log, if there is one: the replica must be rebuilt.
    pub(crate) fault: Option<String>,
    /// Damaged places and unusable records of the log.
    pub(crate) problems: u64,
}

/// An empty replica, in place of one that must be rebuilt.
///
/// # Errors
/// If the directory cannot be used.
pub(crate) fn empty_replica(
    files: &VhostFiles<'_>,
    vhost: Vhost,
    now: Now,
) -> Result<(LogReplay, Arc<PageFiles>), RestoreError> {
    let Reading { page_files, replay, .. } = Reading::begin(files, vhost, now, Time::MAX)?;
    Ok((replay, page_files))
}

/// Recovers a replica from its log into `vhost`, which must be empty: everything that is known to be committed.
///
/// # Errors
/// [`RestoreError`], a sentence for the operator.
pub(crate) fn restore_replica(
    files: &VhostFiles<'_>,
    identity: MemberIdentity,
    vhost: Vhost,
    now: Now,
) -> Result<RestoredReplica, RestoreError> {
    // The times of the log are on the axis of the vhost, which this node does not know yet.
    let Reading { name, began, directory, options, page_files, mut replay } =
        Reading::begin(files, vhost, now, Time::MAX)?;
    let options = identity.options(options);
    let (mut fault, mut problems) = (None, 0_u64);
    let mut left_out = |lsn: storage::Lsn, problem: String| {
        problems += 1;
        fault.get_or_insert_with(|| format!("record {lsn}: {problem}"));
    };
    let opened = replay_log(&mut replay, &mut left_out, |records| {
        ReplicatedLog::open(directory, options, records, &mut report_progress(&name))
    });
    let (log, report) = opened.map_err(|error| {
        let (vhost, path) = (name.clone(), files.path.to_owned());
        if let OpenError::HasContent { records, damages: 0 } = error {
            return RestoreError::WrittenAlone { vhost, path, records };
        }
        RestoreError::Log { vhost, path, error }
    })?;
    log_damages(&name, &report.damages);
    if let Some(damage) = report.damages.first() {
        fault.get_or_insert_with(|| damage.to_string());
    }
    let last = Lsn(log.applier().applied_position().0);
    if let Err(divergence) = replay.follow(last) {
        fault.get_or_insert_with(|| divergence.to_string());
    }
    log_restored(&name, began, &report, replay.vhost(), problems);
    problems += report.damages.len() as u64;
    Ok(RestoredReplica { log, replica: replay, page_files, fault, problems })
}

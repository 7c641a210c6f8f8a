//! Backups of the running node: one at a time, on a thread of its own.
//!
//! First the node's own state is copied, then the redrive jobs, in a cluster the metadata, then each vhost as of one
//! position of its log, with its history of dead letters. `backup.json` is the last file: as long as it has its temporary name, `leveret check`
//! and a start refuse the directory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use storage::{EntryIndex, LogSnapshot, RealDirectory};

use crate::clock::Clock;
use crate::disk::access::about;
use crate::disk::backup::copy::{Copier, CopyCounts};
use crate::disk::backup::target::BackupTarget;
use crate::disk::json_files::cluster_file;
use crate::disk::json_files::node_file::{self, NodeFile, VhostEntry};
use crate::disk::log::persister::Persister;
use crate::disk::private_files::{self, sync};
use crate::disk::stand_alone;
use crate::disk::vhost_files::{VhostId, replica_path, vhost_path};
use crate::peers::barriers::Barriers;
use crate::replicas::Replicator;
use crate::requests::{
    BackupError, BackupJob, BackupState, BackupTotals, BackupVhost, backup_file,
};
use crate::vhost::Vhosts;

/// The backup that runs, or the last one.
#[derive(Default, Debug)]
pub(crate) struct Backups {
    known: Mutex<JobAndTotals>,
    is_cancelled: AtomicBool,
}

#[derive(Default, Debug)]
struct JobAndTotals {
    job: Option<BackupJob>,
    totals: BackupTotals,
}

/// State of the node that a backup reads.
#[derive(Debug)]
pub(crate) struct BackupSource {
    pub(crate) data_dir: PathBuf,
    pub(crate) node_name: String,
    /// Vhosts and users.
    pub(crate) node_file: NodeFile,
    /// Names of the vhosts that other nodes have.
    pub(crate) vhosts_elsewhere: Vec<String>,
    pub(crate) logs: BackupLogs,
    pub(crate) clock: Clock,
    /// Free bytes that the disk of the backup must keep.
    pub(crate) free_min: u64,
}

/// The owner of the logs of a node.
#[derive(Debug)]
pub(crate) enum BackupLogs {
    /// A node without a cluster.
    Own(Arc<Persister>),
    /// A node of a cluster: a broker starts from the backup as the only node of another one.
    Replicated { replicator: Arc<Replicator>, vhosts: Arc<Vhosts>, barriers: Barriers },
}

impl BackupLogs {
    /// The files of the log of a vhost in the directory `from`, with all that was confirmed before the call. None if the
    /// vhost is deleted.
    fn snapshot(
        &mut self,
        vhost: &VhostEntry,
        from: &Path,
    ) -> io::Result<Option<LogSnapshot<RealDirectory>>> {
        match self {
            Self::Own(persister) => match persister.snapshot(vhost.id) {
                None if from.exists() => {
                    let text = format!("vhost '{}' is down, or the broker stops", vhost.name);
                    Err(io::Error::other(text))
                }
                snapshot => Ok(snapshot),
            },
            Self::Replicated { replicator, vhosts, barriers } => {
                let name = vhost.name.as_str();
                let is_deleted = || vhosts.get(name).is_none_or(|found| found.id() != vhost.id);
                let barrier = barriers.of(name);
                if is_deleted() {
                    return Ok(None);
                }
                let behind = barrier.unwrap_or_else(|why| {
                    let text = "the backup has of the vhost what has reached this node";
                    tracing::warn!(vhost = name, "{text}: {why}");
                    EntryIndex(0)
                });
                match replicator.snapshot(vhost.id, behind) {
                    Ok(snapshot) => Ok(Some(snapshot)),
                    Err(_) if is_deleted() => Ok(None),
                    Err(error) => Err(io::Error::other(format!("vhost '{name}': {error}"))),
                }
            }
        }
    }
}

impl Backups {
    /// Begins a backup into `directory`; `user` is named in the log. Waits for the disk.
    ///
    /// # Errors
    /// [`BackupError`]; nothing is changed then.
    pub(crate) fn begin(
        self: &Arc<Self>,
        directory: &str,
        user: &str,
        source: BackupSource,
    ) -> Result<BackupJob, BackupError> {
        let job = {
            let mut known = self.known.lock();
            if let Some(job) = known.job.as_ref().filter(|job| job.ended_ms.is_none()) {
                return Err(BackupError::Running(job.directory.clone()));
            }
            let previous = known.job.take();
            let job = BackupJob {
                directory: directory.to_owned(),
                user: user.to_owned(),
                state: BackupState::Running,
                started_ms: source.clock.now().wall_ms(),
                ended_ms: None,
                vhosts_elsewhere: source.vhosts_elsewhere.clone(),
                vhosts_total: source.node_file.vhosts.len() as u64,
                vhosts: Vec::new(),
                files_linked: 0,
                bytes_linked: 0,
                bytes_copied: 0,
            };
            // Taken before the disk is touched, without the lock during it: another request is refused.
            known.job = Some(job.clone());
            self.is_cancelled.store(false, Ordering::Release);
            drop(known);
            match BackupTarget::open(Path::new(directory), &source.data_dir, source.free_min) {
                Ok(target) => self.spawn(job, target, source).inspect_err(|_| {
                    self.known.lock().job = previous;
                })?,
                Err(reason) => {
                    self.known.lock().job = previous;
                    return Err(BackupError::Refused(reason));
                }
            }
        };
        tracing::info!(directory, user, vhosts = job.vhosts_total, "backup begins");
        if !job.vhosts_elsewhere.is_empty() {
            let vhosts = &job.vhosts_elsewhere;
            tracing::warn!(?vhosts, "the backup has no vhosts that are on other nodes alone");
        }
        Ok(job)
    }

    fn spawn(
        self: &Arc<Self>,
        job: BackupJob,
        target: BackupTarget,
        source: BackupSource,
    ) -> Result<BackupJob, BackupError> {
        let this = Arc::clone(self);
        let path = target.path.clone();
        let target = Arc::new(target);
        let run = {
            let target = Arc::clone(&target);
            move || this.run(&target, source)
        };
        match std::thread::Builder::new().name("backup".to_owned()).spawn(run) {
            Ok(_) => Ok(job),
            Err(error) => {
                target.remove();
                let path = path.display();
                Err(BackupError::Refused(format!("no thread for the backup to {path}: {error}")))
            }
        }
    }

    /// The backup that runs, or the last one since the start.
    pub(crate) fn job(&self) -> Option<BackupJob> {
        self.known.lock().job.clone()
    }

    /// Numbers since the start.
    pub(crate) fn totals(&self) -> BackupTotals {
        let known = self.known.lock();
        let is_running = known.job.as_ref().is_some_and(|job| job.ended_ms.is_none());
        BackupTotals { is_running, ..known.totals }
    }

    /// Asks the backup to end and to remove what it has written. False if none runs.
    pub(crate) fn cancel(&self) -> bool {
        let known = self.known.lock();
        let is_running = known.job.as_ref().is_some_and(|job| job.ended_ms.is_none());
        if is_running {
            self.is_cancelled.store(true, Ordering::Release);
        }
        is_running
    }

    fn run(&self, target: &BackupTarget, source: BackupSource) {
        let clock = source.clock;
        let result = self.write(target, source);
        if result.is_err() {
            target.remove();
        }
        let is_cancelled = self.is_cancelled.load(Ordering::Acquire);
        let mut known = self.known.lock();
        let JobAndTotals { job: Some(job), totals } = &mut *known else { return };
        job.ended_ms = Some(clock.now().wall_ms());
        let directory = job.directory.clone();
        match result {
            Ok(()) => {
                job.state = BackupState::Finished;
                totals.finished += 1;
                let (linked, copied) = (job.bytes_linked, job.bytes_copied);
                let took_ms = job.ended_ms.unwrap_or_default().saturating_sub(job.started_ms);
                let vhosts = job.vhosts.len();
                drop(known);
                tracing::info!(directory, vhosts, linked, copied, took_ms, "backup finished");
            }
            Err(_) if is_cancelled => {
                job.state = BackupState::Cancelled;
                drop(known);
                tracing::info!(directory, "backup cancelled; its files are removed");
            }
            Err(error) => {
                job.state = BackupState::Failed(error.to_string());
                totals.failed += 1;
                drop(known);
                tracing::error!(directory, %error, "backup failed; its files are removed");
            }
        }
    }

    fn write(&self, target: &BackupTarget, source: BackupSource) -> io::Result<()> {
        let BackupSource { data_dir, node_name, mut node_file, mut logs, clock, free_min, .. } =
            source;
        let began_ms = clock.now().wall_ms();
        let mut progress = |counts: CopyCounts| {
            if let Some(job) = &mut self.known.lock().job {
                job.files_linked = counts.files_linked;
                job.bytes_linked = counts.bytes_linked;
                job.bytes_copied = counts.bytes_copied;
            }
        };
        let mut copier = Copier {
            is_cancelled: &self.is_cancelled,
            progress: &mut progress,
            target: &target.path,
            free_min,
            counts: CopyCounts::default(),
        };
        let parameters = "global_parameters.json";
        copier.file(&data_dir.join(parameters), &target.path.join(parameters))?;
        // Before the vhosts: a job that is behind its messages goes on with those that are still there.
        copier.directory(&data_dir.join("redrives"), &target.path.join("redrives"), ".json")?;
        if let BackupLogs::Replicated { replicator, .. } = &logs {
            // After `node.json` was told, which must not be ahead of the metadata.
            let snapshot = replicator.snapshot(VhostId::METADATA, EntryIndex(0));
            let snapshot =
                snapshot.map_err(|error| io::Error::other(format!("the metadata: {error}")))?;
            let [from, to] =
                [&data_dir, &target.path].map(|path| replica_path(path, VhostId::METADATA));
            copier.log(&snapshot, &from, &to)?;
            sync(&to)?;
            let cluster = cluster_file::NAME;
            copier.file(&data_dir.join(cluster), &target.path.join(cluster))?;
            stand_alone::mark(&target.path).map_err(io::Error::other)?;
        }
        let vhosts = target.path.join("vhosts");
        private_files::create_dir(&vhosts).map_err(about(&vhosts))?;
        let mut done = Vec::new();
        for entry in std::mem::take(&mut node_file.vhosts) {
            let from = vhost_path(&data_dir, entry.id);
            let to = vhost_path(&target.path, entry.id);
            match vhost(&mut copier, &mut logs, (&from, &to), &entry, clock) {
                Ok(Some(told)) => {
                    if let Some(job) = &mut self.known.lock().job {
                        job.vhosts.push(told);
                    }
                    done.push(entry);
                }
                // Deleted meanwhile.
                Ok(None) => {}
                Err(error) if from.exists() || !to.exists() => return Err(error),
                Err(_) => std::fs::remove_dir_all(&to)?,
            }
        }
        sync(&vhosts).map_err(about(&vhosts))?;
        node_file.vhosts = done;
        node_file::write(&target.path, &node_file).map_err(io::Error::other)?;
        let told: Vec<_> = self.job().map_or_else(Vec::new, |job| job.vhosts);
        let ended_ms = clock.now().wall_ms();
        let version = env!("CARGO_PKG_VERSION");
        let text = backup_file((&node_name, version), (began_ms, ended_ms), &told);
        target.complete(&text).map_err(about(&target.path))
    }
}

/// Writes the log and the history of dead letters of a vhost. None if the vhost is deleted.
fn vhost(
    copier: &mut Copier<'_>,
    logs: &mut BackupLogs,
    (from, to): (&Path, &Path),
    entry: &VhostEntry,
    clock: Clock,
) -> io::Result<Option<BackupVhost>> {
    let began_ms = clock.now().wall_ms();
    let Some(snapshot) = logs.snapshot(entry, from)? else { return Ok(None) };
    copier.log(&snapshot, from, to)?;
    copier.directory(&from.join("deaths"), &to.join("deaths"), ".jsonl")?;
    sync(to)?;
    Ok(Some(BackupVhost {
        name: entry.name.clone(),
        position: snapshot.position().0,
        time_ms: began_ms,
        files: snapshot.files() as u64,
        bytes: snapshot.bytes(),
    }))
}

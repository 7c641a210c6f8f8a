//! The place where a redrive job is kept: a file of a node by itself, or the log of a replicated vhost, where the next
//! leader finds the job.

use std::sync::Arc;

use broker::RedriveId;

use super::record::Record;
use super::store::Store;
use crate::vhost::VhostHandle;

/// The place where a job is kept.
#[derive(Clone, Debug)]
pub(super) enum Keeper {
    File(Store),
    Log(Arc<VhostHandle>),
}

impl Keeper {
    /// The place of new jobs of a vhost.
    pub(super) fn of(handle: &Arc<VhostHandle>, store: &Store) -> Self {
        match handle.is_replicated() {
            true => Self::Log(Arc::clone(handle)),
            false => Self::File(store.clone()),
        }
    }

    /// True unless another node leads the vhost and has the job.
    pub(super) fn is_here(&self) -> bool {
        match self {
            Self::File(_) => true,
            // A handle that has led does so until it is deposed.
            Self::Log(handle) => !handle.is_deposed(),
        }
    }

    /// True if another node leads the vhost and has the job, or will have it: this one gives the vhost up, unless the
    /// whole node stops.
    pub(super) fn has_moved(&self, is_stopping: bool) -> bool {
        match self {
            Self::File(_) => false,
            Self::Log(handle) => handle.is_deposed() || handle.is_closing() && !is_stopping,
        }
    }

    /// True if other nodes have the job, too.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Self::Log(_))
    }

    /// True if the job is in the log of this vhost.
    pub(super) fn is_log_of(&self, vhost: &Arc<VhostHandle>) -> bool {
        matches!(self, Self::Log(handle) if Arc::ptr_eq(handle, vhost))
    }

    /// Writes a job, durably: to the disk, or to those of a majority.
    ///
    /// # Errors
    /// A sentence for the user: the disk refuses, or another node leads the vhost.
    pub(super) async fn write(&self, record: Record) -> Result<(), String> {
        let handle = match self {
            Self::File(store) => return store.write(record).await,
            Self::Log(handle) => handle,
        };
        let id = RedriveId(record.job.id);
        let job = record.to_bytes().into();
        let written = handle.write(|vhost, now| {
            vhost.set_redrive(now, id, job);
            vhost.last_lsn()
        });
        let lsn = written.map_err(|moved| moved.to_string())?;
        handle.durable_at(lsn).await.map_err(|moved| moved.to_string())
    }

    /// Forgets a job that has ended. A file that stays is forgotten again after the next start.
    pub(super) fn forget(&self, id: u64) {
        match self {
            Self::File(store) => store.remove(id),
            // The next leader forgets the job if this node does not lead any more.
            Self::Log(handle) => {
                let _ = handle.write(|vhost, now| vhost.clear_redrive(now, RedriveId(id)));
            }
        }
    }
}

/// The jobs in the log of a vhost, the oldest first. A job that cannot be read is logged, and stops; no message is lost.
pub(super) fn logged(handle: &VhostHandle) -> Vec<Record> {
    let jobs: Vec<_> =
        handle.read(|vhost, _| vhost.redrives().map(|(id, job)| (id, Arc::clone(job))).collect());
    let read = |(id, job): (RedriveId, Arc<[u8]>)| {
        let problem = match Record::from_bytes(&job) {
            Ok(record) if record.job.id == id.0 => return Some(record),
            Ok(record) => format!("it has the number {}", record.job.id),
            Err(problem) => problem,
        };
        tracing::error!(vhost = handle.name(), %id, problem, "a redrive cannot be read, and does not go on");
        None
    };
    jobs.into_iter().filter_map(read).collect()
}

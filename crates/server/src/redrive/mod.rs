//! Redrive jobs, which send the messages of a queue back, slice by slice.
//!
//! A job browses the messages that waited when it began, in the order of delivery, and moves the selected
//! ones through the core. Between two slices a job holds no lock and no thread, so that publishers, consumers
//! and a cancellation get their turn. Every moved message is in the log. The job itself is in a file, from
//! which the next process takes it up, or, in a cluster, in the log of its vhost, from which the next leader does.

mod dry_run;
mod fate;
mod job;
mod keeper;
mod read_budget;
mod record;
mod resume;
mod run;
mod store;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use broker::BrowseCursor;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::disk::vhost_files::VhostId;
use crate::limits::{
    CLUSTER_NODES_MAX, REDRIVE_REQUEST_BYTES_MAX, REDRIVE_STOP_TIMEOUT, REDRIVES_REMEMBERED_MAX,
    REDRIVES_RUNNING_MAX,
};
use crate::requests::{RedriveCounts, RedriveError, RedriveJob, RedriveRequest, RedriveState};
use crate::vhost::VhostHandle;
use crate::vhost::internal_channel::InternalChannel;
pub(crate) use dry_run::dry_run;
use job::{Job, Source, states};
use keeper::Keeper;
use record::{Record, Unfinished};
pub(crate) use resume::{ResumeContext, follow_leads, resume};
use run::Run;
pub(crate) use store::CheckedRedrives;
use store::Store;

/// Reads the files of the jobs in a data directory that is not in use.
///
/// # Errors
/// If their directory cannot be read.
pub(crate) fn check(data_dir: &Path) -> io::Result<CheckedRedrives> {
    Store::new(data_dir).check()
}

/// Distance of two ids that the same node of a cluster gives.
const NODES_PER_ID: u64 = CLUSTER_NODES_MAX as u64 + 1;

/// All jobs, the oldest first.
#[derive(Debug)]
pub(crate) struct Redrives {
    known: Mutex<JobTable>,
    store: Store,
    /// True once the node stops: jobs write their progress and go on in the next process.
    is_stopping: Arc<AtomicBool>,
}

#[derive(Default, Debug)]
struct JobTable {
    jobs: VecDeque<Arc<Job>>,
    last_id: u64,
    /// Replicated vhosts whose jobs this node has taken over, because it leads them.
    led: BTreeMap<VhostId, Weak<VhostHandle>>,
}

impl Redrives {
    /// Reads the jobs of earlier processes from the data directory. Those that run wait for [`resume`].
    pub(crate) fn open(data_dir: &Path) -> Self {
        let store = Store::new(data_dir);
        let mut known = JobTable::default();
        for record in store.read_all() {
            known.last_id = known.last_id.max(record.job.id);
            let keeper = Keeper::File(store.clone());
            known.jobs.push_back(Arc::new(Job::new(record.resumed(), keeper)));
        }
        known.forget_some().iter().for_each(|job| job.forget());
        Self { known: Mutex::new(known), store, is_stopping: Arc::default() }
    }

    /// Begins a job with the permissions of `channel`, durably. `is_local` is true for the local administrator.
    pub(crate) async fn begin(
        self: Arc<Self>,
        mut channel: InternalChannel,
        queue: &str,
        request: RedriveRequest,
        (is_local, clock): (bool, Clock),
    ) -> Result<RedriveJob, RedriveError> {
        if record::request_bytes(&request) > REDRIVE_REQUEST_BYTES_MAX {
            return Err(RedriveError::TooLong(REDRIVE_REQUEST_BYTES_MAX));
        }
        let access = channel.access().map_err(RedriveError::Refused)?;
        let handle = Arc::clone(channel.vhost());
        let source = Source::find(&handle, queue, &request, &access)?;
        let now_ms = clock.now().wall_ms();
        let told = RedriveJob {
            id: 0,
            vhost: handle.name().to_owned(),
            queue: queue.to_owned(),
            to: request.to.clone(),
            user: access.user.to_string(),
            state: RedriveState::Running,
            started_ms: now_ms,
            ended_ms: None,
            messages_total: source.messages,
            counts: RedriveCounts::default(),
            unacked_left: None,
            is_of_kept: request.is_of_kept,
        };
        let first = states(request.is_of_kept).first().copied();
        let unfinished = Unfinished {
            is_local,
            vhost_id: handle.id(),
            queue: source.number,
            last_seq: source.last_seq,
            position: BrowseCursor::start(first.expect("a redrive is about some state")),
            counts: RedriveCounts::default(),
            moved_max: 0,
            request: request.clone(),
        };
        let job = self.add(told, unfinished, &handle)?;
        let is_stopping = Arc::clone(&self.is_stopping);
        let run = Run::new(Arc::clone(&job), channel, source, request, (clock, is_stopping));
        let (told, answer) = oneshot::channel();
        // In a task of its own: a client that goes away leaves no job half begun.
        tokio::spawn(async move {
            // Before the first message moves: after a kill, the next start must know the job.
            let begun = job.save().await;
            let is_begun = begun.is_ok();
            let status = job.status.lock().clone();
            // The client may have gone.
            let _ = told.send(begun.map(|()| status.clone()).map_err(RedriveError::Disk));
            if is_begun {
                tracing::info!(
                    id = status.id, vhost = status.vhost, queue = status.queue, user = status.user,
                    to = %status.to, "messages are redriven"
                );
                run.run().await;
            } else {
                self.forget(&job);
            }
            job.is_over.send_replace(true);
        });
        answer.await.unwrap_or_else(|_| Err(RedriveError::Disk("the job has ended".to_owned())))
    }

    /// Adds a job and gives it an id, unless too many run.
    fn add(
        &self,
        mut job: RedriveJob,
        rest: Unfinished,
        vhost: &Arc<VhostHandle>,
    ) -> Result<Arc<Job>, RedriveError> {
        let mut known = self.known.lock();
        let running = known.here().filter(|job| job.is_running()).count();
        if running >= REDRIVES_RUNNING_MAX {
            return Err(RedriveError::TooMany(REDRIVES_RUNNING_MAX));
        }
        job.id = known.next_id(job.started_ms, vhost.place_of_node());
        let keeper = Keeper::of(vhost, &self.store);
        let job = Arc::new(Job::new(Record { job, unfinished: Some(rest) }, keeper));
        known.jobs.push_back(Arc::clone(&job));
        let forgotten = known.forget_some();
        drop(known);
        forget(forgotten);
        Ok(job)
    }

    fn forget(&self, job: &Arc<Job>) {
        self.known.lock().jobs.retain(|known| !Arc::ptr_eq(known, job));
    }

    /// All jobs, the newest first.
    pub(crate) fn all(&self) -> Vec<RedriveJob> {
        self.known.lock().here().rev().map(|job| job.status.lock().clone()).collect()
    }

    /// Cancels a job, durably; false if the job is not running.
    pub(crate) async fn cancel(&self, id: u64, clock: Clock) -> Result<bool, RedriveError> {
        let job = self.known.lock().here().find(|job| job.status.lock().id == id).cloned();
        let Some(job) = job else { return Ok(false) };
        // In a task of its own, so that a client that goes away does not interrupt the write.
        let cancelled = tokio::spawn(async move { job.cancel(clock.now().wall_ms()).await }).await;
        let cancelled = cancelled.unwrap_or_else(|error| Err(error.to_string()));
        cancelled.map_err(RedriveError::Disk)
    }

    /// Lets the running jobs stop where they are.
    pub(crate) fn begin_stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.known.lock().jobs.iter().for_each(|job| job.cancelled.notify_one());
    }

    /// Waits until the jobs of a stopping node have written their progress.
    pub(crate) async fn stopped(&self) {
        let jobs: Vec<Arc<Job>> = self.known.lock().jobs.iter().cloned().collect();
        let all_over = async {
            for job in jobs {
                // The sender is in the job.
                let _ = job.is_over.subscribe().wait_for(|is_over| *is_over).await;
            }
        };
        if tokio::time::timeout(REDRIVE_STOP_TIMEOUT, all_over).await.is_err() {
            tracing::warn!("timed out waiting for the progress of redrives");
        }
    }
}

impl JobTable {
    /// The jobs that this node has, the oldest first.
    fn here(&self) -> impl DoubleEndedIterator<Item = &Arc<Job>> {
        self.jobs.iter().filter(|job| job.keeper.is_here())
    }

    /// The id of a new job. Based on the time, so that no job of an earlier process had the same id; in a cluster, with
    /// the place of this node among all nodes, so that no other node gives the same id.
    fn next_id(&mut self, now_ms: u64, place: Option<usize>) -> u64 {
        self.last_id = match place {
            None => (self.last_id + 1).max(now_ms),
            Some(place) => {
                (self.last_id / NODES_PER_ID + 1).max(now_ms) * NODES_PER_ID + place as u64
            }
        };
        self.last_id
    }

    /// Forgets the jobs that ended first, if there are too many, and returns them.
    fn forget_some(&mut self) -> Vec<Arc<Job>> {
        let mut forgotten = Vec::new();
        while self.jobs.len() > REDRIVES_REMEMBERED_MAX + REDRIVES_RUNNING_MAX
            && let Some(at) = self.jobs.iter().position(|job| *job.is_over.borrow())
            && let Some(job) = self.jobs.remove(at)
        {
            forgotten.push(job);
        }
        forgotten
    }
}

/// Forgets jobs that have ended, on a thread for blocking work.
fn forget(jobs: Vec<Arc<Job>>) {
    if !jobs.is_empty() {
        tokio::task::spawn_blocking(move || jobs.iter().for_each(|job| job.forget()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_and_differ_between_the_nodes_of_a_cluster() {
        let (mut first, mut second) = (JobTable::default(), JobTable::default());
        let ids = [first.next_id(1000, Some(0)), second.next_id(1000, Some(6))];
        assert_ne!(ids[0], ids[1]);
        // The next leader knows the jobs of the first one; its clock is behind.
        second.last_id = ids[0].max(ids[1]);
        assert!(second.next_id(10, Some(6)) > ids[1]);
        assert!(first.next_id(10, Some(0)) > ids[0]);
        // Alone, ids are times.
        let mut alone = JobTable::default();
        assert_eq!([1000, 1000, 10].map(|now_ms| alone.next_id(now_ms, None)), [1000, 1001, 1002]);
    }
}

//! Redrive jobs, which send the messages of a queue back, slice by slice.
//!
//! A job browses the messages that waited when it began, in the order of delivery, and moves the selected
//! ones through the core. Between two slices a job holds no lock and no thread, so that publishers, consumers
//! and a cancellation get their turn. Jobs live as long as the process; every moved message is in the log.

mod dry_run;
mod run;

use std::collections::VecDeque;
use std::sync::Arc;

use broker::access::Access;
use broker::redrive::{Redrive, RedriveTo};
use broker::{BrowsedMessage, Lsn, MessageState, QueueId, QueueNumber};
use management::{RedriveCounts, RedriveError, RedriveJob, RedriveRequest, RedriveState};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::limits::{REDRIVES_REMEMBERED_MAX, REDRIVES_RUNNING_MAX};
use crate::vhost::VhostHandle;
use crate::vhost::internal_channel::InternalChannel;
pub(crate) use dry_run::dry_run;
use run::Run;

/// The states in which messages can be redriven.
const WAITING: [MessageState; 2] = [MessageState::Ready, MessageState::Delayed];

/// All jobs, the oldest first.
#[derive(Default, Debug)]
pub(crate) struct Redrives(Mutex<Known>);

#[derive(Default, Debug)]
struct Known {
    jobs: VecDeque<Arc<Shared>>,
    last_id: u64,
}

/// The state of a job that the API reads, and its cancellation.
#[derive(Debug)]
struct Shared {
    job: Mutex<RedriveJob>,
    cancelled: Notify,
}

/// The queue of a job, as it was when the job began.
#[derive(Clone, Copy, Debug)]
struct Source {
    id: QueueId,
    number: QueueNumber,
    /// Upper bound of sequence numbers; newer messages are left alone.
    last_seq: u64,
    /// Number of waiting messages.
    messages: u64,
}

impl Source {
    /// Finds the queue of this name, and checks that the user may redrive its messages to this destination.
    fn find(
        handle: &VhostHandle,
        queue: &str,
        to: &RedriveTo,
        access: &Access,
    ) -> Result<Self, RedriveError> {
        handle.read(|vhost, _| {
            let id = vhost.queue_id(queue).ok_or(RedriveError::NoSuchQueue)?;
            let redrive = Redrive { queue: id, to, access };
            vhost.check_redrive(redrive).map_err(RedriveError::Refused)?;
            let queue = vhost.queue_of(id).ok_or(RedriveError::NoSuchQueue)?;
            Ok(Self {
                id,
                number: queue.number,
                last_seq: queue.last_seq(),
                messages: queue.ready_count() + queue.delayed_count(),
            })
        })
    }

    /// True if the message was in the queue when the job began.
    fn had(&self, browsed: &BrowsedMessage) -> bool {
        browsed.entry.id.seq <= self.last_seq
    }
}

impl Redrives {
    /// Begins a job with the permissions of `channel`.
    pub(crate) fn begin(
        self: &Arc<Self>,
        mut channel: InternalChannel,
        queue: &str,
        request: RedriveRequest,
        clock: Clock,
    ) -> Result<RedriveJob, RedriveError> {
        let access = channel.access().map_err(RedriveError::Refused)?;
        let handle = Arc::clone(channel.vhost());
        let source = Source::find(&handle, queue, &request.to, &access)?;
        let mut known = self.0.lock();
        let running = known.jobs.iter().filter(|job| job.is_running()).count();
        if running >= REDRIVES_RUNNING_MAX {
            return Err(RedriveError::TooMany(REDRIVES_RUNNING_MAX));
        }
        let now_ms = clock.now().wall_ms;
        // Based on the time, so that no job of an earlier process had the same id.
        known.last_id = (known.last_id + 1).max(now_ms);
        let job = RedriveJob {
            id: known.last_id,
            vhost: handle.name().to_owned(),
            queue: queue.to_owned(),
            to: request.to.clone(),
            user: access.user.to_string(),
            state: RedriveState::Running,
            started_ms: now_ms,
            ended_ms: None,
            messages_total: source.messages,
            counts: RedriveCounts::default(),
        };
        tracing::info!(
            id = job.id, vhost = job.vhost, queue, user = job.user, to = %job.to,
            "messages are redriven"
        );
        let shared = Arc::new(Shared { job: Mutex::new(job.clone()), cancelled: Notify::new() });
        known.jobs.push_back(Arc::clone(&shared));
        known.forget_some();
        let run = Run { shared, handle, channel, source, request, durable: Lsn(0), clock };
        tokio::spawn(run.run());
        Ok(job)
    }

    /// All jobs, the newest first.
    pub(crate) fn all(&self) -> Vec<RedriveJob> {
        self.0.lock().jobs.iter().rev().map(|shared| shared.job.lock().clone()).collect()
    }

    /// Cancels a job; false if the job is not running.
    pub(crate) fn cancel(&self, id: u64) -> bool {
        let known = self.0.lock();
        let job = known.jobs.iter().find(|shared| shared.job.lock().id == id);
        let Some(job) = job.filter(|job| job.is_running()) else { return false };
        job.end(RedriveState::Cancelled);
        job.cancelled.notify_one();
        true
    }
}

impl Known {
    /// Forgets the jobs that ended first, if there are too many.
    fn forget_some(&mut self) {
        while self.jobs.len() > REDRIVES_REMEMBERED_MAX + REDRIVES_RUNNING_MAX
            && let Some(at) = self.jobs.iter().position(|job| !job.is_running())
        {
            self.jobs.remove(at);
        }
    }
}

impl Shared {
    fn is_running(&self) -> bool {
        self.job.lock().state == RedriveState::Running
    }

    /// Sets the final state, unless the job has one already.
    fn end(&self, state: RedriveState) {
        let mut job = self.job.lock();
        if job.state == RedriveState::Running {
            job.state = state;
        }
    }
}

//! Redriving: jobs that send the messages of a queue back, a slice at a time.
//!
//! A job looks at the messages that waited when it began, in the order of delivery, and has the core move
//! those that are chosen. Between two slices it holds no lock and no thread, so that publishers, consumers
//! and whoever wants it to end have their turn. Jobs live as long as the process; what they have moved is
//! in the log, message by message.

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

/// The states of messages that can be redriven.
const WAITING: [MessageState; 2] = [MessageState::Ready, MessageState::Delayed];

/// The jobs, oldest first.
#[derive(Default, Debug)]
pub(crate) struct Redrives(Mutex<Known>);

#[derive(Default, Debug)]
struct Known {
    jobs: VecDeque<Arc<Shared>>,
    last_id: u64,
}

/// What others see of a job, and can ask of it.
#[derive(Debug)]
struct Shared {
    job: Mutex<RedriveJob>,
    cancelled: Notify,
}

/// A queue whose messages are to be redriven, as it was when that began.
#[derive(Clone, Copy, Debug)]
struct Source {
    id: QueueId,
    number: QueueNumber,
    /// Newer messages are left alone.
    last_seq: u64,
    /// Messages that wait.
    messages: u64,
}

impl Source {
    /// The queue of that name, if the user may redrive its messages so.
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

    /// Whether a message was there when it began.
    fn had(&self, browsed: &BrowsedMessage) -> bool {
        browsed.entry.id.seq <= self.last_seq
    }
}

impl Redrives {
    /// Begins a job with what `channel` may do.
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
        // No job of a process before had it.
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

    /// The jobs, newest first.
    pub(crate) fn all(&self) -> Vec<RedriveJob> {
        self.0.lock().jobs.iter().rev().map(|shared| shared.job.lock().clone()).collect()
    }

    /// Has a job end. False if it does not run.
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
    /// Forgets those that ended first, if there are too many.
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

    /// The first end counts.
    fn end(&self, state: RedriveState) {
        let mut job = self.job.lock();
        if job.state == RedriveState::Running {
            job.state = state;
        }
    }
}

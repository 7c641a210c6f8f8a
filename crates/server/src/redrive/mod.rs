//! Redrive jobs, which send the messages of a queue back, slice by slice.
//!
//! A job browses the messages that waited when it began, in the order of delivery, and moves the selected
//! ones through the core. Between two slices a job holds no lock and no thread, so that publishers, consumers
//! and a cancellation get their turn. Jobs live as long as the process; every moved message is in the log.

mod dry_run;
mod job;
mod run;

use std::collections::VecDeque;
use std::sync::Arc;

use broker::Lsn;
use management::{RedriveCounts, RedriveError, RedriveJob, RedriveRequest, RedriveState};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::limits::{REDRIVES_REMEMBERED_MAX, REDRIVES_RUNNING_MAX};
use crate::vhost::internal_channel::InternalChannel;
pub(crate) use dry_run::dry_run;
use job::{Job, Source};
use run::Run;

/// All jobs, the oldest first.
#[derive(Default, Debug)]
pub(crate) struct Redrives(Mutex<Known>);

#[derive(Default, Debug)]
struct Known {
    jobs: VecDeque<Arc<Job>>,
    last_id: u64,
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
        let running = Arc::new(Job { status: Mutex::new(job.clone()), cancelled: Notify::new() });
        known.jobs.push_back(Arc::clone(&running));
        known.forget_some();
        let run = Run { job: running, handle, channel, source, request, durable: Lsn(0), clock };
        tokio::spawn(run.run());
        Ok(job)
    }

    /// All jobs, the newest first.
    pub(crate) fn all(&self) -> Vec<RedriveJob> {
        self.0.lock().jobs.iter().rev().map(|job| job.status.lock().clone()).collect()
    }

    /// Cancels a job; false if the job is not running.
    pub(crate) fn cancel(&self, id: u64) -> bool {
        let known = self.0.lock();
        let job = known.jobs.iter().find(|job| job.status.lock().id == id);
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

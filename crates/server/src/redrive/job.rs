//! A redrive job and the queue that it is about.

use broker::access::Access;
use broker::redrive::Redrive;
use broker::{BrowseCursor, BrowsedMessage, MessageState, QueueId, QueueNumber};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, Notify, watch};

use super::keeper::Keeper;
use super::record::{Record, Unfinished};
use crate::requests::{RedriveError, RedriveJob, RedriveRequest, RedriveState};
use crate::vhost::VhostHandle;

/// The states of the messages that a redrive moves.
pub(super) const fn states(is_of_kept: bool) -> &'static [MessageState] {
    match is_of_kept {
        true => &[MessageState::Dead],
        false => &[MessageState::Ready, MessageState::Delayed],
    }
}

/// The state of a job that the API reads, its cancellation, and the place where it is kept.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) status: Mutex<RedriveJob>,
    pub(super) cancelled: Notify,
    /// The work that is left after a restart; none of a job that ended in an earlier process.
    pub(super) unfinished: Mutex<Option<Unfinished>>,
    /// True once no task works for the job.
    pub(super) is_over: watch::Sender<bool>,
    /// Held while the job is written, and while the job ends.
    writing: AsyncMutex<()>,
    pub(super) keeper: Keeper,
}

impl Job {
    pub(super) fn new(record: Record, keeper: Keeper) -> Self {
        let is_over = watch::Sender::new(record.unfinished.is_none());
        Self {
            status: Mutex::new(record.job),
            cancelled: Notify::new(),
            unfinished: Mutex::new(record.unfinished),
            is_over,
            writing: AsyncMutex::default(),
            keeper,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.status.lock().state == RedriveState::Running
    }

    /// Notes that the job is about to go on from a position, so that a restart or another leader goes on from there, too.
    pub(super) fn arrive(&self, position: BrowseCursor) {
        let counts = self.status.lock().counts;
        if let Some(unfinished) = &mut *self.unfinished.lock() {
            // Times of delayed messages and numbers of kept ones hold for one process only.
            let is_kept = position.state() == MessageState::Ready;
            let position = if is_kept { position } else { BrowseCursor::start(position.state()) };
            if is_kept || unfinished.position != position {
                (unfinished.position, unfinished.counts) = (position, counts);
            }
        }
    }

    /// Changes the number of messages that may have been moved at the most when the job is read again.
    pub(super) fn reserve(&self, moved_max: u64) {
        if let Some(unfinished) = &mut *self.unfinished.lock() {
            unfinished.moved_max = moved_max;
        }
    }

    /// The number of messages that may be moved before the job has to be written.
    pub(super) fn reserved(&self) -> u64 {
        self.unfinished.lock().as_ref().map_or(0, |unfinished| unfinished.moved_max)
    }

    /// Writes the job, durably.
    ///
    /// # Errors
    /// A sentence for the user, if the disk refuses.
    pub(super) async fn save(&self) -> Result<(), String> {
        let _one_at_a_time = self.writing.lock().await;
        let job = self.status.lock().clone();
        self.write(job).await
    }

    /// Cancels the job at this time, durably; false if the job is not running.
    ///
    /// # Errors
    /// A sentence for the user, if the disk refuses; the job is cancelled until the next start.
    pub(super) async fn cancel(&self, now_ms: u64) -> Result<bool, String> {
        let _one_at_a_time = self.writing.lock().await;
        let mut cancelled = {
            let mut status = self.status.lock();
            if status.state != RedriveState::Running {
                return Ok(false);
            }
            status.state = RedriveState::Cancelled;
            status.clone()
        };
        self.cancelled.notify_one();
        // What is written is final if a kill prevents the end.
        cancelled.ended_ms = Some(now_ms);
        self.write(cancelled).await.map(|()| true)
    }

    /// Ends the job at this time: sets its final state, unless it was cancelled, and writes the job.
    pub(super) async fn end(&self, state: RedriveState, now_ms: u64, unacked_left: Option<u64>) {
        let _one_at_a_time = self.writing.lock().await;
        let mut ended = self.status.lock().clone();
        if ended.state == RedriveState::Running {
            ended.state = state;
        }
        (ended.ended_ms, ended.unacked_left) = (Some(now_ms), unacked_left);
        if let Err(problem) = self.write(ended.clone()).await {
            tracing::warn!(id = ended.id, problem, "the end of a redrive is not on the disk");
        }
        *self.status.lock() = ended;
    }

    /// Forgets a job that has ended.
    pub(super) fn forget(&self) {
        let id = self.status.lock().id;
        self.keeper.forget(id);
    }

    async fn write(&self, job: RedriveJob) -> Result<(), String> {
        let is_running = job.state == RedriveState::Running;
        let unfinished = if is_running { self.unfinished.lock().clone() } else { None };
        self.keeper.write(Record { job, unfinished }).await
    }
}

/// The queue of a job, as it was when the job began or went on after a restart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) id: QueueId,
    pub(super) number: QueueNumber,
    /// Upper bound of sequence numbers; newer messages are left alone.
    pub(super) last_seq: u64,
    /// Number of messages that the redrive is about.
    pub(super) messages: u64,
}

impl Source {
    /// Finds the queue of this name, and checks that the user may redrive its messages to this destination.
    pub(super) fn find(
        handle: &VhostHandle,
        queue: &str,
        request: &RedriveRequest,
        access: &Access,
    ) -> Result<Self, RedriveError> {
        handle.read(|vhost, _| {
            let id = vhost.queue_id(queue).ok_or(RedriveError::NoSuchQueue)?;
            let is_of_kept = request.is_of_kept;
            let redrive = Redrive { queue: id, to: &request.to, access, is_of_kept };
            vhost.check_redrive(redrive).map_err(RedriveError::Refused)?;
            let queue = vhost.queue_of(id).ok_or(RedriveError::NoSuchQueue)?;
            let states = states(is_of_kept).iter();
            let messages = states.filter_map(|state| vhost.count_of(id, *state)).sum();
            Ok(Self { id, number: queue.number, last_seq: queue.last_seq(), messages })
        })
    }

    /// True if the message was in the queue when the job began.
    pub(super) fn had(&self, browsed: &BrowsedMessage) -> bool {
        browsed.entry.id.seq <= self.last_seq
    }

    /// Messages of the queue that clients hold; 0 if the queue is gone.
    pub(super) fn unacked(&self, handle: &VhostHandle) -> u64 {
        let state = MessageState::Unacknowledged;
        handle.read(|vhost, _| vhost.count_of(self.id, state)).unwrap_or_default()
    }
}

//! A redrive job and the queue that it is about.

use broker::access::Access;
use broker::redrive::{Redrive, RedriveTo};
use broker::{BrowsedMessage, MessageState, QueueId, QueueNumber};
use management::{RedriveError, RedriveJob, RedriveState};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::vhost::VhostHandle;

/// The states in which messages can be redriven.
pub(super) const WAITING: [MessageState; 2] = [MessageState::Ready, MessageState::Delayed];

/// The state of a job that the API reads, and its cancellation.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) status: Mutex<RedriveJob>,
    pub(super) cancelled: Notify,
}

impl Job {
    pub(super) fn is_running(&self) -> bool {
        self.status.lock().state == RedriveState::Running
    }

    /// Sets the final state, unless the job has one already.
    pub(super) fn end(&self, state: RedriveState) {
        let mut status = self.status.lock();
        if status.state == RedriveState::Running {
            status.state = state;
        }
    }
}

/// The queue of a job, as it was when the job began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) id: QueueId,
    pub(super) number: QueueNumber,
    /// Upper bound of sequence numbers; newer messages are left alone.
    pub(super) last_seq: u64,
    /// Number of waiting messages.
    pub(super) messages: u64,
}

impl Source {
    /// Finds the queue of this name, and checks that the user may redrive its messages to this destination.
    pub(super) fn find(
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
    pub(super) fn had(&self, browsed: &BrowsedMessage) -> bool {
        browsed.entry.id.seq <= self.last_seq
    }
}

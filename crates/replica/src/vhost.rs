//! The vhost of a replica, as far as the replica asks it something.

use std::time::Duration;

use storage::{WriteBatch, Written};

use crate::limits::LOCK_RETRY_MS;

/// The time after which a vhost whose lock is held for long is tried again.
pub(crate) const BUSY_RETRY: Duration = Duration::from_millis(LOCK_RETRY_MS);

/// The vhost of a replica that leads. It is behind a lock that may be held for long: no call waits for it.
pub trait Vhost {
    /// Takes the first batch of records that waits into `batch`, which must be empty. True if more wait. None, with nothing
    /// taken, if the lock is held for long.
    fn take_batch(&mut self, batch: &mut WriteBatch) -> Option<bool>;

    /// Reports that a majority has the last batch that was taken. False, with nothing done, if the lock is held for long.
    fn batch_durable(&mut self, written: Written) -> bool;

    /// Does the part of the vhost in a planned change of the leader. False, with nothing done, if the lock is held for long.
    fn hand_over(&mut self, task: HandOverTask) -> bool;
}

/// The part of a vhost in a planned change of the leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandOverTask {
    /// Let commands wait, deliver nothing more, and log that.
    Halt,
    /// Log that this node goes on to lead.
    KeepLeading,
    /// Go on.
    Resume,
}

//! A redrive job, in the log of the vhost and at its leader.

use std::sync::Arc;

use broker::redrive::RedriveLimit;
use broker::{Lsn, RedriveId};

/// A job, as the log has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RedriveJob {
    /// Messages that it moves at the most.
    pub(crate) limit: u8,
    /// Messages that it may have moved.
    pub(crate) moved_max: u8,
    /// True if messages go to the queue in which they died first.
    pub(crate) to_first: bool,
}

impl RedriveJob {
    pub(crate) fn to_octets(self) -> Arc<[u8]> {
        Arc::new([self.limit, self.moved_max, u8::from(self.to_first)])
    }

    pub(crate) fn read(octets: &[u8]) -> Self {
        let [limit, moved_max, to_first] = *octets else { panic!("a job of the simulation") };
        Self { limit, moved_max, to_first: to_first == 1 }
    }
}

impl RedriveRun {
    /// The limit of the job, and how much of it is used.
    pub(crate) fn limit(&self) -> RedriveLimit {
        let [limit, moved_max] = [self.job.limit, self.job.moved_max].map(u64::from);
        RedriveLimit { limit: Some(limit), moved: u64::from(self.moved), moved_max }
    }
}

/// A job that runs at the leader.
#[derive(Debug)]
pub(crate) struct RedriveRun {
    pub(crate) id: RedriveId,
    pub(crate) job: RedriveJob,
    /// Messages that it has moved, or may have moved under an earlier leader.
    pub(crate) moved: u8,
    /// Position of the record that the job waits for.
    pub(crate) saved: Lsn,
}

//! The redrive jobs of a replicated vhost, as the log has them for the next leader.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::{Lsn, RedriveId};

/// A job with its record.
#[derive(Debug)]
struct Logged {
    lsn: Lsn,
    job: Arc<[u8]>,
}

/// The jobs by id.
#[derive(Default, Debug)]
pub(crate) struct RedriveBook(BTreeMap<RedriveId, Logged>);

impl RedriveBook {
    /// Adds or replaces a job, whose record is at `lsn`.
    pub(crate) fn set(&mut self, id: RedriveId, lsn: Lsn, job: Arc<[u8]>) {
        self.0.insert(id, Logged { lsn, job });
    }

    /// Removes a job, and returns its record if there is such a job.
    pub(crate) fn clear(&mut self, id: RedriveId) -> Option<Lsn> {
        self.0.remove(&id).map(|logged| logged.lsn)
    }

    /// The record of a job; 0 if there is no such job.
    pub(crate) fn lsn(&self, id: RedriveId) -> Lsn {
        self.0.get(&id).map_or(Lsn(0), |logged| logged.lsn)
    }

    /// The jobs, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RedriveId, &Arc<[u8]>)> {
        self.0.iter().map(|(id, logged)| (*id, &logged.job))
    }

    /// Number of jobs.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

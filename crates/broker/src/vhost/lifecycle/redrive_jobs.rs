//! Redrive jobs of a replicated vhost: the shell runs them, and the log keeps them, so that the next leader goes on.

use std::sync::Arc;

use crate::ids::RedriveId;
use crate::record::Record;
use crate::time::Now;
use crate::vhost::Vhost;

impl Vhost {
    /// Logs a redrive job as it is now, in the shell's own format. The job is kept until [`Vhost::clear_redrive`].
    ///
    /// The vhost must be replicated: earlier builds do not know the record, and a vhost without replicas keeps the format
    /// of its log.
    pub fn set_redrive(&mut self, now: Now, id: RedriveId, job: Arc<[u8]>) {
        assert!(self.sums.is_some(), "only the log of a replicated vhost keeps redrives");
        self.advance(now);
        let before = self.redrives.lsn(id);
        let lsn = self.log_about(before, Record::SetRedrive { id, job: Arc::clone(&job) });
        self.redrives.set(id, lsn, job);
    }

    /// Removes a redrive job; false if there is no such job.
    pub fn clear_redrive(&mut self, now: Now, id: RedriveId) -> bool {
        self.advance(now);
        let record = self.redrives.clear(id);
        if let Some(lsn) = record {
            self.log_about(lsn, Record::ClearRedrive { id });
        }
        record.is_some()
    }

    /// The redrive jobs in the log, the oldest first.
    pub fn redrives(&self) -> impl Iterator<Item = (RedriveId, &Arc<[u8]>)> {
        self.redrives.iter()
    }
}

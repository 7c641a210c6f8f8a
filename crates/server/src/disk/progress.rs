//! Progress of the disk for one vhost, readable without the vhost's lock.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use broker::Lsn;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::disk::page_progress::PageProgress;
use crate::limits::PENDING_BYTES_MAX;

/// Progress of writing the log and the pages of one vhost.
#[derive(Debug)]
pub(crate) struct DiskProgress {
    /// Bytes of records that no batch has taken yet.
    pending_bytes: AtomicUsize,
    /// Last position of the log that is durable.
    durable_lsn: AtomicU64,
    pages: PageProgress,
    /// True while the log finds no room on the disk.
    is_out_of_room: AtomicBool,
    /// True if the vhost is deleted: nothing of it is written any more.
    is_retired: AtomicBool,
    /// Notified whenever the durable position or the paging backlog changes.
    changed: Notify,
}

impl DiskProgress {
    /// Progress of a vhost whose log is durable up to `durable`, with nothing to write.
    pub(crate) fn new(durable: Lsn) -> Self {
        Self {
            pending_bytes: AtomicUsize::new(0),
            durable_lsn: AtomicU64::new(durable.0),
            pages: PageProgress::default(),
            is_out_of_room: AtomicBool::new(false),
            is_retired: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    pub(crate) fn pages(&self) -> &PageProgress {
        &self.pages
    }

    pub(crate) fn set_pending_bytes(&self, bytes: usize) {
        self.pending_bytes.store(bytes, Ordering::Relaxed);
    }

    /// True while so many bytes wait for the disk that their publishers must wait.
    pub(crate) fn is_behind(&self) -> bool {
        let is_full = self.pending_bytes.load(Ordering::Relaxed) > PENDING_BYTES_MAX;
        (is_full || self.pages.is_behind()) && !self.is_retired()
    }

    /// Waits until the disk is not behind.
    pub(crate) async fn caught_up(&self) {
        loop {
            let changed = self.changed();
            if !self.is_behind() {
                return;
            }
            changed.await;
        }
    }

    /// Waits until the log is durable up to `lsn`.
    pub(crate) async fn durable_at(&self, lsn: Lsn) {
        loop {
            let changed = self.changed();
            if self.durable_lsn.load(Ordering::Acquire) >= lsn.0 {
                return;
            }
            changed.await;
        }
    }

    /// Records that the log is durable up to `lsn`; 0 after a batch that only ended references. Waiters are
    /// woken by [`Self::notify`], to be called once the waiting answers are in the outboxes.
    pub(crate) fn set_durable(&self, lsn: Lsn) {
        let before = self.durable_lsn.fetch_max(lsn.0, Ordering::AcqRel);
        assert!(
            lsn == Lsn(0) || before <= lsn.0 || before == u64::MAX,
            "the log of a live vhost became durable up to {before}, and then up to {}",
            lsn.0
        );
    }

    /// Records that the pager has written messages of `bytes` bytes, and wakes waiters.
    pub(crate) fn page_written(&self, bytes: u64) {
        self.pages.written(bytes);
        self.notify();
    }

    /// The next change. Take it before checking a condition, so that a change in between is noticed.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Wakes all waiters.
    pub(crate) fn notify(&self) {
        self.changed.notify_waiters();
    }

    /// Notes whether the log finds room on the disk. Returns the earlier state.
    pub(crate) fn set_out_of_room(&self, is_out_of_room: bool) -> bool {
        self.is_out_of_room.swap(is_out_of_room, Ordering::AcqRel)
    }

    /// True while the log finds no room on the disk.
    pub(crate) fn is_out_of_room(&self) -> bool {
        self.is_out_of_room.load(Ordering::Acquire)
    }

    /// True once the vhost is deleted.
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    /// Marks the vhost as deleted. Call it under the vhost's lock.
    pub(crate) fn set_retired(&self) {
        self.is_retired.store(true, Ordering::Release);
    }

    /// Releases all waiters of a deleted vhost, whose log is not written any more.
    pub(crate) fn release_waiters(&self) {
        self.durable_lsn.store(u64::MAX, Ordering::Release);
        self.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_durable_never_goes_back() {
        let progress = DiskProgress::new(Lsn(3));
        let durable = |progress: &DiskProgress| progress.durable_lsn.load(Ordering::Acquire);
        progress.set_durable(Lsn(5));
        // A batch without records, as when the messages of a dropped page end.
        progress.set_durable(Lsn(0));
        assert_eq!(durable(&progress), 5);
        progress.release_waiters();
        progress.set_durable(Lsn(6));
        assert_eq!(durable(&progress), u64::MAX);
    }
}

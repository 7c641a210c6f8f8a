//! A vhost as the writer of logs and the pager see it. Neither waits for its lock when somebody holds it for
//! long: they keep what they have for it, and come back.

use std::sync::atomic::Ordering;

use broker::Lsn;
use broker::page::{PageAt, PageRead, PageTask};
use storage::{WriteBatch, Written};

use super::{Held, State, Turn, VhostHandle};
use crate::disk::page_files::PageFiles;

impl VhostHandle {
    /// Takes the first batch of what waits for the disk; `batch` is empty. True if there are more, of
    /// which the writer knows then. None, with nothing taken, if the lock is held for long.
    pub(crate) fn take_batch(&self, batch: &mut WriteBatch) -> Option<bool> {
        let mut state = self.state.try_lock()?;
        let has_more = state.pending.take_batch(batch);
        state.writer_knows = has_more;
        if !has_more {
            state.paging.batch_taken();
        }
        Some(has_more)
    }

    /// Where its pages are.
    pub(crate) fn page_files(&self) -> &PageFiles {
        &self.page_files
    }

    /// Takes what is to be done with pages. None if the lock is held for long.
    pub(crate) fn take_page_tasks(&self) -> Option<Vec<PageTask>> {
        Some(self.state.try_lock()?.paging.take())
    }

    /// Messages of so many octets have been put aside.
    pub(crate) fn page_written(&self, bytes: u64) {
        self.paging.written(bytes);
        self.written.notify_waiters();
    }

    /// Messages of a page have been read. Gives them back if the lock is held for long.
    pub(crate) fn page_read(&self, at: PageAt, read: PageRead) -> Result<(), PageRead> {
        let Some(mut state) = self.state.try_lock() else { return Err(read) };
        let now = self.clock.now();
        state.vhost.page_read(now, at, read);
        self.finish(state);
        self.paging.read();
        self.written.notify_waiters();
        Ok(())
    }

    /// The messages of a page have left their queue with it; these records brought them. False, with
    /// nothing done, if the lock is held for long.
    pub(crate) fn page_ended(&self, lsns: &[Lsn]) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        for lsn in lsns {
            state.pending.release(storage::Lsn(lsn.0));
        }
        state.paging.page_ended();
        self.finish(state);
        true
    }

    /// Whether records are to end with pages, and the log does not know of all of them.
    pub(crate) fn is_ending_pages(&self) -> bool {
        self.paging.is_ending()
    }

    /// What was taken is written. False, with nobody told, if the lock is held for long.
    pub(crate) fn durable(&self, written: Written) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        self.paging.ended(state.paging.batch_written());
        let State { vhost, held, .. } = &mut *state;
        let durable = Lsn(written.durable.0);
        vhost.durable(durable);
        let answers: Vec<Held> = held.extract_if(.., |held| held.lsn <= durable).collect();
        self.durable_lsn.fetch_max(durable.0, Ordering::AcqRel);
        self.finish_with(state, &answers, Turn::end_fair);
        self.written.notify_waiters();
        true
    }
}

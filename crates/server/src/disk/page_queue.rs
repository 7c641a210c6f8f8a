//! What is to be done with the pages of a vhost, and how much of it is left.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use broker::page::PageTask;
use parking_lot::{Condvar, Mutex};

use crate::limits::PAGING_BYTES_MAX;

/// The part that stands behind the vhost's lock.
#[derive(Default, Debug)]
pub(crate) struct PageQueue {
    /// In order.
    tasks: Vec<PageTask>,
    /// The pager knows that there are some.
    pager_knows: bool,
    /// Pages whose records have ended since the writer took the last batch.
    ended: usize,
    /// Those whose records end with the batch that is being written.
    ended_in_batch: usize,
}

impl PageQueue {
    pub(crate) fn push(&mut self, task: PageTask) {
        self.tasks.push(task);
    }

    /// Whether the pager is to be told now; it knows then.
    pub(crate) fn wakes_pager(&mut self) -> bool {
        !self.tasks.is_empty() && !std::mem::replace(&mut self.pager_knows, true)
    }

    /// Takes everything that is to be done.
    pub(crate) fn take(&mut self) -> Vec<PageTask> {
        self.pager_knows = false;
        std::mem::take(&mut self.tasks)
    }

    /// The records of a page end with the next batch.
    pub(crate) fn page_ended(&mut self) {
        self.ended += 1;
    }

    /// The writer has taken a batch.
    pub(crate) fn batch_taken(&mut self) {
        self.ended_in_batch += std::mem::take(&mut self.ended);
    }

    /// It has written it. How many pages the log knows to have ended with it.
    pub(crate) fn batch_written(&mut self) -> usize {
        std::mem::take(&mut self.ended_in_batch)
    }
}

/// What is left to do, for everybody to see.
#[derive(Default, Debug)]
pub(crate) struct PageProgress {
    /// Octets of messages that wait to be put aside.
    bytes: AtomicU64,
    /// Pages whose records are to end, as far as the log does not know it.
    ending: AtomicUsize,
    /// Pages that are being read.
    reads: Mutex<usize>,
    was_read: Condvar,
}

impl PageProgress {
    /// There is one more task.
    pub(crate) fn begun(&self, task: &PageTask) {
        match task {
            PageTask::Write { messages, .. } => {
                let bytes = messages.iter().map(|message| message.message.delivery_bytes());
                self.bytes.fetch_add(bytes.sum(), Ordering::AcqRel);
            }
            PageTask::Read { .. } => *self.reads.lock() += 1,
            PageTask::Drop { ended, .. } => {
                self.ending.fetch_add(usize::from(ended.is_some()), Ordering::AcqRel);
            }
        }
    }

    /// Messages of so many octets are put aside.
    pub(crate) fn written(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// So many octets wait to be put aside that publishers have to wait.
    pub(crate) fn is_behind(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > PAGING_BYTES_MAX
    }

    /// A page has been read.
    pub(crate) fn read(&self) {
        *self.reads.lock() -= 1;
        self.was_read.notify_all();
    }

    /// Waits for one of the pages that are being read. False if there is none.
    pub(crate) fn wait_for_read(&self) -> bool {
        let mut reads = self.reads.lock();
        let reads_any = *reads > 0;
        if reads_any {
            self.was_read.wait(&mut reads);
        }
        reads_any
    }

    /// The log knows that the records of so many pages have ended.
    pub(crate) fn ended(&self, pages: usize) {
        self.ending.fetch_sub(pages, Ordering::AcqRel);
    }

    /// Whether it does not know that of all of them.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire) > 0
    }
}

#[cfg(test)]
mod tests {
    use broker::PageId;

    use super::*;

    fn drop_page(page: u64) -> PageTask {
        PageTask::Drop { page: PageId(page), ended: Some(broker::page::Held::default()) }
    }

    #[test]
    fn a_page_is_ending_until_the_batch_with_its_records_is_written() {
        let (counts, mut state) = (PageProgress::default(), PageQueue::default());
        for page in 1..=2 {
            counts.begun(&drop_page(page));
            state.push(drop_page(page));
        }
        assert!(state.wakes_pager());
        // The pager knows already and is not told again.
        counts.begun(&drop_page(3));
        state.push(drop_page(3));
        assert!(!state.wakes_pager());
        assert_eq!(state.take().len(), 3);
        state.page_ended();
        state.batch_taken();
        state.page_ended();
        counts.ended(state.batch_written());
        assert!(counts.is_ending(), "two of three are not written");
        state.page_ended();
        state.batch_taken();
        assert!(counts.is_ending());
        counts.ended(state.batch_written());
        assert!(!counts.is_ending());
    }

    #[test]
    fn nobody_waits_for_a_page_that_is_not_read() {
        assert!(!PageProgress::default().wait_for_read());
    }
}

//! Page tasks of one vhost: those that wait for the pager, and counts of unfinished ones.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use broker::page::PageTask;
use parking_lot::{Condvar, Mutex};

use crate::limits::PAGING_BYTES_MAX;

/// Tasks for the pager, behind the vhost's lock.
#[derive(Default, Debug)]
pub(crate) struct PageQueue {
    /// The tasks, in order.
    tasks: Vec<PageTask>,
    /// True if the pager was notified of tasks and has not taken them yet.
    pager_knows: bool,
    /// Pages whose records have ended since the persister took the last batch.
    ended: usize,
    /// Pages whose records end with the batch that is being written.
    ended_in_batch: usize,
}

impl PageQueue {
    pub(crate) fn push(&mut self, task: PageTask) {
        self.tasks.push(task);
    }

    /// True if the pager must be notified now that tasks wait; it counts as notified from then on.
    pub(crate) fn wakes_pager(&mut self) -> bool {
        !self.tasks.is_empty() && !std::mem::replace(&mut self.pager_knows, true)
    }

    /// Takes all tasks.
    pub(crate) fn take(&mut self) -> Vec<PageTask> {
        self.pager_knows = false;
        std::mem::take(&mut self.tasks)
    }

    /// Counts a page whose records end with the next batch.
    pub(crate) fn page_ended(&mut self) {
        self.ended += 1;
    }

    /// Notes that the persister has taken all waiting records.
    pub(crate) fn batch_taken(&mut self) {
        self.ended_in_batch += std::mem::take(&mut self.ended);
    }

    /// Notes that the batch is written. Returns the number of pages whose end the log knows since then.
    pub(crate) fn batch_written(&mut self) -> usize {
        std::mem::take(&mut self.ended_in_batch)
    }
}

/// Unfinished page tasks of one vhost, readable without its lock.
#[derive(Default, Debug)]
pub(crate) struct PageProgress {
    /// Bytes of messages that wait to be written.
    bytes: AtomicU64,
    /// Dropped pages whose records have not ended in the log yet.
    ending: AtomicUsize,
    /// Pages that are being read.
    reads: Mutex<usize>,
    was_read: Condvar,
}

impl PageProgress {
    /// Counts a new task.
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

    /// Notes that messages of `bytes` bytes are written.
    pub(crate) fn written(&self, bytes: u64) {
        let before = self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        assert!(before >= bytes, "{bytes} bytes of pages written, but only {before} waited");
    }

    /// True while so many bytes wait to be written that publishers must wait.
    pub(crate) fn is_behind(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > PAGING_BYTES_MAX
    }

    /// Notes that a page was read.
    pub(crate) fn read(&self) {
        let mut reads = self.reads.lock();
        *reads = reads.checked_sub(1).expect("a page was read that nobody asked for");
        drop(reads);
        self.was_read.notify_all();
    }

    /// Waits until one of the pages being read is there. False, at once, if none is being read.
    pub(crate) fn wait_for_read(&self) -> bool {
        let mut reads = self.reads.lock();
        let reads_any = *reads > 0;
        if reads_any {
            self.was_read.wait(&mut reads);
        }
        reads_any
    }

    /// Notes that the records of `pages` pages have ended in the log.
    pub(crate) fn ended(&self, pages: usize) {
        let before = self.ending.fetch_sub(pages, Ordering::AcqRel);
        assert!(before >= pages, "{pages} pages ended in the log, but only {before} were to");
    }

    /// True while records of dropped pages have not ended in the log.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire) > 0
    }
}

#[cfg(test)]
mod tests {
    use broker::PageId;
    use broker::page::{EndedMessages, PageMembers};

    use super::*;

    fn drop_page(page: u64) -> PageTask {
        let ended = Some(EndedMessages::Members(PageMembers::default()));
        PageTask::Drop { page: PageId(page), ended }
    }

    #[test]
    fn page_is_ending_until_the_batch_with_its_records_is_written() {
        let (progress, mut queue) = (PageProgress::default(), PageQueue::default());
        for page in 1..=2 {
            progress.begun(&drop_page(page));
            queue.push(drop_page(page));
        }
        assert!(queue.wakes_pager());
        // The pager is notified already.
        progress.begun(&drop_page(3));
        queue.push(drop_page(3));
        assert!(!queue.wakes_pager());
        assert_eq!(queue.take().len(), 3);
        queue.page_ended();
        queue.batch_taken();
        queue.page_ended();
        progress.ended(queue.batch_written());
        assert!(progress.is_ending(), "two of three are not written");
        queue.page_ended();
        queue.batch_taken();
        assert!(progress.is_ending());
        progress.ended(queue.batch_written());
        assert!(!progress.is_ending());
    }

    #[test]
    fn wait_for_read_returns_at_once_if_no_page_is_read() {
        assert!(!PageProgress::default().wait_for_read());
    }
}

//! Counts of the unfinished page tasks of one vhost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use broker::page::PageTask;
use parking_lot::{Condvar, Mutex};

use crate::limits::PAGING_BYTES_MAX;

/// Unfinished page tasks of one vhost, readable without its lock.
#[derive(Default, Debug)]
pub(crate) struct PageProgress {
    /// Bytes of messages that wait to be written.
    bytes: AtomicU64,
    /// True while records of dropped pages have not ended in the log.
    is_ending: AtomicBool,
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
            PageTask::Drop { .. } => {}
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

    /// Notes whether records of dropped pages have not ended in the log. Call it under the vhost's lock.
    pub(crate) fn set_ending(&self, is_ending: bool) {
        self.is_ending.store(is_ending, Ordering::Release);
    }

    /// True while records of dropped pages have not ended in the log.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_for_read_returns_at_once_if_no_page_is_read() {
        assert!(!PageProgress::default().wait_for_read());
    }
}

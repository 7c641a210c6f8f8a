//! Page tasks of one vhost that wait for the thread that does them, and counts of those that the log does not know yet.

use broker::page::PageTask;

/// Tasks for the pager, the thread that does them.
#[derive(Default, Debug)]
pub(crate) struct PageQueue {
    /// The tasks, in order.
    tasks: Vec<PageTask>,
    /// True if the pager was notified of tasks and has not taken them yet.
    pager_knows: bool,
    /// Dropped pages whose records have not ended in the log yet.
    ending: usize,
    /// Pages whose records have ended since the writer of the log took the last batch.
    ended: usize,
    /// Pages whose records end with the batch that is being written.
    ended_in_batch: usize,
}

impl PageQueue {
    /// Adds a task.
    pub(crate) fn push(&mut self, task: PageTask) {
        self.ending += usize::from(matches!(task, PageTask::Drop { ended: Some(_), .. }));
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

    /// Notes that the writer of the log has taken all waiting records.
    pub(crate) fn batch_taken(&mut self) {
        self.ended_in_batch += std::mem::take(&mut self.ended);
    }

    /// Notes that the batch is written. Returns the number of pages whose end the log knows since then.
    pub(crate) fn batch_written(&mut self) -> usize {
        let ended = std::mem::take(&mut self.ended_in_batch);
        let ending = self.ending.checked_sub(ended);
        self.ending = ending.expect("no more pages end in the log than were dropped");
        ended
    }

    /// True while records of dropped pages have not ended in the log. Until then the record of the purge or deletion must be
    /// kept, and the log must not be compacted: it does not know yet which records the purge has ended.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending > 0
    }

    /// Drops all tasks: the log will not hear of pages that are ending any more.
    pub(crate) fn abandon(&mut self) {
        *self = Self { ending: self.ending, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use broker::PageId;
    use broker::page::{EndedMessages, PageMembers};

    use super::*;

    fn drop_page(page: u64) -> PageTask {
        PageTask::Drop { page: PageId(page), ended: None }
    }

    fn drop_with_messages(page: u64) -> PageTask {
        let ended = Some(EndedMessages::Members(PageMembers::default()));
        PageTask::Drop { page: PageId(page), ended }
    }

    #[test]
    fn wakes_pager_is_true_until_the_pager_has_taken_the_tasks() {
        let mut queue = PageQueue::default();
        assert!(!queue.wakes_pager(), "nothing waits");
        (1..=2).for_each(|page| queue.push(drop_page(page)));
        assert!(queue.wakes_pager());
        queue.push(drop_page(3));
        assert!(!queue.wakes_pager(), "the pager is notified already");
        assert_eq!(queue.take().len(), 3);
        queue.push(drop_page(4));
        assert!(queue.wakes_pager());
    }

    #[test]
    fn batch_written_tells_the_pages_that_ended_before_the_last_batch_was_taken() {
        let mut queue = PageQueue::default();
        (1..=3).for_each(|page| queue.push(drop_with_messages(page)));
        queue.page_ended();
        assert_eq!(queue.batch_written(), 0, "no batch was taken");
        queue.batch_taken();
        queue.page_ended();
        assert_eq!(queue.batch_written(), 1);
        assert!(queue.is_ending(), "two of three are not written");
        queue.page_ended();
        queue.batch_taken();
        assert_eq!(queue.batch_written(), 2);
        assert_eq!(queue.batch_written(), 0);
        assert!(!queue.is_ending());
    }

    #[test]
    fn abandoned_pages_are_ending_for_ever() {
        let mut queue = PageQueue::default();
        queue.push(drop_page(1));
        queue.abandon();
        assert!(!queue.is_ending(), "nothing was in the page");
        queue.push(drop_with_messages(2));
        queue.abandon();
        assert!(queue.take().is_empty() && queue.is_ending());
    }
}

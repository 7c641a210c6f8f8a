//! The order of the page tasks of one vhost.
//!
//! A consumer waits for each read, and nobody waits for a write. Reads overtake the writes and drops of other pages,
//! so that a burst of publishes, or a disk that is slow to write, does not delay the consumers of what is on disk.

use std::collections::{HashSet, VecDeque};

use broker::PageId;
use broker::page::PageTask;

/// A task with its number: tasks are numbered in the order in which the vhost asked for them.
type Numbered = (u64, PageTask);

/// Tasks that the pager has taken.
#[derive(Default, Debug)]
pub(super) struct PageTasks {
    /// Number of the next task.
    next: u64,
    /// Reads of pages that are written.
    reads: VecDeque<Numbered>,
    /// The other tasks, among them the reads of pages that are not written yet.
    others: VecDeque<Numbered>,
    /// Pages whose writes are among `others`.
    unwritten: HashSet<PageId>,
    /// True if the last task was a read that another task waited for.
    has_overtaken: bool,
}

impl PageTasks {
    /// Adds tasks behind those that it has.
    pub(super) fn extend(&mut self, tasks: Vec<PageTask>) {
        for task in tasks {
            let overtakes = match &task {
                PageTask::Read { at, .. } => !self.unwritten.contains(&at.page),
                PageTask::Write { page, .. } => {
                    self.unwritten.insert(*page);
                    false
                }
                PageTask::Drop { .. } => false,
            };
            let queue = if overtakes { &mut self.reads } else { &mut self.others };
            queue.push_back((self.next, task));
            self.next += 1;
        }
    }

    /// Takes the next task: reads and other tasks in turns, so that neither kind waits for all of the other kind.
    ///
    /// A drop waits for all earlier reads, because they may be of its page.
    pub(super) fn next(&mut self) -> Option<PageTask> {
        let overtakes = match (self.reads.front(), self.others.front()) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some((read, _)), Some((drop, PageTask::Drop { .. }))) if read < drop => true,
            (Some(_), Some(_)) => !self.has_overtaken,
        };
        self.has_overtaken = overtakes && !self.others.is_empty();
        let queue = if overtakes { &mut self.reads } else { &mut self.others };
        let (_, task) = queue.pop_front()?;
        if let PageTask::Write { page, .. } = &task {
            self.unwritten.remove(page);
            self.reads_of_written(*page);
        }
        Some(task)
    }

    /// Lets the reads of a page that is written now be done in the order in which they were asked for: a later read of
    /// another page of the queue must not overtake them.
    fn reads_of_written(&mut self, written: PageId) {
        let is_read =
            |(_, task): &Numbered| matches!(task, PageTask::Read { at, .. } if at.page == written);
        if !self.others.iter().any(is_read) {
            return;
        }
        let (reads, others) = std::mem::take(&mut self.others).into_iter().partition(is_read);
        self.others = others;
        let reads: VecDeque<Numbered> = reads;
        for (number, read) in reads {
            let place = self.reads.partition_point(|(other, _)| *other < number);
            self.reads.insert(place, (number, read));
        }
    }
}

#[cfg(test)]
mod tests {
    use broker::QueueId;
    use broker::page::{PageLocation, PageOwner, PageSelection};

    use super::*;

    fn task(text: &str) -> PageTask {
        let (kind, page) = text.split_at(1);
        let page = PageId(page.parse().expect("a page"));
        match kind {
            "w" => PageTask::Write { page, messages: Vec::new() },
            "d" => PageTask::Drop { page, ended: None },
            _ => {
                let owner = PageOwner::Scheduled(QueueId::default());
                let at = PageLocation { owner, page };
                PageTask::Read { at, wanted: PageSelection::Whole }
            }
        }
    }

    fn text(task: &PageTask) -> String {
        match task {
            PageTask::Write { page, .. } => format!("w{}", page.0),
            PageTask::Read { at, .. } => format!("r{}", at.page.0),
            PageTask::Drop { page, .. } => format!("d{}", page.0),
        }
    }

    #[track_caller]
    fn check(asked: &str, done: &str) {
        let mut tasks = PageTasks::default();
        tasks.extend(asked.split_whitespace().map(task).collect());
        let order: Vec<String> = std::iter::from_fn(|| tasks.next()).map(|it| text(&it)).collect();
        assert_eq!(order.join(" "), done, "{asked}");
    }

    #[test]
    fn reads_overtake_tasks_of_other_pages_in_turns() {
        check("w7 w8 w9 r1 r2", "r1 w7 r2 w8 w9");
        check("w7 r1 d2", "r1 w7 d2");
        check("r1 r2 r3", "r1 r2 r3");
    }

    #[test]
    fn page_is_written_before_its_read_and_read_before_its_drop() {
        check("w7 w8 r8 r1", "r1 w7 w8 r8");
        check("w7 w8 w9 r7", "w7 r7 w8 w9");
        check("w7 r7 d7", "w7 r7 d7");
        check("r1 d1 w7", "r1 d1 w7");
        check("w7 r1 r2 d1 d2", "r1 w7 r2 d1 d2");
        check("d7 r1 r2", "r1 d7 r2");
    }

    /// Otherwise the second page of a queue would come before the first, and be lost.
    #[test]
    fn later_read_does_not_overtake_one_that_waited_for_its_write() {
        let mut tasks = PageTasks::default();
        tasks.extend("w1 w2 w3 w4 r1".split_whitespace().map(task).collect());
        let mut order: Vec<String> = (0..2).map(|_| text(&tasks.next().unwrap())).collect();
        tasks.extend(vec![task("r2")]);
        order.extend(std::iter::from_fn(|| tasks.next()).map(|it| text(&it)));
        assert_eq!(order.join(" "), "w1 r1 w2 r2 w3 w4");
    }

    #[test]
    fn read_waits_for_writes_that_were_taken_before() {
        let mut tasks = PageTasks::default();
        tasks.extend(vec![task("w1"), task("w2")]);
        tasks.extend(vec![task("r2"), task("r3")]);
        let order: Vec<String> = std::iter::from_fn(|| tasks.next()).map(|it| text(&it)).collect();
        assert_eq!(order.join(" "), "r3 w1 w2 r2");
    }
}

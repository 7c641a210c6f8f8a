//! The work on the pages of one vhost: its tasks, one after the other, and their results for the vhost.

use broker::page::{PageLocation, PageRead, PageSelection, PageTask, PagedMessage, PagedMeta};
use broker::{Lsn, PageId};

use super::tasks::PageTasks;

/// A vhost with its pages. It is behind a lock that may be held for long: no call waits for it.
pub trait PagedVhost {
    /// The reason why a page cannot be read.
    type Error;

    /// Takes all tasks of the vhost. None if the lock is held for long.
    fn take_page_tasks(&mut self) -> Option<Vec<PageTask>>;

    /// Hands over the messages read from a page. Returns them if the lock is held for long.
    ///
    /// # Errors
    /// The messages, for the next try.
    fn page_read(&mut self, at: PageLocation, read: PageRead) -> Result<(), PageRead>;

    /// Reports the records of the messages that left their queue together with their page. False, with
    /// nothing done, if the lock is held for long.
    fn page_ended(&mut self, lsns: &[Lsn]) -> bool;

    /// Writes a page.
    fn write(&mut self, page: PageId, messages: Vec<PagedMessage>);

    /// Reads messages of a page.
    ///
    /// # Errors
    /// If the page cannot be read.
    fn read(&mut self, page: PageId, wanted: PageSelection) -> Result<PageRead, Self::Error>;

    /// Facts about the messages of a page.
    ///
    /// # Errors
    /// If the page cannot be read.
    fn meta(&mut self, page: PageId) -> Result<Vec<PagedMeta>, Self::Error>;

    /// Removes a page.
    fn remove(&mut self, page: PageId);
}

/// Result of a task, for the vhost.
#[derive(Debug)]
enum TaskResult {
    Read(PageLocation, PageRead),
    Ended(Vec<Lsn>),
}

/// Outcome of one step of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobProgress {
    /// A task was done, or its result was reported.
    Advanced,
    /// The lock of the vhost is held for long.
    Locked,
    /// No work is left.
    Done,
}

/// The tasks of one vhost.
#[derive(Debug)]
pub struct PageJob {
    tasks: PageTasks,
    /// True if the vhost has further tasks.
    has_more: bool,
    /// The result of a task that is not reported to the vhost yet.
    result: Option<TaskResult>,
}

impl Default for PageJob {
    fn default() -> Self {
        Self { tasks: PageTasks::default(), has_more: true, result: None }
    }
}

impl PageJob {
    /// Notes that the vhost has further tasks.
    pub fn wake(&mut self) {
        self.has_more = true;
    }

    /// Reports the last result, or takes tasks and does one.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub fn advance<V: PagedVhost>(&mut self, vhost: &mut V) -> Result<JobProgress, V::Error> {
        if let Some(result) = self.result.take() {
            self.result = report(result, vhost);
            return Ok(match self.result {
                Some(_) => JobProgress::Locked,
                None => JobProgress::Advanced,
            });
        }
        // New reads overtake what was taken before.
        let are_taken = self.take_tasks(vhost);
        match self.tasks.next() {
            Some(task) => self.perform(task, vhost)?,
            None if are_taken => return Ok(JobProgress::Done),
            None => return Ok(JobProgress::Locked),
        }
        Ok(JobProgress::Advanced)
    }

    /// Takes the further tasks; false if the lock is held for long.
    fn take_tasks(&mut self, vhost: &mut impl PagedVhost) -> bool {
        if self.has_more {
            let Some(tasks) = vhost.take_page_tasks() else { return false };
            self.has_more = false;
            self.tasks.extend(tasks);
        }
        true
    }

    fn perform<V: PagedVhost>(&mut self, task: PageTask, vhost: &mut V) -> Result<(), V::Error> {
        assert!(self.result.is_none(), "a task begins before the result of the last is reported");
        match task {
            PageTask::Write { page, messages } => vhost.write(page, messages),
            PageTask::Read { at, wanted } => {
                let read = vhost.read(at.page, wanted)?;
                self.result = report(TaskResult::Read(at, read), vhost);
            }
            PageTask::Drop { page, ended } => {
                if let Some(ended) = ended {
                    let lsns = ended.records(|| vhost.meta(page))?;
                    self.result = report(TaskResult::Ended(lsns), vhost);
                }
                vhost.remove(page);
            }
        }
        Ok(())
    }
}

/// Reports a result to the vhost; returns it if the lock is held for long.
fn report(result: TaskResult, vhost: &mut impl PagedVhost) -> Option<TaskResult> {
    match result {
        TaskResult::Read(at, read) => {
            vhost.page_read(at, read).err().map(|read| TaskResult::Read(at, read))
        }
        TaskResult::Ended(lsns) => (!vhost.page_ended(&lsns)).then_some(TaskResult::Ended(lsns)),
    }
}

//! The one thread that writes and reads pages: what of long queues waits on disk.
//!
//! It does the tasks of each vhost in their order, one task of each vhost in turn, without the vhost's
//! lock, and hands over the messages that it read. A vhost whose lock is held for long gets them later. A
//! page that cannot be read ends the process: what is durable in it comes back from the log.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use broker::Lsn;
use broker::page::{PageAt, PageRead, PageTask};
use parking_lot::{Condvar, Mutex};

use crate::limits::{EXIT_DISK, LOCK_RETRY_MS};
use crate::vhost::VhostHandle;

#[derive(Default, Debug)]
struct Work {
    /// Vhosts with something to do.
    dirty: Vec<Arc<VhostHandle>>,
    stopping: bool,
}

/// Wakes the thread.
#[derive(Default, Debug)]
pub(crate) struct Pager {
    work: Mutex<Work>,
    changed: Condvar,
    /// Held while a task is done.
    busy: Mutex<()>,
}

impl Pager {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start() -> io::Result<Arc<Self>> {
        let pager = Arc::new(Self::default());
        let runs = Arc::clone(&pager);
        std::thread::Builder::new().name("pager".to_owned()).spawn(move || runs.run())?;
        Ok(pager)
    }

    /// There is something to do for a vhost; told once until it has been taken.
    pub(crate) fn wake(&self, handle: Arc<VhostHandle>) {
        self.work.lock().dirty.push(handle);
        self.changed.notify_one();
    }

    /// Waits until nothing is done for a vhost that has been retired: its remaining tasks are dropped.
    pub(crate) fn finish(&self) {
        drop(self.busy.lock());
    }

    /// Ends the thread: what waits in pages means nothing to the next process.
    pub(crate) fn stop(&self) {
        self.work.lock().stopping = true;
        self.changed.notify_one();
    }

    fn run(&self) {
        let mut jobs: VecDeque<Job> = VecDeque::new();
        // Vhosts in a row that could not go on because of their locks.
        let mut locked = 0;
        loop {
            let handles = {
                let mut work = self.work.lock();
                if work.dirty.is_empty() && !jobs.is_empty() && locked >= jobs.len() {
                    self.changed.wait_for(&mut work, Duration::from_millis(LOCK_RETRY_MS));
                    locked = 0;
                }
                while work.dirty.is_empty() && jobs.is_empty() && !work.stopping {
                    self.changed.wait(&mut work);
                }
                if work.stopping {
                    return;
                }
                std::mem::take(&mut work.dirty)
            };
            for handle in handles {
                match jobs.iter_mut().find(|job| Arc::ptr_eq(&job.handle, &handle)) {
                    Some(job) => job.has_more = true,
                    None => jobs.push_back(Job::new(handle)),
                }
            }
            let Some(mut job) = jobs.pop_front() else { continue };
            let _busy = self.busy.lock();
            match job.advance() {
                Progress::Done => {}
                Progress::Advanced => {
                    locked = 0;
                    jobs.push_back(job);
                }
                Progress::Locked => {
                    locked += 1;
                    jobs.push_back(job);
                }
            }
        }
    }
}

/// The tasks of one vhost.
struct Job {
    handle: Arc<VhostHandle>,
    /// In order.
    tasks: VecDeque<PageTask>,
    /// The vhost has tasks that were not taken.
    has_more: bool,
    /// The result of a task, which the vhost does not know.
    result: Option<TaskResult>,
}

/// What a vhost is told about a task.
enum TaskResult {
    Read(PageAt, PageRead),
    Ended(Vec<Lsn>),
}

/// What came of one step of a job.
enum Progress {
    Advanced,
    /// The lock of the vhost is held for long.
    Locked,
    /// Nothing is left to do.
    Done,
}

impl Job {
    fn new(handle: Arc<VhostHandle>) -> Self {
        Self { handle, tasks: VecDeque::new(), has_more: true, result: None }
    }

    /// Tells the vhost the last result, takes tasks, or does one.
    fn advance(&mut self) -> Progress {
        if self.handle.is_retired() {
            return Progress::Done;
        }
        if let Some(result) = self.result.take() {
            self.result = self.tell(result);
            return if self.result.is_some() { Progress::Locked } else { Progress::Advanced };
        }
        let Some(task) = self.tasks.pop_front() else {
            return self.take_tasks();
        };
        self.perform(task);
        Progress::Advanced
    }

    fn take_tasks(&mut self) -> Progress {
        if !self.has_more {
            return Progress::Done;
        }
        let Some(tasks) = self.handle.take_page_tasks() else {
            return Progress::Locked;
        };
        self.has_more = false;
        self.tasks = tasks.into();
        Progress::Advanced
    }

    /// Tells the vhost a result; gives it back if the lock is held for long.
    fn tell(&self, result: TaskResult) -> Option<TaskResult> {
        match result {
            TaskResult::Read(at, read) => {
                self.handle.page_read(at, read).err().map(|read| TaskResult::Read(at, read))
            }
            TaskResult::Ended(lsns) => {
                (!self.handle.page_ended(&lsns)).then_some(TaskResult::Ended(lsns))
            }
        }
    }

    fn perform(&mut self, task: PageTask) {
        let (handle, page_files) = (&self.handle, self.handle.page_files());
        match task {
            PageTask::Write { page, messages } => {
                let bytes = messages.iter().map(|message| message.message.delivery_bytes()).sum();
                page_files.write(page, messages);
                handle.page_written(bytes);
            }
            PageTask::Read { at, wanted } => match page_files.read(at.page, wanted) {
                Ok(read) => self.result = self.tell(TaskResult::Read(at, read)),
                Err(problem) => end(handle, &problem),
            },
            PageTask::Drop { page, ended } => {
                if let Some(held) = ended {
                    let facts =
                        page_files.facts(page).unwrap_or_else(|problem| end(handle, &problem));
                    let left = facts.into_iter().filter(|facts| held.contains(facts.seq));
                    let lsns = left.map(|facts| facts.lsn).filter(|lsn| *lsn != Lsn(0)).collect();
                    self.result = self.tell(TaskResult::Ended(lsns));
                }
                page_files.remove(page);
            }
        }
    }
}

fn end(handle: &VhostHandle, problem: &str) -> ! {
    tracing::error!(
        vhost = handle.name(),
        "messages that wait on disk cannot be read: {problem}; the broker ends, and what is durable \
         comes back from the log"
    );
    std::process::exit(EXIT_DISK);
}

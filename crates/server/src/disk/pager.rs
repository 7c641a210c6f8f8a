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
use crate::vhost::VhostCell;

#[derive(Default, Debug)]
struct Work {
    /// Vhosts with something to do.
    dirty: Vec<Arc<VhostCell>>,
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
    pub(crate) fn wake(&self, cell: Arc<VhostCell>) {
        self.work.lock().dirty.push(cell);
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
            let cells = {
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
            for cell in cells {
                match jobs.iter_mut().find(|job| Arc::ptr_eq(&job.cell, &cell)) {
                    Some(job) => job.has_more = true,
                    None => jobs.push_back(Job::new(cell)),
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
    cell: Arc<VhostCell>,
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
    fn new(cell: Arc<VhostCell>) -> Self {
        Self { cell, tasks: VecDeque::new(), has_more: true, result: None }
    }

    /// Tells the vhost the last result, takes tasks, or does one.
    fn advance(&mut self) -> Progress {
        if self.cell.is_retired() {
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
        let Some(tasks) = self.cell.take_page_tasks() else {
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
                self.cell.page_read(at, read).err().map(|read| TaskResult::Read(at, read))
            }
            TaskResult::Ended(lsns) => {
                (!self.cell.page_ended(&lsns)).then_some(TaskResult::Ended(lsns))
            }
        }
    }

    fn perform(&mut self, task: PageTask) {
        let (cell, shelf) = (&self.cell, self.cell.shelf());
        match task {
            PageTask::Write { page, messages } => {
                let bytes = messages.iter().map(|message| message.message.delivery_bytes()).sum();
                shelf.write(page, messages);
                cell.page_written(bytes);
            }
            PageTask::Read { at, wanted } => match shelf.read(at.page, wanted) {
                Ok(read) => self.result = self.tell(TaskResult::Read(at, read)),
                Err(problem) => end(cell, &problem),
            },
            PageTask::Drop { page, ended } => {
                if let Some(held) = ended {
                    let facts = shelf.facts(page).unwrap_or_else(|problem| end(cell, &problem));
                    let left = facts.into_iter().filter(|facts| held.contains(facts.seq));
                    let lsns = left.map(|facts| facts.lsn).filter(|lsn| *lsn != Lsn(0)).collect();
                    self.result = self.tell(TaskResult::Ended(lsns));
                }
                shelf.remove(page);
            }
        }
    }
}

fn end(cell: &VhostCell, problem: &str) -> ! {
    tracing::error!(
        vhost = cell.name(),
        "messages that wait on disk cannot be read: {problem}; the broker ends, and what is durable \
         comes back from the log"
    );
    std::process::exit(EXIT_DISK);
}

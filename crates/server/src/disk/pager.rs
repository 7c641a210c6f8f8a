//! The pager: the thread that writes and reads pages, which hold messages of long queues on disk.
//!
//! The pager does the tasks of each vhost in the order of [`PageTasks`], one task per vhost in turn, without the vhost's
//! lock, and hands over the messages it read. A vhost whose lock is held for long gets them later. A page that cannot
//! be read ends the process, because its durable messages can be recovered from the log.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use broker::Lsn;
use broker::page::{PageLocation, PageRead, PageTask};
use parking_lot::{Condvar, Mutex};

use crate::disk::page_files::{PageError, PageFiles};
use crate::disk::page_tasks::PageTasks;
use crate::disk::progress::DiskProgress;
use crate::disk::vhost_files::VhostId;
use crate::limits::{EXIT_DISK, LOCK_RETRY_MS};

/// A vhost whose pages the pager writes and reads. No call waits for the vhost's lock if it is held for long,
/// because the pager serves other vhosts, too.
pub(crate) trait PageSource: fmt::Debug + Send + Sync {
    fn id(&self) -> VhostId;

    fn name(&self) -> &str;

    fn progress(&self) -> &DiskProgress;

    fn page_files(&self) -> &PageFiles;

    /// Takes all tasks. None if the lock is held for long.
    fn take_page_tasks(&self) -> Option<Vec<PageTask>>;

    /// Hands over the messages read from a page. Returns them if the lock is held for long.
    fn page_read(&self, at: PageLocation, read: PageRead) -> Result<(), PageRead>;

    /// Reports the records of the messages that left their queue together with their page. False, with
    /// nothing done, if the lock is held for long.
    fn page_ended(&self, lsns: &[Lsn]) -> bool;
}

#[derive(Default, Debug)]
struct Work {
    vhosts: BTreeMap<VhostId, Weak<dyn PageSource>>,
    /// Vhosts with tasks.
    dirty: Vec<VhostId>,
    stopping: bool,
}

/// Hands work to the pager's thread.
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
    /// If the operating system cannot start a thread.
    pub(crate) fn start() -> io::Result<Arc<Self>> {
        let pager = Arc::new(Self::default());
        let runs = Arc::clone(&pager);
        std::thread::Builder::new().name("pager".to_owned()).spawn(move || runs.run())?;
        Ok(pager)
    }

    /// Registers a vhost, before its first [`Self::wake`].
    pub(crate) fn add(&self, id: VhostId, source: Weak<dyn PageSource>) {
        let mut work = self.work.lock();
        work.vhosts.retain(|_, source| source.strong_count() > 0);
        let before = work.vhosts.insert(id, source);
        assert!(before.is_none(), "ids of vhosts are never used again");
    }

    /// Forgets a vhost, so that another handle of the same vhost can be registered. Returns when no task of it is
    /// running; its other tasks are dropped.
    pub(crate) fn remove(&self, id: VhostId) {
        self.work.lock().vhosts.remove(&id);
        self.finish();
    }

    /// Reports that a vhost has tasks; called once until they are taken.
    pub(crate) fn wake(&self, vhost: VhostId) {
        self.work.lock().dirty.push(vhost);
        self.changed.notify_one();
    }

    /// Waits until no task of a retired vhost is running. Its other tasks are dropped.
    pub(crate) fn finish(&self) {
        drop(self.busy.lock());
    }

    /// Ends the thread. Remaining tasks are dropped, because the next process does not use these pages.
    pub(crate) fn stop(&self) {
        self.work.lock().stopping = true;
        self.changed.notify_one();
    }

    fn run(&self) {
        let mut jobs: VecDeque<Job> = VecDeque::new();
        // Consecutive jobs that could not continue because of their vhosts' locks.
        let mut locked = 0;
        loop {
            let woken: Vec<Arc<dyn PageSource>> = {
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
                let dirty = std::mem::take(&mut work.dirty);
                // The tasks of a deleted vhost are not needed.
                dirty.iter().filter_map(|id| work.vhosts.get(id)?.upgrade()).collect()
            };
            for source in woken {
                match jobs.iter_mut().find(|job| job.source.id() == source.id()) {
                    Some(job) => job.has_more = true,
                    None => jobs.push_back(Job::new(source)),
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
    source: Arc<dyn PageSource>,
    tasks: PageTasks,
    /// True if the vhost has further tasks.
    has_more: bool,
    /// The result of a task that is not reported to the vhost yet.
    result: Option<TaskResult>,
}

/// Result of a task, for the vhost.
enum TaskResult {
    Read(PageLocation, PageRead),
    Ended(Vec<Lsn>),
}

/// Outcome of one step of a job.
enum Progress {
    Advanced,
    /// The lock of the vhost is held for long.
    Locked,
    /// No work is left.
    Done,
}

impl Job {
    fn new(source: Arc<dyn PageSource>) -> Self {
        Self { source, tasks: PageTasks::default(), has_more: true, result: None }
    }

    /// Reports the last result, or takes tasks and does one.
    fn advance(&mut self) -> Progress {
        if self.source.progress().is_retired() {
            return Progress::Done;
        }
        if let Some(result) = self.result.take() {
            self.result = self.report(result);
            return if self.result.is_some() { Progress::Locked } else { Progress::Advanced };
        }
        // New reads overtake what the pager has taken before.
        let are_taken = self.take_tasks();
        match self.tasks.next() {
            Some(task) => self.perform(task),
            None if are_taken => return Progress::Done,
            None => return Progress::Locked,
        }
        Progress::Advanced
    }

    /// Takes the further tasks; false if the lock is held for long.
    fn take_tasks(&mut self) -> bool {
        if self.has_more {
            let Some(tasks) = self.source.take_page_tasks() else { return false };
            self.has_more = false;
            self.tasks.extend(tasks);
        }
        true
    }

    /// Reports a result to the vhost; returns it if the lock is held for long.
    fn report(&self, result: TaskResult) -> Option<TaskResult> {
        match result {
            TaskResult::Read(at, read) => {
                self.source.page_read(at, read).err().map(|read| TaskResult::Read(at, read))
            }
            TaskResult::Ended(lsns) => {
                (!self.source.page_ended(&lsns)).then_some(TaskResult::Ended(lsns))
            }
        }
    }

    fn perform(&mut self, task: PageTask) {
        assert!(self.result.is_none(), "a task begins before the result of the last is reported");
        let (source, page_files) = (&self.source, self.source.page_files());
        match task {
            PageTask::Write { page, messages } => {
                let bytes = messages.iter().map(|message| message.message.delivery_bytes()).sum();
                page_files.write(page, messages);
                source.progress().page_written(bytes);
            }
            PageTask::Read { at, wanted } => match page_files.read(at.page, wanted) {
                Ok(read) => self.result = self.report(TaskResult::Read(at, read)),
                Err(error) => exit(source.name(), &error),
            },
            PageTask::Drop { page, ended } => {
                if let Some(ended) = ended {
                    let lsns = ended.records(|| page_files.meta(page));
                    let lsns = lsns.unwrap_or_else(|error| exit(source.name(), &error));
                    self.result = self.report(TaskResult::Ended(lsns));
                }
                page_files.remove(page);
            }
        }
    }
}

fn exit(vhost: &str, error: &PageError) -> ! {
    tracing::error!(
        vhost,
        "messages that wait on disk cannot be read: {error}; the broker ends, and what is durable \
         comes back from the log"
    );
    std::process::exit(EXIT_DISK);
}

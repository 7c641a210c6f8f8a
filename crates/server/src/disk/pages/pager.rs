//! The pager: the thread that writes and reads pages, which hold messages of long queues on disk.
//!
//! The pager does the tasks of each vhost in the order of [`PageJob`], one task per vhost in turn, without the vhost's
//! lock, and hands over the messages it read. A vhost whose lock is held for long gets them later. A page that cannot
//! be read ends the process, because its durable messages can be recovered from the log.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use broker::page::{PageLocation, PageRead, PageSelection, PageTask, PagedMessage, PagedMeta};
use broker::{Lsn, PageId};
use parking_lot::{Condvar, Mutex};
use replica::{JobProgress, PageJob, PagedVhost};

use crate::disk::pages::page_files::{PageError, PageFiles};
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
                    Some(job) => job.work.wake(),
                    None => jobs.push_back(Job::new(source)),
                }
            }
            let Some(mut job) = jobs.pop_front() else { continue };
            let _busy = self.busy.lock();
            match job.advance() {
                JobProgress::Done => {}
                JobProgress::Advanced => {
                    locked = 0;
                    jobs.push_back(job);
                }
                JobProgress::Locked => {
                    locked += 1;
                    jobs.push_back(job);
                }
            }
        }
    }
}

/// The work on one vhost.
struct Job {
    source: Arc<dyn PageSource>,
    work: PageJob,
}

impl Job {
    fn new(source: Arc<dyn PageSource>) -> Self {
        Self { source, work: PageJob::default() }
    }

    /// Reports the last result, or takes tasks and does one.
    fn advance(&mut self) -> JobProgress {
        if self.source.progress().is_retired() {
            return JobProgress::Done;
        }
        let progress = self.work.advance(&mut &*self.source);
        progress.unwrap_or_else(|error| exit(self.source.name(), &error))
    }
}

impl PagedVhost for &dyn PageSource {
    type Error = PageError;

    fn take_page_tasks(&mut self) -> Option<Vec<PageTask>> {
        PageSource::take_page_tasks(*self)
    }

    fn page_read(&mut self, at: PageLocation, read: PageRead) -> Result<(), PageRead> {
        PageSource::page_read(*self, at, read)
    }

    fn page_ended(&mut self, lsns: &[Lsn]) -> bool {
        PageSource::page_ended(*self, lsns)
    }

    fn write(&mut self, page: PageId, messages: Vec<PagedMessage>) {
        let bytes = messages.iter().map(|message| message.message.delivery_bytes()).sum();
        self.page_files().write(page, messages);
        self.progress().page_written(bytes);
    }

    fn read(&mut self, page: PageId, wanted: PageSelection) -> Result<PageRead, PageError> {
        self.page_files().read(page, wanted)
    }

    fn meta(&mut self, page: PageId) -> Result<Vec<PagedMeta>, PageError> {
        self.page_files().meta(page)
    }

    fn remove(&mut self, page: PageId) {
        self.page_files().remove(page);
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

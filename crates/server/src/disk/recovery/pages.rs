//! Pages of a vhost during recovery, written by a thread of their own, so that the log is read while messages
//! without room in memory are written.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use broker::PageId;
use broker::page::{PageRead, PageSelection, PagedMessage, PagedMeta, Pages};
use replica::ReplayPages;

use crate::disk::pages::page_files::{PageError, PageFiles};
use crate::limits::RESTORE_PAGES_MAX;

/// Replay of the log of a vhost of this node.
pub(crate) type LogReplay = replica::LogReplay<PageRecovery>;

/// A job for the thread.
enum Job {
    Write(PageId, Vec<PagedMessage>),
    /// Answer once every job before this one is done.
    Answer(SyncSender<()>),
}

/// Page files of a vhost that is being recovered, with the first error.
#[derive(Debug)]
pub(crate) struct PageRecovery {
    page_files: Arc<PageFiles>,
    jobs: SyncSender<Job>,
    thread: JoinHandle<()>,
    /// True if a page was written since the last answer.
    is_writing: bool,
    error: Option<PageError>,
}

impl PageRecovery {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn start(page_files: Arc<PageFiles>) -> io::Result<Self> {
        let (jobs, todo) = sync_channel(RESTORE_PAGES_MAX);
        let writes = Arc::clone(&page_files);
        let thread = std::thread::Builder::new()
            .name("restore-pages".to_owned())
            .spawn(move || run(&writes, &todo))?;
        Ok(Self { page_files, jobs, thread, is_writing: false, error: None })
    }

    fn send(&mut self, job: Job) {
        if self.jobs.send(job).is_err() {
            self.error.get_or_insert(PageError::WriterFailed);
        }
    }

    /// Waits until all pages are written.
    fn settle(&mut self) -> &PageFiles {
        if std::mem::take(&mut self.is_writing) {
            let (answer, answered) = sync_channel(1);
            self.send(Job::Answer(answer));
            // A failed thread sends no answer; the next job detects that.
            let _ = answered.recv();
        }
        &self.page_files
    }

    /// The value; or none, with the first error remembered for [`Self::finish`].
    fn remember_error<T>(&mut self, result: Result<T, PageError>) -> Option<T> {
        result.map_err(|error| self.error.get_or_insert(error)).ok()
    }
}

fn run(page_files: &PageFiles, todo: &Receiver<Job>) {
    for job in todo {
        match job {
            Job::Write(page, messages) => page_files.write(page, messages),
            // The receiver may be gone.
            Job::Answer(answer) => drop(answer.send(())),
        }
    }
}

impl ReplayPages for PageRecovery {
    type Error = PageError;

    fn finish(self) -> Result<(), PageError> {
        drop(self.jobs);
        let ended = self.thread.join().map_err(|_| PageError::WriterFailed);
        self.error.map_or(ended, Err)
    }
}

impl Pages for PageRecovery {
    fn write(&mut self, page: PageId, messages: Vec<PagedMessage>) {
        self.is_writing = true;
        self.send(Job::Write(page, messages));
    }

    fn meta(&mut self, page: PageId) -> Vec<PagedMeta> {
        let meta = self.settle().meta(page);
        self.remember_error(meta).unwrap_or_default()
    }

    fn read(&mut self, page: PageId, wanted: PageSelection) -> PageRead {
        let read = self.settle().read(page, wanted.clone());
        let nothing = PageRead { wanted, messages: Vec::new(), next_deadline: None };
        self.remember_error(read).unwrap_or(nothing)
    }

    fn remove(&mut self, page: PageId) {
        self.settle().remove(page);
    }
}

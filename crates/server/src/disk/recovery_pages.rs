//! The pages of a vhost while it comes back from its log: written by a thread of their own, so that
//! reading the log and writing what has no room in memory go side by side.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use broker::PageId;
use broker::page::{PageRead, PagedFacts, PagedMessage, Pages, Wanted};

use crate::disk::page_files::PageFiles;
use crate::limits::RESTORE_PAGES_MAX;

/// Something for the thread to do.
enum Job {
    Write(PageId, Vec<PagedMessage>),
    /// Say that everything before this is done.
    Answer(SyncSender<()>),
}

/// Page files while a vhost is recovered, with what went wrong first.
#[derive(Debug)]
pub(crate) struct PageRecovery {
    page_files: Arc<PageFiles>,
    jobs: SyncSender<Job>,
    thread: JoinHandle<()>,
    /// Something was written since the last answer.
    is_writing: bool,
    problem: Option<String>,
}

impl PageRecovery {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(page_files: Arc<PageFiles>) -> io::Result<Self> {
        let (jobs, todo) = sync_channel(RESTORE_PAGES_MAX);
        let writes = Arc::clone(&page_files);
        let thread = std::thread::Builder::new()
            .name("restore-pages".to_owned())
            .spawn(move || run(&writes, &todo))?;
        Ok(Self { page_files, jobs, thread, is_writing: false, problem: None })
    }

    /// Everything is written. What went wrong first, if anything did.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(crate) fn finish(self) -> Result<(), String> {
        drop(self.jobs);
        let ended = self.thread.join().map_err(|_| "their writer has failed".to_owned());
        self.problem.map_or(ended, Err)
    }

    fn order(&mut self, job: Job) {
        if self.jobs.send(job).is_err() {
            self.problem.get_or_insert_with(|| "their writer has failed".to_owned());
        }
    }

    /// Waits until everything is written.
    fn settle(&mut self) -> &PageFiles {
        if std::mem::take(&mut self.is_writing) {
            let (answer, answered) = sync_channel(1);
            self.order(Job::Answer(answer));
            // Without an answer there is a problem already.
            let _ = answered.recv();
        }
        &self.page_files
    }

    fn or_nothing<T>(&mut self, result: Result<T, String>) -> Option<T> {
        result.map_err(|problem| self.problem.get_or_insert(problem)).ok()
    }
}

fn run(page_files: &PageFiles, todo: &Receiver<Job>) {
    for job in todo {
        match job {
            Job::Write(page, messages) => page_files.write(page, messages),
            // Whoever asked may have given up.
            Job::Answer(answer) => drop(answer.send(())),
        }
    }
}

impl Pages for PageRecovery {
    fn write(&mut self, page: PageId, messages: Vec<PagedMessage>) {
        self.is_writing = true;
        self.order(Job::Write(page, messages));
    }

    fn facts(&mut self, page: PageId) -> Vec<PagedFacts> {
        let facts = self.settle().facts(page);
        self.or_nothing(facts).unwrap_or_default()
    }

    fn read(&mut self, page: PageId, wanted: Wanted) -> PageRead {
        let read = self.settle().read(page, wanted.clone());
        let nothing = PageRead { wanted, messages: Vec::new(), next_deadline: None };
        self.or_nothing(read).unwrap_or(nothing)
    }

    fn remove(&mut self, page: PageId) {
        self.settle().remove(page);
    }
}

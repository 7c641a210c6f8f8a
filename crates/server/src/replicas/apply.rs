//! The thread that applies committed entries to the replica of one vhost, so that a long application delays neither
//! the member of this group nor those of other groups.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use replication::QuarantineReason;
use storage::{Applier, LogEntry, RealDirectory, Term};

use super::report::Report;
use super::target::ReplicaTarget;

/// A job for the thread.
#[derive(Debug)]
enum Job {
    Apply(LogEntry),
    /// Promote the replica: all entries of earlier leaders are applied, and the node leads in `term`.
    Promote {
        term: Term,
        shift_us: i64,
    },
}

/// Hands jobs to the thread of one vhost. The thread ends after the jobs that it has when this is dropped.
#[derive(Debug)]
pub(super) struct ApplyQueue {
    jobs: Option<Sender<Job>>,
    /// Octets of entries that wait.
    waiting_bytes: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl ApplyQueue {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(super) fn start(
        target: Arc<dyn ReplicaTarget>,
        applier: Applier<RealDirectory>,
        report: Box<dyn Fn(Report) + Send>,
    ) -> io::Result<Self> {
        let (jobs, todo) = channel();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let thread = {
            let waiting_bytes = Arc::clone(&waiting_bytes);
            let run = move || run(&*target, &applier, &report, &todo, &waiting_bytes);
            std::thread::Builder::new().name("apply".to_owned()).spawn(run)?
        };
        Ok(Self { jobs: Some(jobs), waiting_bytes, thread: Some(thread) })
    }

    /// Applies an entry after those before.
    pub(super) fn apply(&self, entry: LogEntry) {
        self.waiting_bytes.fetch_add(entry.bytes(), Ordering::AcqRel);
        self.send(Job::Apply(entry));
    }

    /// Promotes the replica after the entries before.
    pub(super) fn promote(&self, term: Term, shift_us: i64) {
        self.send(Job::Promote { term, shift_us });
    }

    /// Octets of entries that wait.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Acquire)
    }

    /// Waits until the thread has ended. What it has not applied is in the log.
    pub(super) fn end(mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            thread
                .join()
                .expect("a thread that applies entries reports its failure instead of panicking");
        }
    }

    fn send(&self, job: Job) {
        // The thread ends early only after a failure, which it has reported.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }
}

fn run(
    target: &dyn ReplicaTarget,
    applier: &Applier<RealDirectory>,
    tell: &dyn Fn(Report),
    todo: &Receiver<Job>,
    waiting_bytes: &AtomicUsize,
) {
    for job in todo {
        let (done, report) = match job {
            Job::Apply(entry) => {
                let applied = target.apply(&entry, applier);
                // Not earlier: an entry takes its memory until it is applied.
                waiting_bytes.fetch_sub(entry.bytes(), Ordering::AcqRel);
                (applied, None)
            }
            Job::Promote { term, shift_us } => {
                let promoted = target.promote(shift_us, applier.applied_position());
                (promoted, Some(Report::Promoted(term)))
            }
        };
        match (done, report) {
            (Err(problem), _) => {
                tell(Report::Unusable(QuarantineReason::Diverged(problem)));
                return;
            }
            (Ok(()), Some(report)) => tell(report),
            (Ok(()), None) => {}
        }
    }
}

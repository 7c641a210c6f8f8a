//! Threads for password hashing: few and of low priority, so that a flood of logins only gets processor time
//! that nothing else needs.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::limits::{HASHING_MAX, HASHING_NICENESS};

type Job = Box<dyn FnOnce() + Send>;

/// The hashing threads; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Hashers {
    jobs: SyncSender<Job>,
}

impl Hashers {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (jobs, taken) = sync_channel(HASHING_MAX);
        let taken = Arc::new(Mutex::new(taken));
        for _ in 0..HASHING_MAX {
            let taken = Arc::clone(&taken);
            let builder = std::thread::Builder::new().name("hashing".to_owned());
            builder.spawn(move || work(&taken))?;
        }
        Ok(Self { jobs })
    }

    /// Runs `job` on one of the threads; none if it was not run. Callers must not have more than
    /// [`HASHING_MAX`] jobs at the same time.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (done, result) = oneshot::channel();
        let job = move || {
            // The caller may have given up.
            let _ = done.send(job());
        };
        self.jobs.try_send(Box::new(job)).ok()?;
        result.await.ok()
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    // On Linux this call applies to the calling thread.
    if let Err(error) = rustix::process::setpriority_process(None, HASHING_NICENESS) {
        tracing::debug!(%error, "passwords are hashed with normal priority");
    }
    loop {
        let job = jobs.lock().recv();
        match job {
            Ok(job) => job(),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hashers_run_jobs_on_low_priority_threads() {
        let hashers = Hashers::start().unwrap();
        let here = std::thread::current().id();
        let there = || {
            let priority = rustix::process::getpriority_process(None);
            (std::thread::current().id(), priority.unwrap())
        };
        for _ in 0..2 * HASHING_MAX {
            let (thread, priority) = hashers.run(there).await.unwrap();
            assert!(thread != here);
            assert!(priority >= HASHING_NICENESS, "{priority}");
        }
    }
}

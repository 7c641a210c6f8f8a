//! Work on the files of a log, on threads of their own.

use std::io;
use std::thread::JoinHandle;

use storage::{Prepared, RealDirectory};

use crate::replicas::member_log::MemberLog;

/// The threads that work on the files of a log.
#[derive(Default, Debug)]
pub(super) struct FileWork {
    /// The thread that creates the next file.
    preparation: Option<JoinHandle<io::Result<Prepared<RealDirectory>>>>,
    /// The thread that compacts the log.
    compaction: Option<JoinHandle<()>>,
}

impl FileWork {
    /// Waits for the threads.
    pub(super) fn end(self) {
        if let Some(thread) = self.preparation {
            // The file that it has created is not listed; the next opening removes it.
            let _ = thread.join();
        }
        if let Some(thread) = self.compaction {
            thread.join().expect("a compaction reports its failure instead of panicking");
        }
    }

    /// Creates the next file of a log, once one is needed, and passes it to the log when it is there. `wake` is called when
    /// it is.
    pub(super) fn prepare(
        &mut self,
        vhost: &str,
        log: &mut MemberLog,
        wake: impl FnOnce() + Send + 'static,
    ) {
        if let Some(thread) = self.preparation.take_if(|thread| thread.is_finished()) {
            let prepared = thread.join().expect("a file is created or not, without a panic");
            if let Err(error) = &prepared {
                tracing::warn!(vhost, %error, "cannot make the next log file yet");
            }
            log.install_next_segment(prepared.ok());
        }
        let Some(preparation) = log.prepare_next_segment() else { return };
        let run = move || {
            let prepared = preparation.run();
            wake();
            prepared
        };
        match std::thread::Builder::new().name("log-file".to_owned()).spawn(run) {
            Ok(thread) => self.preparation = Some(thread),
            // Without a thread, this file is created when it is needed; the next one is tried again.
            Err(_) => log.install_next_segment(None),
        }
    }

    /// Compacts a log, if that is worthwhile. `done` is called at the end. False if there is nothing to do; `done` is not
    /// called then.
    pub(super) fn compact(
        &mut self,
        vhost: &str,
        log: &MemberLog,
        done: impl FnOnce() + Send + 'static,
    ) -> bool {
        let Some(compaction) = log.compaction() else { return false };
        let vhost = vhost.to_owned();
        let run = move || {
            match compaction.run() {
                Ok(done) => tracing::debug!(
                    vhost,
                    files = done.files,
                    bytes_before = done.bytes_before,
                    bytes_after = done.bytes_after,
                    "log compacted"
                ),
                Err(error) => tracing::warn!(vhost, %error, "log not compacted"),
            }
            done();
        };
        self.compaction = std::thread::Builder::new().name("compaction".to_owned()).spawn(run).ok();
        self.compaction.is_some()
    }
}

//! State of the checks of files: what is known, and when the next one begins.

use std::io;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::config::FileCheckOptions;
use crate::limits::FILE_CHECK_PAUSE_MAX;
use crate::requests::{FileCheck, FileRepair};

/// The checks of a node.
#[derive(Debug)]
pub(crate) struct FileChecks {
    options: FileCheckOptions,
    pub(super) known: Mutex<FileCheck>,
    /// Notified when a check is wanted now.
    wanted: Notify,
}

impl FileChecks {
    pub(crate) fn new(options: FileCheckOptions) -> Self {
        Self { options, known: Mutex::default(), wanted: Notify::new() }
    }

    /// The check that runs, or the last one.
    pub(crate) fn known(&self) -> FileCheck {
        self.known.lock().clone()
    }

    /// Begins a check, unless one runs. Returns the check.
    pub(crate) fn begin(&self, now_ms: u64) -> FileCheck {
        let mut known = self.known.lock();
        if !known.is_running {
            let FileCheck { ended, bytes_ever, mut damaged, .. } = std::mem::take(&mut *known);
            damaged.retain(|one| one.repair == FileRepair::Rebuilt);
            let started_ms = Some(now_ms);
            *known = FileCheck {
                is_running: true,
                started_ms,
                ended,
                bytes_ever,
                damaged,
                ..FileCheck::default()
            };
            self.wanted.notify_one();
        }
        known.clone()
    }

    /// Counts bytes that were read, and waits for as long as they may take.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] if the broker stops.
    pub(super) fn pace(&self, bytes: u64, stopping: &watch::Sender<bool>) -> io::Result<()> {
        let mut known = self.known.lock();
        known.bytes += bytes;
        known.bytes_ever += bytes;
        drop(known);
        let mut left = Duration::from_micros(bytes * 1_000_000 / self.options.bytes_per_second);
        loop {
            if *stopping.borrow() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if left.is_zero() {
                return Ok(());
            }
            let pause = left.min(FILE_CHECK_PAUSE_MAX);
            std::thread::sleep(pause);
            left -= pause;
        }
    }

    /// Waits until a check is wanted, or its time has come.
    pub(super) async fn wait(&self, now_ms: impl Fn() -> u64) {
        let Some(interval) = self.options.interval else { return self.wanted.notified().await };
        if tokio::time::timeout(interval, self.wanted.notified()).await.is_err() {
            self.begin(now_ms());
            // The notice of this begin.
            self.wanted.notified().await;
        }
    }
}

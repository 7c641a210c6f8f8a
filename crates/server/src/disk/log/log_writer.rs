//! The log of one vhost, owned by the persister, with its stage between two batches.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use storage::{LogError, Prepared, RealDirectory, WriteBatch};

use crate::clock::own_time;
use crate::disk::progress::DiskProgress;
use crate::disk::recovery::VhostLog;
use crate::disk::vhost_files::VhostId;
use crate::limits::{EXIT_DISK, LARGE_BATCH_BYTES};

/// A vhost whose log the persister writes. No call waits for the vhost's lock if it is held for long, because
/// the persister serves other vhosts, too.
pub(crate) trait LogSource: fmt::Debug + Send + Sync {
    fn id(&self) -> VhostId;

    fn name(&self) -> &str;

    fn progress(&self) -> &DiskProgress;

    /// Takes the first batch that waits for the disk into `batch`, which must be empty. True if more wait;
    /// the persister is not notified of these again. None, with nothing taken, if the lock is held for long.
    fn take_batch(&self, batch: &mut WriteBatch) -> Option<bool>;

    /// Reports that the last batch taken is durable. False, with nothing done, if the lock is held for
    /// long.
    fn batch_durable(&self, written: storage::Written) -> bool;
}

/// A vhost with its log.
#[derive(Debug)]
pub(super) struct LogWriter {
    pub(super) source: Arc<dyn LogSource>,
    /// None while another thread writes a large batch.
    pub(super) log: Option<VhostLog>,
    /// Batches written since the last compaction check.
    pub(super) batches: u32,
    pub(super) stage: Stage,
    /// True if the vhost has reported work since a batch was last taken.
    pub(super) is_dirty: bool,
    next_file: NextFile,
}

/// The next file of a log, prepared by another thread, until the log takes it.
#[derive(Debug)]
enum NextFile {
    /// The log has taken it, or there is none.
    Taken,
    /// The file could not be created.
    Failed,
    Ready(Prepared<RealDirectory>),
}

/// The next step for a log.
#[derive(Debug)]
pub(super) enum Stage {
    /// Idle until the vhost reports work.
    Idle,
    /// Take a batch and write it.
    Take,
    /// Wait for the thread that writes a large batch.
    InBackground,
    /// Write this batch again later: the disk had no room for it.
    WaitForRoom { batch: WriteBatch, has_more: bool, since: Instant },
    /// Report that a batch is durable; `has_more` if others wait.
    Report { written: storage::Written, has_more: bool },
}

impl LogWriter {
    pub(super) fn new(source: Arc<dyn LogSource>, log: VhostLog) -> Self {
        Self {
            source,
            log: Some(log),
            batches: 0,
            stage: Stage::Idle,
            is_dirty: false,
            next_file: NextFile::Taken,
        }
    }

    /// Passes the next file to the log; none if the file could not be created. If another thread has the log,
    /// the log gets the file when it is back.
    pub(super) fn set_next_file(&mut self, prepared: Option<Prepared<RealDirectory>>) {
        match &mut self.log {
            Some(log) => log.install_next_segment(prepared),
            None => self.next_file = prepared.map_or(NextFile::Failed, NextFile::Ready),
        }
    }

    /// Passes the log to a thread that writes the batch just taken.
    pub(super) fn begin(&mut self, batch: WriteBatch, has_more: bool) -> WriteJob {
        let log = self.log.take().expect("a batch is taken only while the log is here");
        let source = Arc::clone(&self.source);
        let took = Duration::ZERO;
        WriteJob { source, log, batch, has_more, took, result: Err(LogError::Failed) }
    }

    /// Takes the log back. Next, the vhost gets a report, or the batch waits for room on the disk. Any other error
    /// ends the process.
    pub(super) fn finish(&mut self, job: WriteJob) {
        let WriteJob { mut log, batch, has_more, result, .. } = job;
        match std::mem::replace(&mut self.next_file, NextFile::Taken) {
            NextFile::Taken => {}
            NextFile::Failed => log.install_next_segment(None),
            NextFile::Ready(prepared) => log.install_next_segment(Some(prepared)),
        }
        assert!(self.log.replace(log).is_none(), "one batch of a log is written at a time");
        let vhost = self.source.name();
        match result {
            Ok(written) => {
                if self.source.progress().set_out_of_room(false) {
                    tracing::info!(vhost, "the disk has room again");
                }
                self.stage = Stage::Report { written, has_more };
            }
            Err(error) if error.is_full() => {
                if !self.source.progress().set_out_of_room(true) {
                    tracing::error!(
                        vhost,
                        "the disk is full, and so is the reserve: {error}; nothing more is confirmed \
                         in this vhost until there is room"
                    );
                }
                self.stage = Stage::WaitForRoom { batch, has_more, since: Instant::now() };
            }
            Err(error) => exit(vhost, &error),
        }
    }

    /// Closes a log after its last write.
    pub(super) fn close(self) {
        let log = self.log.expect("a log is closed only while it is here");
        if let Err(error) = log.close() {
            tracing::error!(vhost = self.source.name(), "log was not closed cleanly: {error}");
        }
    }
}

/// A batch to be written, with its log, and later the result.
#[derive(Debug)]
pub(super) struct WriteJob {
    pub(super) source: Arc<dyn LogSource>,
    log: VhostLog,
    pub(super) batch: WriteBatch,
    has_more: bool,
    /// Duration of the write.
    pub(super) took: Duration,
    pub(super) result: Result<storage::Written, LogError>,
}

impl WriteJob {
    pub(super) fn run(mut self) -> Self {
        let began = own_time::now();
        self.result = self.log.write_batch(&mut self.batch);
        self.took = own_time::now().since(began);
        self
    }

    /// True if the write may take so long that other vhosts must not wait for it.
    pub(super) fn is_large(&self) -> bool {
        self.batch.bytes() > LARGE_BATCH_BYTES || self.log.needs_new_manifest(&self.batch)
    }
}

fn exit(vhost: &str, error: &LogError) -> ! {
    tracing::error!(
        vhost,
        "the log cannot be written, so that nothing more can be confirmed: {error}; the broker ends"
    );
    std::process::exit(EXIT_DISK);
}

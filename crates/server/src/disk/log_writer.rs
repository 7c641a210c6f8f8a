//! The log of one vhost in the hands of the persister: its stage between two batches.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use storage::{LogError, Prepared, RealDirectory, WriteBatch};

use crate::disk::progress::DiskProgress;
use crate::disk::recovery::VhostLog;
use crate::disk::vhost_files::VhostId;
use crate::limits::{EXIT_DISK, LARGE_BATCH_BYTES};

/// A vhost whose log the persister writes. Its lock may be held for long: the persister has other vhosts
/// to serve, so no call waits for it.
pub(crate) trait LogSource: fmt::Debug + Send + Sync {
    fn id(&self) -> VhostId;

    fn name(&self) -> &str;

    fn progress(&self) -> &DiskProgress;

    /// Takes the first batch that waits for the disk into `batch`, which is empty. True if more wait; the
    /// persister is not told of these again. None, with nothing taken, if the lock is held for long.
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
    /// Batches written since space to get back was last looked for.
    pub(super) batches: u32,
    pub(super) stage: Stage,
    /// The vhost has reported something to write since a batch was last taken.
    pub(super) is_dirty: bool,
    /// The last batch found no room on the disk.
    pub(super) is_out_of_room: bool,
    next_file: NextFile,
}

/// The next file of a log, prepared by another thread, until the log takes it.
#[derive(Debug)]
enum NextFile {
    /// The log knows all there is to know.
    Taken,
    /// It could not be made.
    Failed,
    Ready(Prepared<RealDirectory>),
}

/// The next step for a log.
#[derive(Debug)]
pub(super) enum Stage {
    /// None, until the vhost reports that it has something to write.
    Idle,
    /// Take a batch and write it.
    Take,
    /// Wait for the thread that writes a large batch.
    InBackground,
    /// Write this batch again after a while: at that time the disk had no room for it.
    WaitForRoom { batch: WriteBatch, has_more: bool, since: Instant },
    /// Report that a batch is durable; `has_more` if others wait behind it.
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
            is_out_of_room: false,
            next_file: NextFile::Taken,
        }
    }

    /// Hands the next file to the log: none if it could not be made. A log that another thread has gets it
    /// when it is back.
    pub(super) fn set_next_file(&mut self, prepared: Option<Prepared<RealDirectory>>) {
        match &mut self.log {
            Some(log) => log.install_next_segment(prepared),
            None => self.next_file = prepared.map_or(NextFile::Failed, NextFile::Ready),
        }
    }

    /// Takes the log out, for a thread to write the batch that was just taken.
    pub(super) fn begin(&mut self, batch: WriteBatch, has_more: bool) -> WriteJob {
        let log = self.log.take().expect("a batch is taken only while the log is here");
        let source = Arc::clone(&self.source);
        WriteJob { source, log, batch, has_more, result: Err(LogError::Failed) }
    }

    /// Takes the log back. The vhost has to be told next, or the batch waits for room on the disk. Any other
    /// error ends the process.
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
                if std::mem::take(&mut self.is_out_of_room) {
                    tracing::info!(vhost, "the disk has room again");
                }
                self.stage = Stage::Report { written, has_more };
            }
            Err(error) if error.is_full() => {
                if !std::mem::replace(&mut self.is_out_of_room, true) {
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

    /// Closes a log that nothing more is written to.
    pub(super) fn close(self) {
        let log = self.log.expect("a log is closed only while it is here");
        if let Err(error) = log.close() {
            tracing::error!(vhost = self.source.name(), "log was not closed cleanly: {error}");
        }
    }
}

/// A batch to be written, with its log, and then the result.
#[derive(Debug)]
pub(super) struct WriteJob {
    pub(super) source: Arc<dyn LogSource>,
    log: VhostLog,
    pub(super) batch: WriteBatch,
    has_more: bool,
    pub(super) result: Result<storage::Written, LogError>,
}

impl WriteJob {
    pub(super) fn run(mut self) -> Self {
        self.result = self.log.write_batch(&mut self.batch);
        self
    }

    /// True if it may take so long that other vhosts must not wait for it.
    pub(super) fn is_large(&self) -> bool {
        self.batch.bytes() > LARGE_BATCH_BYTES || self.log.needs_new_segment(&self.batch)
    }
}

fn exit(vhost: &str, error: &LogError) -> ! {
    tracing::error!(
        vhost,
        "the log cannot be written, so that nothing more can be confirmed: {error}; the broker ends"
    );
    std::process::exit(EXIT_DISK);
}

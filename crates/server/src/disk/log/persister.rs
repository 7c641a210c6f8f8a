//! The persister: the thread that writes the logs of all vhosts, batch by batch, and reports to each how much
//! is durable.
//!
//! While one batch is written and synced, the next one accumulates, so that batches grow with the load and an
//! idle broker syncs at once. A write that fails ends the process: nothing more may be confirmed, and the
//! state of the disk is unknown. A vhost whose lock is held for long, or whose batch finds no room on the
//! disk, is served later, and a large batch is written by a thread of its own: the confirms of other vhosts
//! wait for none of these.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use storage::{LogSnapshot, Preparation, Prepared, RealDirectory, WriteBatch};

use crate::clock::own_time;
use crate::disk::log::log_writer::{LogSource, LogWriter, Stage, WriteJob};
use crate::disk::log::write_times::WriteTimes;
use crate::disk::recovery::VhostLog;
use crate::disk::vhost_files::VhostId;
use crate::limits::{COMPACTION_CHECK_BATCHES, EXIT_DISK, FULL_DISK_RETRY_INTERVAL, LOCK_RETRY_MS};

/// A vhost, and the receiver of the snapshot of its log.
type SnapshotRequest = (VhostId, Sender<LogSnapshot<RealDirectory>>);

/// Work from other threads for the persister.
#[derive(Default, Debug)]
struct Work {
    /// Vhosts whose log the persister takes over.
    new: Vec<LogWriter>,
    /// Vhosts with something to write.
    dirty: Vec<VhostId>,
    /// Large batches, written by threads of their own.
    written: Vec<WriteJob>,
    /// Next files of logs; none if the file could not be created.
    prepared: Vec<(VhostId, Option<Prepared<RealDirectory>>)>,
    /// Deleted vhosts. The sender is dropped once the log is closed.
    retired: Vec<(VhostId, Sender<()>)>,
    /// Vhosts whose files a backup needs. The sender is dropped if there is no such vhost.
    snapshots: Vec<SnapshotRequest>,
    /// True if the disk is nearly full: compact every log that can be.
    looks_for_space: bool,
    stopping: bool,
}

impl Work {
    fn is_empty(&self) -> bool {
        self.new.is_empty()
            && self.dirty.is_empty()
            && self.written.is_empty()
            && self.prepared.is_empty()
            && self.retired.is_empty()
            && self.snapshots.is_empty()
            && !self.looks_for_space
    }
}

/// Hands work to the persister's thread.
#[derive(Default, Debug)]
pub(crate) struct Persister {
    work: Mutex<Work>,
    changed: Condvar,
    /// True while a compaction is running.
    compacting: AtomicBool,
    write_times: WriteTimes,
}

impl Persister {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn start() -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let persister = Arc::new(Self::default());
        let runs = Arc::clone(&persister);
        let thread =
            std::thread::Builder::new().name("persister".to_owned()).spawn(move || runs.run())?;
        Ok((persister, thread))
    }

    /// Takes over the log of a vhost.
    pub(crate) fn add(&self, source: Arc<dyn LogSource>, log: VhostLog) {
        self.work.lock().new.push(LogWriter::new(source, log));
        self.changed.notify_one();
    }

    /// Reports that a vhost has records to write; called once until the persister has taken them.
    pub(crate) fn wake(&self, vhost: VhostId) {
        self.work.lock().dirty.push(vhost);
        self.changed.notify_one();
    }

    /// Closes the log of a deleted vhost; returns when it is closed.
    pub(crate) fn retire(&self, vhost: VhostId) {
        let (closing, closed) = channel();
        {
            let mut work = self.work.lock();
            if work.stopping {
                return;
            }
            work.retired.push((vhost, closing));
        }
        // With the lock released, which the woken thread takes first.
        self.changed.notify_one();
        // Nothing is ever sent: the sender is dropped when the log is closed.
        let _ = closed.recv();
    }

    /// The files of a vhost's log between two batches; waits for the batch that is being written. None if the vhost
    /// is deleted or the broker stops.
    pub(crate) fn snapshot(&self, vhost: VhostId) -> Option<LogSnapshot<RealDirectory>> {
        let (taken, snapshot) = channel();
        {
            let mut work = self.work.lock();
            if work.stopping {
                return None;
            }
            work.snapshots.push((vhost, taken));
        }
        self.changed.notify_one();
        snapshot.recv().ok()
    }

    /// Durations of writes to the logs.
    pub(crate) fn write_times(&self) -> &WriteTimes {
        &self.write_times
    }

    /// Compacts every log that can be, because the disk is nearly full.
    pub(crate) fn look_for_space(&self) {
        self.work.lock().looks_for_space = true;
        self.changed.notify_one();
    }

    /// Makes the thread write all remaining records and end.
    pub(crate) fn stop(&self) {
        self.work.lock().stopping = true;
        self.changed.notify_one();
    }

    fn run(self: Arc<Self>) {
        let mut writers: Vec<LogWriter> = Vec::new();
        // Deleted vhosts whose logs other threads still have.
        let mut leaving: Vec<(VhostId, Sender<()>)> = Vec::new();
        // Backups that wait for logs that other threads have.
        let mut snapshots: Vec<SnapshotRequest> = Vec::new();
        let mut spare = WriteBatch::default();
        let mut wait = None;
        loop {
            let work = self.next_work(wait);
            // New vhosts first, because the rest of the work may belong to them.
            writers.extend(work.new);
            leaving.extend(work.retired);
            snapshots.extend(work.snapshots);
            for job in work.written {
                self.write_times.end(Instant::now(), job.took);
                find(&mut writers, job.source.id())
                    .expect("a vhost stays until the thread that has its log is done")
                    .finish(job);
            }
            // The vhost of a prepared file may have been deleted meanwhile.
            for (vhost, prepared) in work.prepared {
                if let Some(writer) = find(&mut writers, vhost) {
                    writer.set_next_file(prepared);
                }
            }
            for vhost in work.dirty {
                if let Some(writer) = find(&mut writers, vhost) {
                    writer.is_dirty = true;
                }
            }
            // One batch of each vhost per round.
            wait = writers.iter_mut().filter_map(|writer| self.advance(writer, &mut spare)).min();
            leaving.retain(|(vhost, _closing)| {
                let at = writers.iter().position(|writer| writer.source.id() == *vhost);
                let Some(at) = at else { return false };
                let is_here = writers.get(at).is_some_and(|writer| writer.log.is_some());
                if is_here {
                    writers.swap_remove(at).close();
                }
                !is_here
            });
            snapshots.retain(|(vhost, taken)| {
                // A vhost that is not here is deleted.
                let Some(writer) = find(&mut writers, *vhost) else { return false };
                let Some(log) = &writer.log else { return true };
                // The backup may have ended.
                let _ = taken.send(log.snapshot());
                false
            });
            if work.looks_for_space {
                writers.iter().for_each(|writer| self.compact(writer));
            }
            if work.stopping && self.work.lock().dirty.is_empty() {
                if writers.iter().all(|writer| matches!(writer.stage, Stage::Idle)) {
                    writers.into_iter().for_each(LogWriter::close);
                    return;
                }
                if writers.iter().any(|writer| writer.source.progress().is_out_of_room()) {
                    tracing::error!("the disk is full, so that not everything could be written");
                    std::process::exit(EXIT_DISK);
                }
            }
        }
    }

    /// Waits for work, but no longer than `wait`.
    fn next_work(&self, wait: Option<Duration>) -> Work {
        let mut work = self.work.lock();
        match wait {
            Some(wait) if work.is_empty() && !wait.is_zero() => {
                self.changed.wait_for(&mut work, wait);
            }
            Some(_) => {}
            None => {
                while work.is_empty() && !work.stopping {
                    self.changed.wait(&mut work);
                }
            }
        }
        let stopping = work.stopping;
        let taken = std::mem::take(&mut *work);
        work.stopping = stopping;
        taken
    }

    /// Writes up to one batch of a vhost and reports it. Returns the time after which to call this again;
    /// none if no work is left.
    fn advance(
        self: &Arc<Self>,
        writer: &mut LogWriter,
        spare: &mut WriteBatch,
    ) -> Option<Duration> {
        const SOON: Duration = Duration::from_millis(LOCK_RETRY_MS);
        if matches!(writer.stage, Stage::Idle) && writer.is_dirty {
            writer.stage = Stage::Take;
        }
        match std::mem::replace(&mut writer.stage, Stage::Idle) {
            Stage::Idle => return None,
            Stage::InBackground => {
                assert!(writer.log.is_none(), "another thread writes, so it has the log");
                writer.stage = Stage::InBackground;
                return Some(FULL_DISK_RETRY_INTERVAL);
            }
            Stage::Take => {
                let Some(has_more) = writer.source.take_batch(spare) else {
                    writer.stage = Stage::Take;
                    return Some(SOON);
                };
                writer.is_dirty = false;
                if spare.is_empty() {
                    assert!(!has_more, "a batch is empty only if no record waits");
                    return None;
                }
                self.write(writer, std::mem::take(spare), has_more, spare);
            }
            Stage::WaitForRoom { batch, has_more, since } => {
                let wait = FULL_DISK_RETRY_INTERVAL.saturating_sub(since.elapsed());
                if !wait.is_zero() {
                    writer.stage = Stage::WaitForRoom { batch, has_more, since };
                    return Some(wait);
                }
                self.write(writer, batch, has_more, spare);
            }
            Stage::Report { written, has_more } => {
                writer.stage = Stage::Report { written, has_more };
            }
        }
        let Stage::Report { written, has_more } = writer.stage else {
            // The thread that has the batch wakes this one; a full disk wakes no thread.
            return Some(FULL_DISK_RETRY_INTERVAL);
        };
        if !writer.source.batch_durable(written) {
            return Some(SOON);
        }
        writer.stage = if has_more { Stage::Take } else { Stage::Idle };
        writer.batches += 1;
        if let Some(preparation) = writer.log.as_mut().and_then(VhostLog::prepare_next_segment) {
            self.prepare(writer, preparation);
        }
        if writer.batches >= COMPACTION_CHECK_BATCHES {
            writer.batches = 0;
            self.compact(writer);
        }
        (has_more || writer.is_dirty).then_some(Duration::ZERO)
    }

    /// Writes a batch, here or, if it is large, on a thread of its own. `spare` receives its buffers.
    fn write(
        self: &Arc<Self>,
        writer: &mut LogWriter,
        batch: WriteBatch,
        has_more: bool,
        spare: &mut WriteBatch,
    ) {
        let job = writer.begin(batch, has_more);
        if job.is_large() {
            self.write_in_background(writer, job);
            return;
        }
        self.write_times.begin(own_time::now());
        let mut job = job.run();
        self.write_times.end(Instant::now(), job.took);
        if job.result.is_ok() {
            std::mem::swap(spare, &mut job.batch);
            spare.clear();
        }
        writer.finish(job);
    }

    fn write_in_background(self: &Arc<Self>, writer: &mut LogWriter, job: WriteJob) {
        writer.stage = Stage::InBackground;
        // Shared, because a thread that cannot be started drops everything moved into it.
        let job = Arc::new(Mutex::new(Some(job)));
        let run = {
            let (this, job) = (Arc::clone(self), Arc::clone(&job));
            move || {
                if let Some(job) = job.lock().take() {
                    let job = job.run();
                    this.work.lock().written.push(job);
                    this.changed.notify_one();
                }
            }
        };
        if std::thread::Builder::new().name("log-batch".to_owned()).spawn(run).is_err()
            && let Some(job) = job.lock().take()
        {
            writer.finish(job.run());
        }
    }

    /// Creates the next file of a log on a thread of its own.
    fn prepare(self: &Arc<Self>, writer: &mut LogWriter, preparation: Preparation<RealDirectory>) {
        let (this, source) = (Arc::clone(self), Arc::clone(&writer.source));
        let run = move || {
            let prepared = preparation.run();
            if let Err(error) = &prepared {
                tracing::warn!(vhost = source.name(), %error, "cannot make the next log file yet");
            }
            this.work.lock().prepared.push((source.id(), prepared.ok()));
            this.changed.notify_one();
        };
        if std::thread::Builder::new().name("log-file".to_owned()).spawn(run).is_err() {
            // Without a thread, this file is created when it is needed; the next one is tried again.
            writer.set_next_file(None);
        }
    }

    /// Compacts a log on a thread of its own, one file at a time.
    fn compact(self: &Arc<Self>, writer: &LogWriter) {
        // While records still end with the pages of a purged or deleted queue, the record of the purge must
        // be kept: the log does not know yet that they have ended.
        if writer.source.progress().pages().is_ending() {
            return;
        }
        if self.compacting.swap(true, Ordering::AcqRel) {
            return;
        }
        let Some(compaction) = writer.log.as_ref().and_then(VhostLog::compaction) else {
            self.compacting.store(false, Ordering::Release);
            return;
        };
        let this = Arc::clone(self);
        let name = writer.source.name().to_owned();
        let run = move || {
            match compaction.run() {
                Ok(done) => tracing::debug!(
                    vhost = &*name,
                    files = done.files,
                    bytes_before = done.bytes_before,
                    bytes_after = done.bytes_after,
                    "log compacted"
                ),
                Err(error) => tracing::warn!(vhost = &*name, %error, "log not compacted"),
            }
            this.compacting.store(false, Ordering::Release);
        };
        let thread = std::thread::Builder::new().name("compaction".to_owned()).spawn(run);
        if thread.is_err() {
            self.compacting.store(false, Ordering::Release);
        }
    }
}

fn find(writers: &mut [LogWriter], vhost: VhostId) -> Option<&mut LogWriter> {
    writers.iter_mut().find(|writer| writer.source.id() == vhost)
}

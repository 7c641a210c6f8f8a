//! The one writer of the disk: a thread that writes what the vhosts have gathered, one batch after
//! another, and tells them how far they are durable.
//!
//! While one batch is written and synced the next one gathers, so that batches are as large as the
//! load makes them and an idle broker syncs at once. A write that fails ends the process: nothing more
//! may be confirmed, and nobody knows what is on the disk. A vhost whose lock is held for long, or whose
//! batch finds no room on the disk, is left for a later turn, and a large batch is written by a thread of
//! its own: the confirms of the others wait for none of these.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use storage::{LogError, Preparation, Prepared, RealDirectory, WriteBatch};

use crate::disk::recovery::VhostLog;
use crate::limits::{
    COMPACTION_CHECK_BATCHES, EXIT_DISK, FULL_DISK_RETRY_INTERVAL, LARGE_BATCH_BYTES, LOCK_RETRY_MS,
};
use crate::vhost::VhostHandle;

/// A vhost with its log.
#[derive(Debug)]
struct Written {
    handle: Arc<VhostHandle>,
    /// The log, unless another thread has it to write a large batch.
    log: Option<VhostLog>,
    batches: u32,
    stage: Stage,
    /// The vhost has said that it has something to write since a batch was last taken.
    is_dirty: bool,
    /// The last batch found no room on the disk.
    is_out_of_room: bool,
    /// The next file of the log, made or not, which came while another thread had the log.
    prepared: Option<Option<Prepared<RealDirectory>>>,
}

impl Written {
    fn new(handle: Arc<VhostHandle>, log: VhostLog) -> Self {
        Self {
            handle,
            log: Some(log),
            batches: 0,
            stage: Stage::Idle,
            is_dirty: false,
            is_out_of_room: false,
            prepared: None,
        }
    }

    /// The next file is made, or could not be.
    fn take(&mut self, prepared: Option<Prepared<RealDirectory>>) {
        match &mut self.log {
            Some(log) => log.install_next_segment(prepared),
            None => self.prepared = Some(prepared),
        }
    }

    /// A batch was written, or was not: then the vhost is to be told, or the batch waits for room on the
    /// disk. Any other error ends the process.
    fn finish(&mut self, done: WriteJob) {
        let WriteJob { mut log, batch, has_more, result, .. } = done;
        if let Some(prepared) = self.prepared.take() {
            log.install_next_segment(prepared);
        }
        self.log = Some(log);
        match result {
            Ok(result) => {
                if std::mem::take(&mut self.is_out_of_room) {
                    tracing::info!(vhost = self.handle.name(), "there is room on the disk again");
                }
                self.stage = Stage::Report(result, has_more);
            }
            Err(error) if error.is_full() => {
                if !std::mem::replace(&mut self.is_out_of_room, true) {
                    tracing::error!(
                        vhost = self.handle.name(),
                        "the disk is full, and so is the reserve: {error}; nothing more is confirmed \
                         in this vhost until there is room"
                    );
                }
                self.stage = Stage::WaitForRoom(batch, has_more, Instant::now());
            }
            Err(error) => end(&self.handle, &error),
        }
    }
}

/// A batch to be written, and what came of it.
#[derive(Debug)]
struct WriteJob {
    handle: Arc<VhostHandle>,
    log: VhostLog,
    batch: WriteBatch,
    has_more: bool,
    result: Result<storage::Written, LogError>,
}

impl WriteJob {
    fn run(mut self) -> Self {
        self.result = self.log.write_batch(&mut self.batch);
        self
    }

    /// Whether it may take so long that other vhosts must not wait for it.
    fn is_large(&self) -> bool {
        self.batch.bytes() > LARGE_BATCH_BYTES || self.log.needs_new_segment(&self.batch)
    }
}

/// What comes next for a log.
#[derive(Debug)]
enum Stage {
    /// Nothing, before the vhost says that it has something to write.
    Idle,
    /// A batch is taken and written.
    Take,
    /// Another thread writes a batch.
    Away,
    /// This batch is written after a while, because it found no room on the disk at this time; whether
    /// others wait behind it.
    WaitForRoom(WriteBatch, bool, Instant),
    /// The vhost is told that a batch is durable; whether others wait behind it.
    Report(storage::Written, bool),
}

#[derive(Default, Debug)]
struct Work {
    /// Vhosts whose log the writer is to take over.
    new: Vec<Written>,
    /// Vhosts with something to write.
    dirty: Vec<Arc<VhostHandle>>,
    /// Large batches that were written by threads of their own.
    written: Vec<WriteJob>,
    /// Next files of logs, made or not.
    prepared: Vec<(Arc<VhostHandle>, Option<Prepared<RealDirectory>>)>,
    /// Vhosts that are deleted; whoever waits for the end of their logs hears when the other end of
    /// his channel is dropped.
    retired: Vec<(Arc<VhostHandle>, Sender<()>)>,
    /// The disk is nearly full: all logs are to be looked at for space to get back.
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
            && !self.looks_for_space
    }
}

/// Wakes the writer.
#[derive(Default, Debug)]
pub(crate) struct Persister {
    work: Mutex<Work>,
    changed: Condvar,
    /// A compaction is running.
    compacting: AtomicBool,
}

impl Persister {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start() -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let persister = Arc::new(Self::default());
        let runs = Arc::clone(&persister);
        let thread =
            std::thread::Builder::new().name("persister".to_owned()).spawn(move || runs.run())?;
        Ok((persister, thread))
    }

    /// Takes over the log of a vhost.
    pub(crate) fn add(&self, handle: Arc<VhostHandle>, log: VhostLog) {
        self.work.lock().new.push(Written::new(handle, log));
        self.changed.notify_one();
    }

    /// There is something to write for a vhost; told once until the writer has taken it.
    pub(crate) fn wake(&self, handle: Arc<VhostHandle>) {
        self.work.lock().dirty.push(handle);
        self.changed.notify_one();
    }

    /// Ends the log of a vhost that is deleted; it is closed when this returns.
    pub(crate) fn retire(&self, handle: &Arc<VhostHandle>) {
        let (done, closed) = channel();
        {
            let mut work = self.work.lock();
            if work.stopping {
                return;
            }
            work.retired.push((Arc::clone(handle), done));
        }
        self.changed.notify_one();
        // Nothing is sent: the end of the channel is the news.
        let _ = closed.recv();
    }

    /// The disk is nearly full: gets space back wherever there is some.
    pub(crate) fn look_for_space(&self) {
        self.work.lock().looks_for_space = true;
        self.changed.notify_one();
    }

    /// Writes what is left and ends the thread.
    pub(crate) fn stop(&self) {
        self.work.lock().stopping = true;
        self.changed.notify_one();
    }

    fn run(self: Arc<Self>) {
        let mut written: Vec<Written> = Vec::new();
        // Vhosts that are deleted, until no other thread has their logs.
        let mut leaving: Vec<(Arc<VhostHandle>, Sender<()>)> = Vec::new();
        let mut spare = WriteBatch::default();
        let mut wait = None;
        loop {
            let Work { new, dirty, written: done, prepared, retired, looks_for_space, stopping } =
                self.next_work(wait);
            written.extend(new);
            leaving.extend(retired);
            for job in done {
                if let Some(one) = of(&mut written, &job.handle) {
                    one.finish(job);
                }
            }
            for (handle, prepared) in prepared {
                if let Some(one) = of(&mut written, &handle) {
                    one.take(prepared);
                }
            }
            for handle in dirty {
                if let Some(one) = of(&mut written, &handle) {
                    one.is_dirty = true;
                }
            }
            // One batch of each vhost, then the next.
            wait = written.iter_mut().filter_map(|one| self.advance(one, &mut spare)).min();
            leaving.retain(|(handle, _done)| {
                let at = written.iter().position(|one| Arc::ptr_eq(&one.handle, handle));
                let is_away =
                    at.and_then(|at| written.get(at)).is_some_and(|one| one.log.is_none());
                if let (false, Some(at)) = (is_away, at) {
                    close(written.swap_remove(at));
                }
                is_away
            });
            if looks_for_space {
                written.iter().for_each(|one| self.compact(one));
            }
            if stopping && self.work.lock().dirty.is_empty() {
                if written.iter().all(|one| matches!(one.stage, Stage::Idle)) {
                    written.into_iter().for_each(close);
                    return;
                }
                if written.iter().any(|one| one.is_out_of_room) {
                    tracing::error!("the disk is full, so that not everything could be written");
                    std::process::exit(EXIT_DISK);
                }
            }
        }
    }

    /// Waits for something to do, but no longer than `wait`.
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

    /// Writes up to one batch of a vhost and tells the vhost. The time after which this is to be called
    /// again; none if nothing is left to do.
    fn advance(self: &Arc<Self>, one: &mut Written, spare: &mut WriteBatch) -> Option<Duration> {
        const SOON: Duration = Duration::from_millis(LOCK_RETRY_MS);
        if matches!(one.stage, Stage::Idle) && one.is_dirty {
            one.stage = Stage::Take;
        }
        match std::mem::replace(&mut one.stage, Stage::Idle) {
            Stage::Idle => return None,
            Stage::Away => {
                one.stage = Stage::Away;
                return Some(FULL_DISK_RETRY_INTERVAL);
            }
            Stage::Take => {
                let Some(has_more) = one.handle.take_batch(spare) else {
                    one.stage = Stage::Take;
                    return Some(SOON);
                };
                one.is_dirty = false;
                if spare.is_empty() {
                    return None;
                }
                self.write(one, std::mem::take(spare), has_more, spare);
            }
            Stage::WaitForRoom(batch, has_more, since) => {
                let wait = FULL_DISK_RETRY_INTERVAL.saturating_sub(since.elapsed());
                if !wait.is_zero() {
                    one.stage = Stage::WaitForRoom(batch, has_more, since);
                    return Some(wait);
                }
                self.write(one, batch, has_more, spare);
            }
            Stage::Report(result, has_more) => one.stage = Stage::Report(result, has_more),
        }
        let Stage::Report(result, has_more) = one.stage else {
            // The thread that has the batch wakes this one; a full disk wakes nobody.
            return Some(FULL_DISK_RETRY_INTERVAL);
        };
        if !one.handle.durable(result) {
            return Some(SOON);
        }
        one.stage = if has_more { Stage::Take } else { Stage::Idle };
        one.batches += 1;
        if let Some(preparation) = one.log.as_mut().and_then(VhostLog::prepare_next_segment) {
            self.prepare(one, preparation);
        }
        if one.batches >= COMPACTION_CHECK_BATCHES {
            one.batches = 0;
            self.compact(one);
        }
        (has_more || one.is_dirty).then_some(Duration::ZERO)
    }

    /// Writes a batch, here or, if it is large, on a thread of its own. `spare` gets its buffers.
    fn write(
        self: &Arc<Self>,
        one: &mut Written,
        batch: WriteBatch,
        has_more: bool,
        spare: &mut WriteBatch,
    ) {
        let log = one.log.take().expect("the log of a batch that is taken is here");
        let handle = Arc::clone(&one.handle);
        let result = Err(LogError::Failed);
        let job = WriteJob { handle, log, batch, has_more, result };
        if job.is_large() {
            one.stage = Stage::Away;
            // A thread that cannot be started would have taken the job with it.
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
                one.finish(job.run());
            }
            return;
        }
        let mut job = job.run();
        if job.result.is_ok() {
            std::mem::swap(spare, &mut job.batch);
            spare.clear();
        }
        one.finish(job);
    }

    /// Lets a thread of its own make the next file of a log.
    fn prepare(self: &Arc<Self>, one: &mut Written, preparation: Preparation<RealDirectory>) {
        let (this, handle) = (Arc::clone(self), Arc::clone(&one.handle));
        let run = move || {
            let prepared = preparation.run();
            if let Err(error) = &prepared {
                tracing::warn!(vhost = handle.name(), %error, "cannot make the next log file yet");
            }
            this.work.lock().prepared.push((handle, prepared.ok()));
            this.changed.notify_one();
        };
        if std::thread::Builder::new().name("log-file".to_owned()).spawn(run).is_err() {
            // Without a thread this file is made when it is needed; for the next one it is tried again.
            one.take(None);
        }
    }

    /// Lets a thread of its own get space back, one file at a time.
    ///
    /// Not while records still end with the pages of a queue that was purged or is gone: what has
    /// ended must be known to have before the record of that may go.
    fn compact(self: &Arc<Self>, one: &Written) {
        if one.handle.is_ending_pages() {
            return;
        }
        if self.compacting.swap(true, Ordering::AcqRel) {
            return;
        }
        let Some(compaction) = one.log.as_ref().and_then(VhostLog::compaction) else {
            self.compacting.store(false, Ordering::Release);
            return;
        };
        let this = Arc::clone(self);
        let name = one.handle.name().to_owned();
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

fn of<'a>(written: &'a mut [Written], handle: &Arc<VhostHandle>) -> Option<&'a mut Written> {
    written.iter_mut().find(|one| Arc::ptr_eq(&one.handle, handle))
}

fn end(handle: &VhostHandle, error: &LogError) -> ! {
    tracing::error!(
        vhost = handle.name(),
        "the log cannot be written, so that nothing more can be confirmed: {error}; the broker ends"
    );
    std::process::exit(EXIT_DISK);
}

/// Ends a log when nothing more will be written.
fn close(one: Written) {
    let log = one.log.expect("a log that is closed is here");
    if let Err(error) = log.close() {
        tracing::error!(vhost = one.handle.name(), "the log was not closed well: {error}");
    }
}

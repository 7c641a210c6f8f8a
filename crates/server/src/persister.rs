//! The one writer of the disk: a thread that writes what the vhosts have gathered, one batch after
//! another, and tells them how far they are durable.
//!
//! While one batch is written and synced the next one gathers, so that batches are as large as the
//! load makes them and an idle broker syncs at once. A write that fails ends the process: nothing more
//! may be confirmed, and nobody knows what is on the disk. A vhost whose lock is held for long, or whose
//! batch finds no room on the disk, is left for a later turn: the confirms of the others do not wait for it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use storage::{LogError, PendingBatch, Preparation, Prepared, RealDirectory};

use crate::limits::{COMPACTION_CHECK_BATCHES, EXIT_DISK, FULL_DISK_RETRY_INTERVAL, LOCK_RETRY_MS};
use crate::store::VhostLog;
use crate::vhosts::VhostCell;

/// A vhost with its log.
#[derive(Debug)]
struct Written {
    cell: Arc<VhostCell>,
    log: VhostLog,
    batches: u32,
    stage: Stage,
    /// The vhost has said that it has something to write since a batch was last taken.
    is_dirty: bool,
}

impl Written {
    /// Writes a batch. Then the vhost is to be told, or the batch waits for room on the disk, which is an
    /// error; any other error ends the process.
    fn write(&mut self, batch: &mut PendingBatch, has_more: bool) -> Result<(), LogError> {
        match self.log.write_batch(batch) {
            Ok(result) => {
                self.stage = Stage::Report(result, has_more);
                batch.clear();
                Ok(())
            }
            Err(error) if error.is_full() => {
                self.stage = Stage::WaitForRoom(std::mem::take(batch), has_more);
                Err(error)
            }
            Err(error) => end(self, &error),
        }
    }
}

/// What comes next for a log.
#[derive(Debug)]
enum Stage {
    /// Nothing, before the vhost says that it has something to write.
    Idle,
    /// A batch is taken and written.
    Take,
    /// This batch is written, which found no room on the disk; whether others wait behind it.
    WaitForRoom(PendingBatch, bool),
    /// The vhost is told that a batch is durable; whether others wait behind it.
    Report(storage::Written, bool),
}

#[derive(Default, Debug)]
struct Work {
    /// Vhosts whose log the writer is to take over.
    new: Vec<Written>,
    /// Vhosts with something to write.
    dirty: Vec<Arc<VhostCell>>,
    /// Next files of logs, made or not.
    prepared: Vec<(Arc<VhostCell>, Option<Prepared<RealDirectory>>)>,
    /// Vhosts that are deleted; whoever waits for the end of their logs hears when the other end of
    /// his channel is dropped.
    retired: Vec<(Arc<VhostCell>, Sender<()>)>,
    /// The disk is nearly full: all logs are to be looked at for space to get back.
    looks_for_space: bool,
    stopping: bool,
}

impl Work {
    fn is_empty(&self) -> bool {
        self.new.is_empty()
            && self.dirty.is_empty()
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
    pub(crate) fn add(&self, cell: Arc<VhostCell>, log: VhostLog) {
        self.work.lock().new.push(Written {
            cell,
            log,
            batches: 0,
            stage: Stage::Idle,
            is_dirty: false,
        });
        self.changed.notify_one();
    }

    /// There is something to write for a vhost; told once until the writer has taken it.
    pub(crate) fn wake(&self, cell: Arc<VhostCell>) {
        self.work.lock().dirty.push(cell);
        self.changed.notify_one();
    }

    /// Ends the log of a vhost that is deleted; it is closed when this returns.
    pub(crate) fn retire(&self, cell: &Arc<VhostCell>) {
        let (done, closed) = channel();
        {
            let mut work = self.work.lock();
            if work.stopping {
                return;
            }
            work.retired.push((Arc::clone(cell), done));
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
        let mut spare = PendingBatch::default();
        let mut wait = None;
        loop {
            let Work { new, dirty, prepared, retired, looks_for_space, stopping } =
                self.next_work(wait);
            written.extend(new);
            for (cell, prepared) in prepared {
                if let Some(one) = of(&mut written, &cell) {
                    one.log.take(prepared);
                }
            }
            for cell in dirty {
                if let Some(one) = of(&mut written, &cell) {
                    one.is_dirty = true;
                }
            }
            // One batch of each vhost, then the next.
            wait = written.iter_mut().filter_map(|one| self.advance(one, &mut spare)).min();
            for (cell, _done) in retired {
                let at = written.iter().position(|one| Arc::ptr_eq(&one.cell, &cell));
                if let Some(at) = at {
                    close(written.swap_remove(at));
                }
            }
            if looks_for_space {
                written.iter().for_each(|one| self.compact(one));
            }
            if stopping && self.work.lock().dirty.is_empty() {
                if written.iter().all(|one| matches!(one.stage, Stage::Idle)) {
                    written.into_iter().for_each(close);
                    return;
                }
                if written.iter().any(|one| matches!(one.stage, Stage::WaitForRoom(..))) {
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
    fn advance(self: &Arc<Self>, one: &mut Written, spare: &mut PendingBatch) -> Option<Duration> {
        const SOON: Duration = Duration::from_millis(LOCK_RETRY_MS);
        if matches!(one.stage, Stage::Idle) && one.is_dirty {
            one.stage = Stage::Take;
        }
        match std::mem::replace(&mut one.stage, Stage::Idle) {
            Stage::Idle => return None,
            Stage::Take => {
                let Some(has_more) = one.cell.take_batch(spare) else {
                    one.stage = Stage::Take;
                    return Some(SOON);
                };
                one.is_dirty = false;
                if spare.is_empty() {
                    return None;
                }
                if let Err(error) = one.write(spare, has_more) {
                    tracing::error!(
                        vhost = one.cell.name(),
                        "the disk is full, and so is the reserve: {error}; nothing more is confirmed \
                         in this vhost until there is room"
                    );
                }
            }
            Stage::WaitForRoom(mut batch, has_more) => {
                if one.write(&mut batch, has_more).is_ok() {
                    tracing::info!(vhost = one.cell.name(), "there is room on the disk again");
                }
            }
            Stage::Report(result, has_more) => one.stage = Stage::Report(result, has_more),
        }
        let Stage::Report(result, has_more) = one.stage else {
            return Some(FULL_DISK_RETRY_INTERVAL);
        };
        if !one.cell.durable(result) {
            return Some(SOON);
        }
        one.stage = if has_more { Stage::Take } else { Stage::Idle };
        one.batches += 1;
        if let Some(preparation) = one.log.prepare() {
            self.prepare(one, preparation);
        }
        if one.batches >= COMPACTION_CHECK_BATCHES {
            one.batches = 0;
            self.compact(one);
        }
        (has_more || one.is_dirty).then_some(Duration::ZERO)
    }

    /// Lets a thread of its own make the next file of a log.
    fn prepare(self: &Arc<Self>, one: &mut Written, preparation: Preparation<RealDirectory>) {
        let (this, cell) = (Arc::clone(self), Arc::clone(&one.cell));
        let run = move || {
            let prepared = preparation.run();
            if let Err(error) = &prepared {
                tracing::warn!(vhost = cell.name(), %error, "cannot make the next log file yet");
            }
            this.work.lock().prepared.push((cell, prepared.ok()));
            this.changed.notify_one();
        };
        if std::thread::Builder::new().name("log-file".to_owned()).spawn(run).is_err() {
            // Without a thread this file is made when it is needed; for the next one it is tried again.
            one.log.take(None);
        }
    }

    /// Lets a thread of its own get space back, one file at a time.
    ///
    /// Not while records still end with the pages of a queue that was purged or is gone: what has
    /// ended must be known to have before the record of that may go.
    fn compact(self: &Arc<Self>, one: &Written) {
        if one.cell.is_ending_pages() {
            return;
        }
        if self.compacting.swap(true, Ordering::AcqRel) {
            return;
        }
        let Some(compaction) = one.log.compaction() else {
            self.compacting.store(false, Ordering::Release);
            return;
        };
        let this = Arc::clone(self);
        let name = one.cell.name().to_owned();
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

fn of<'a>(written: &'a mut [Written], cell: &Arc<VhostCell>) -> Option<&'a mut Written> {
    written.iter_mut().find(|one| Arc::ptr_eq(&one.cell, cell))
}

fn end(one: &Written, error: &LogError) -> ! {
    tracing::error!(
        vhost = one.cell.name(),
        "the log cannot be written, so that nothing more can be confirmed: {error}; the broker ends"
    );
    std::process::exit(EXIT_DISK);
}

/// Ends a log when nothing more will be written.
fn close(one: Written) {
    if let Err(error) = one.log.close() {
        tracing::error!(vhost = one.cell.name(), "the log was not closed well: {error}");
    }
}

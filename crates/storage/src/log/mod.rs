//! The log itself: opened and read back, written batch by batch.
//!
//! One thread writes. What it shares with whoever compacts in the background is the list of files and
//! which records are alive, behind a lock that is never held over a write of records.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::directory::{Directory, DirectoryFile, is_full, with_room};
use crate::format::{FIRST_BATCH, Lsn, batch_len};
use crate::limits::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, SEGMENT_BYTES_ON_FULL_DISK};
use crate::liveness::Liveness;
use crate::manifest::{FileEntry, Manifest, StoreError, file_id, file_name};
use crate::recovery::{
    Damage, Damaged, OpenError, OpenReport, ReadProgress, References, foreign_files, io_error,
    read_files, read_manifest, unlisted,
};
use crate::segment_reader::Record;
use crate::write_queue::{WriteBatch, WriteQueue};

/// How a log is to be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogOptions {
    /// The id that a new log gets and that all its files carry.
    pub log_id: u64,
    /// When a batch counts as durable.
    pub durability: Durability,
    /// Smallest size of a segment, in bytes.
    pub segment_bytes_min: u64,
    /// Largest size of a segment, in bytes, unless a single batch is larger.
    pub segment_bytes_max: u64,
    /// Begins a log in a directory that has none; otherwise opening such a directory fails.
    pub create_if_missing: bool,
}

/// When a batch counts as durable, and may be confirmed to a client.
///
/// Either way a batch reaches the log as a whole or not at all, and batches keep their order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Durability {
    /// After `fdatasync`: a batch survives a crash of the process or of the operating system and a
    /// power cut.
    ///
    /// Not promised: that a disk which acknowledges a sync before the bytes are safe keeps them, or
    /// that a batch survives the loss of the disk itself.
    #[default]
    Fsync,
    /// As soon as the operating system has accepted the write: a batch survives a crash of the process.
    ///
    /// Not promised: that a batch survives a crash of the operating system or a power cut. Any batch
    /// of the segment in use may be lost then, with all later ones. Sealed segments are synced.
    Os,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            log_id: 0,
            durability: Durability::default(),
            segment_bytes_min: SEGMENT_BYTES_MIN,
            segment_bytes_max: SEGMENT_BYTES_MAX,
            create_if_missing: true,
        }
    }
}

/// Why the log cannot be written any more: what was not confirmed until now must never be.
#[derive(thiserror::Error, Debug)]
pub enum LogError {
    /// A write or a sync failed. It is not tried again: after a failed sync nobody knows what is on
    /// the disk.
    #[error("{doing}: {error}")]
    Io {
        /// What was tried.
        doing: String,
        /// What the system says.
        error: io::Error,
    },
    /// The disk has no room for the next file. Nothing was written: when there is room again the same
    /// batch can be written.
    #[error("{doing}: {error}")]
    Full {
        /// What was tried.
        doing: &'static str,
        /// What the system says.
        error: io::Error,
    },
    /// It had failed before.
    #[error("the log has failed before")]
    Failed,
}

impl LogError {
    /// Whether the same batch can be written when the disk has room again.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }
}

/// What a write did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Written {
    /// Everything up to here is durable.
    pub durable: Lsn,
    /// Octets written.
    pub bytes: u64,
    /// Records written.
    pub records: u64,
}

/// What the writer shares with whoever compacts.
#[derive(Debug)]
pub(crate) struct Shared<F> {
    pub(crate) manifest: Manifest,
    pub(crate) liveness: Liveness,
    /// Everything up to here is written, and durable if the log syncs.
    pub(crate) written: Lsn,
    /// How often a compaction has dropped records.
    pub(crate) dropped: u64,
    /// The file that is written.
    pub(crate) active: Arc<F>,
}

pub(crate) fn lock<F>(shared: &Mutex<Shared<F>>) -> MutexGuard<'_, Shared<F>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file that is written.
#[derive(Debug)]
struct Active<F> {
    file: Arc<F>,
    id: u64,
    first: Lsn,
    /// Where the next batch goes.
    offset: u64,
    capacity: u64,
    previous_crc: u32,
}

/// A file made ready to be written.
#[derive(Debug)]
struct Spare<F> {
    file: Arc<F>,
    id: u64,
    capacity: u64,
}

/// The file after the one that is written.
#[derive(Debug)]
enum Ahead<F> {
    /// Not needed yet.
    Nothing,
    /// It is being made.
    InTheMaking,
    /// It could not be made, and is made when it is needed: trying again and again helps nobody.
    Failed,
    /// It is ready.
    Made(Spare<F>),
}

/// How large a new file is to be, in octets.
#[derive(Clone, Copy, Debug)]
struct Capacity {
    wanted: u64,
    /// What it must have at least, if the disk is nearly full.
    least: u64,
    /// What it must have when the log cannot go on without it.
    needed: u64,
}

/// A log.
#[derive(Debug)]
pub struct Log<D: Directory> {
    directory: Arc<D>,
    options: LogOptions,
    shared: Arc<Mutex<Shared<D::File>>>,
    active: Active<D::File>,
    ahead: Ahead<D::File>,
    synced: Lsn,
    failed: bool,
}

impl<D: Directory> Log<D> {
    /// Opens the log in `directory`, or begins one, and hands every record to `each`, in order.
    /// `progress` is told after each file.
    ///
    /// # Errors
    /// When the directory cannot be read or written, or was written by a newer version.
    pub fn open(
        directory: D,
        options: LogOptions,
        each: &mut dyn FnMut(Record<'_>, &mut References<'_>),
        progress: &mut dyn FnMut(ReadProgress),
    ) -> Result<(Self, OpenReport), OpenError> {
        let directory = Arc::new(directory);
        let names = directory.list().map_err(io_error("list the log's directory"))?;
        let mut manifest = match read_manifest(&*directory, &names)? {
            Some(manifest) if manifest.log_id != options.log_id => {
                return Err(OpenError::other_log(&manifest, options.log_id));
            }
            Some(manifest) => manifest,
            None if !options.create_if_missing => return Err(OpenError::no_manifest()),
            None => {
                Manifest { log_id: options.log_id, reserved: 0, next_file_id: 1, files: Vec::new() }
            }
        };
        // Files that were made ahead or left over go before anything new is written: the disk may be full.
        let foreign = foreign_files(&*directory, &names, &manifest)?;
        remove_unlisted(&*directory, &names, &manifest, &foreign)?;
        let was_sealed: Vec<bool> = manifest.files.iter().map(FileEntry::is_sealed).collect();
        let mut report = OpenReport::default();
        let kept = Damaged::Kept;
        let liveness = read_files(&*directory, &mut manifest, kept, &mut report, each, progress)?;
        for (entry, was_sealed) in manifest.files.iter().zip(was_sealed) {
            if !was_sealed {
                shorten(&*directory, entry);
            }
        }
        // Two files must not begin at the same position.
        manifest.files.retain(|file| file.first != file.end);
        let used = names.iter().filter_map(|name| file_id(name)).max().map_or(1, |id| id + 1);
        manifest.next_file_id = manifest.next_file_id.max(used);
        let mut log = Self::begin(directory, options, manifest, liveness, &mut report)?;
        let listed = lock(&log.shared).manifest.clone();
        let names = log.directory.list().map_err(io_error("list the log's directory"))?;
        remove_unlisted(&*log.directory, &names, &listed, &foreign)?;
        report.damages.extend(foreign);
        log.synced = report.last;
        Ok((log, report))
    }

    /// Seals what was read and begins a new file: nothing is ever written behind a crash.
    fn begin(
        directory: Arc<D>,
        options: LogOptions,
        mut manifest: Manifest,
        mut liveness: Liveness,
        report: &mut OpenReport,
    ) -> Result<Self, OpenError> {
        report.files = manifest.files.len();
        let first = Lsn(report.last.0 + 1);
        let total = manifest.files.iter().map(|file| file.bytes).sum();
        let id = manifest.take_file_id();
        let spare = make_needed(&*directory, id, size(&options, total, 0))
            .map_err(io_error("make a log file"))?;
        let active = activate(&manifest, spare, first).map_err(io_error("begin a log file"))?;
        manifest.files.push(entry(&active));
        liveness.open_file(first, None, Lsn(0));
        let stored = manifest.store(&*directory).map_err(StoreError::into_io);
        stored.map_err(io_error("write the manifest"))?;
        let file = Arc::clone(&active.file);
        let shared = Shared { manifest, liveness, written: report.last, dropped: 1, active: file };
        Ok(Self {
            directory,
            options,
            shared: Arc::new(Mutex::new(shared)),
            active,
            ahead: Ahead::Nothing,
            synced: Lsn(0),
            failed: false,
        })
    }

    /// The position of the last record that was read or written.
    #[must_use]
    pub fn last(&self) -> Lsn {
        lock(&self.shared).written
    }

    pub(crate) fn shared(&self) -> &Arc<Mutex<Shared<D::File>>> {
        &self.shared
    }

    pub(crate) fn directory(&self) -> &Arc<D> {
        &self.directory
    }

    pub(crate) fn options(&self) -> &LogOptions {
        &self.options
    }

    /// Writes what waits, batch by batch; when this returns, all of it is durable.
    ///
    /// # Errors
    /// As [`Log::write_batch`]; batches before the one that failed are durable.
    pub fn write(&mut self, pending: &mut WriteQueue) -> Result<Written, LogError> {
        let mut all = Written::default();
        let mut batch = WriteBatch::default();
        loop {
            let is_last = !pending.take_batch(&mut batch);
            let written = self.write_batch(&mut batch)?;
            all.durable = written.durable;
            all.bytes += written.bytes;
            all.records += written.records;
            if is_last {
                return Ok(all);
            }
            batch.clear();
        }
    }

    /// Writes a batch; when this returns, what it holds is durable.
    ///
    /// # Errors
    /// When the disk refuses. Nothing of the batch may be confirmed then, and the log is of no more
    /// use, unless it was [`LogError::Full`].
    pub fn write_batch(&mut self, batch: &mut WriteBatch) -> Result<Written, LogError> {
        if self.failed {
            return Err(LogError::Failed);
        }
        let result = self.try_write(batch);
        self.failed = result.as_ref().is_err_and(|error| !error.is_full());
        result
    }

    /// Whether a batch goes into a new file, which takes several writes more.
    #[must_use]
    pub fn needs_new_segment(&self, batch: &WriteBatch) -> bool {
        let end = self.active.offset.checked_add(batch_len(batch.bytes()));
        end.is_none_or(|end| end > self.active.capacity)
    }

    fn try_write(&mut self, batch: &mut WriteBatch) -> Result<Written, LogError> {
        batch.squeeze();
        let durable = batch.last();
        let mut written = Written { durable, ..Written::default() };
        if let Some(first) = batch.slots().first().map(|slot| slot.lsn) {
            let len = batch_len(batch.batch.len());
            let needed = self.active.offset.checked_add(len);
            if needed.is_none_or(|needed| needed > self.active.capacity) {
                self.roll(first, len)?;
            }
            let Self { active, synced, .. } = self;
            let crc = batch.batch.seal(active.id, (first, durable), *synced, active.previous_crc);
            let doing = |what| {
                let name = file_name(active.id);
                move |error| LogError::Io { doing: format!("{what} {name}"), error }
            };
            let put = batch.batch.write_to(&*active.file, active.offset).map_err(doing("write"))?;
            assert_eq!(put, len, "a batch takes the room that was made for it");
            if self.options.durability == Durability::Fsync {
                active.file.sync().map_err(doing("sync"))?;
                *synced = durable;
            }
            active.offset += len;
            active.previous_crc = crc;
            written.bytes = len;
            written.records = batch.slots().len() as u64;
        }
        let mut shared = lock(&self.shared);
        for slot in batch.slots() {
            shared.liveness.add(slot.lsn, slot.references);
        }
        for lsn in batch.released() {
            shared.liveness.release(*lsn);
        }
        shared.written = shared.written.max(durable);
        Ok(written)
    }

    /// Goes on in a new file that has room for `len` octets.
    fn roll(&mut self, first: Lsn, len: u64) -> Result<(), LogError> {
        let spare = self.spare(FIRST_BATCH + len)?;
        // What is sealed counts as durable.
        if self.options.durability != Durability::Fsync {
            self.active.file.sync().map_err(doing("sync a log file"))?;
        }
        let mut shared = lock(&self.shared);
        let mut manifest = shared.manifest.clone();
        let is_unused = self.active.offset == FIRST_BATCH;
        if is_unused {
            manifest.files.pop();
        } else if let Some(last) = manifest.files.last_mut() {
            last.end = first;
            last.bytes = self.active.offset;
        }
        let next = activate(&manifest, spare, first).map_err(doing("begin a log file"))?;
        manifest.files.push(entry(&next));
        match manifest.store(&*self.directory) {
            Ok(()) => {}
            Err(StoreError::Unchanged(error)) if is_full(&error) => {
                drop(shared);
                self.put_back(next);
                return Err(LogError::Full { doing: "write the manifest", error });
            }
            Err(error) => return Err(doing("write the manifest")(error.into_io())),
        }
        let Shared { liveness, .. } = &mut *shared;
        match is_unused {
            true => liveness.remove_file(self.active.first),
            false => liveness.seal_file(self.active.first, first),
        }
        liveness.open_file(first, None, Lsn(0));
        shared.manifest = manifest;
        shared.active = Arc::clone(&next.file);
        drop(shared);
        let old = std::mem::replace(&mut self.active, next);
        // Room is given back at once; if it cannot be, the next opening does.
        let _ = match is_unused {
            true => self.directory.remove(&file_name(old.id)),
            false => old.file.shorten(old.offset),
        };
        Ok(())
    }

    /// Keeps a file that could not be begun for the next attempt.
    fn put_back(&mut self, next: Active<D::File>) {
        let Active { file, id, capacity, .. } = next;
        if matches!(self.ahead, Ahead::InTheMaking) {
            // If it cannot go now, the next opening removes it.
            let _ = self.directory.remove(&file_name(id));
        } else {
            self.ahead = Ahead::Made(Spare { file, id, capacity });
        }
    }

    /// A file with room for so many octets: the one that was made ahead, or a new one.
    fn spare(&mut self, needed: u64) -> Result<Spare<D::File>, LogError> {
        match std::mem::replace(&mut self.ahead, Ahead::Nothing) {
            Ahead::Made(spare) if spare.capacity >= needed => return Ok(spare),
            Ahead::Made(small) => {
                // If it cannot go now, the next opening removes it.
                let _ = self.directory.remove(&file_name(small.id));
            }
            Ahead::InTheMaking => self.ahead = Ahead::InTheMaking,
            Ahead::Nothing | Ahead::Failed => {}
        }
        let (id, capacity) = self.next_file(needed);
        let what = "make a log file";
        make_needed(&*self.directory, id, capacity).map_err(|error| match is_full(&error) {
            true => LogError::Full { doing: what, error },
            false => doing(what)(error),
        })
    }

    /// The id of the next file and the size that it is to have.
    fn next_file(&self, needed: u64) -> (u64, Capacity) {
        let mut shared = lock(&self.shared);
        let manifest = &mut shared.manifest;
        let id = manifest.take_file_id();
        let total = manifest.files.iter().map(|file| file.bytes).sum();
        (id, size(&self.options, total, needed))
    }

    /// The next file is to be made while there is time: once the file in use is half full. Run it on
    /// another thread and give it to [`Log::take`].
    #[must_use]
    pub fn prepare(&mut self) -> Option<Preparation<D>> {
        if !matches!(self.ahead, Ahead::Nothing) || self.active.offset <= self.active.capacity / 2 {
            return None;
        }
        self.ahead = Ahead::InTheMaking;
        let (id, capacity) = self.next_file(0);
        Some(Preparation { directory: Arc::clone(&self.directory), id, capacity })
    }

    /// The next file is there, or could not be made; the log goes on either way.
    pub fn take(&mut self, prepared: Option<Prepared<D>>) {
        self.ahead = prepared.map_or(Ahead::Failed, |Prepared(spare)| Ahead::Made(spare));
    }

    /// Ends the log, whole: where it ends is written down, so that whatever is missing of it at the
    /// next opening is told from a torn end, and a log that was closed from one that a crash left.
    ///
    /// # Errors
    /// When the disk refuses; nothing is lost then.
    pub fn close(self) -> Result<(), LogError> {
        if self.failed {
            return Err(LogError::Failed);
        }
        if self.options.durability != Durability::Fsync {
            self.active.file.sync().map_err(doing("sync a log file"))?;
        }
        let mut shared = lock(&self.shared);
        let end = Lsn(shared.written.0 + 1);
        if let Some(last) = shared.manifest.files.last_mut() {
            last.end = end;
            last.bytes = self.active.offset;
        }
        let stored = shared.manifest.store(&*self.directory).map_err(StoreError::into_io);
        stored.map_err(doing("write the manifest"))
    }
}

/// A piece of background work: the next file of a log.
#[derive(Debug)]
pub struct Preparation<D> {
    directory: Arc<D>,
    id: u64,
    capacity: Capacity,
}

/// A file that is ready to be written.
#[derive(Debug)]
pub struct Prepared<D: Directory>(Spare<D::File>);

impl<D: Directory> Preparation<D> {
    /// Makes the file.
    ///
    /// # Errors
    /// When the disk refuses, because it is full, say.
    pub fn run(self) -> io::Result<Prepared<D>> {
        make_spare(&*self.directory, self.id, self.capacity).map(Prepared)
    }
}

fn doing(what: &'static str) -> impl FnOnce(io::Error) -> LogError {
    move |error| LogError::Io { doing: what.to_owned(), error }
}

/// The size of the next file of a log that uses `total` octets.
fn size(options: &LogOptions, total: u64, needed: u64) -> Capacity {
    let wanted = (total / 4).clamp(options.segment_bytes_min, options.segment_bytes_max);
    let whole = |bytes: u64| bytes.max(needed).next_multiple_of(4096);
    let least = options.segment_bytes_min;
    Capacity {
        wanted: whole(wanted),
        least: whole(least),
        needed: whole(least.min(SEGMENT_BYTES_ON_FULL_DISK)),
    }
}

/// Makes a file of zeros, a smaller one if the disk has no room for what is wanted.
fn make_spare<D: Directory>(
    directory: &D,
    id: u64,
    capacity: Capacity,
) -> io::Result<Spare<D::File>> {
    let Capacity { wanted, least, .. } = capacity;
    let made = match make_zeros(directory, id, wanted) {
        Err(error) if is_full(&error) && least < wanted => {
            make_zeros(directory, id, least).map(|file| (file, least))
        }
        made => made.map(|file| (file, wanted)),
    };
    made.map(|(file, capacity)| Spare { file: Arc::new(file), id, capacity })
}

/// Makes a file without which the log cannot go on: on a full disk as small as it can be, and out of
/// what is reserved for that.
fn make_needed<D: Directory>(
    directory: &D,
    id: u64,
    capacity: Capacity,
) -> io::Result<Spare<D::File>> {
    match make_spare(directory, id, capacity) {
        Err(error) if is_full(&error) => {
            let Capacity { needed, .. } = capacity;
            let file = with_room(directory, || make_zeros(directory, id, needed))?;
            Ok(Spare { file: Arc::new(file), id, capacity: needed })
        }
        made => made,
    }
}

/// Removes the files that the manifest does not list, but for those of other logs.
fn remove_unlisted<D: Directory>(
    directory: &D,
    names: &[String],
    manifest: &Manifest,
    foreign: &[Damage],
) -> Result<(), OpenError> {
    let is_left = |name: &str| foreign.iter().any(|damage| damage.file == name);
    let mut unlisted = unlisted(names, manifest).filter(|name| !is_left(name)).peekable();
    if unlisted.peek().is_some() {
        // The manifest that does not list them must be the one that a power cut leaves.
        directory.sync().map_err(io_error("sync the log's directory"))?;
    }
    for name in unlisted {
        directory.remove(name).map_err(io_error(format!("remove {name}")))?;
    }
    Ok(())
}

/// Gives back the room behind the end of a file, where nothing counts. Where that fails, it takes room and nothing else.
fn shorten<D: Directory>(directory: &D, entry: &FileEntry) {
    let _ = directory.open(&entry.name()).and_then(|file| file.shorten(entry.bytes));
}

/// Makes a file of zeros, or none.
fn make_zeros<D: Directory>(directory: &D, id: u64, capacity: u64) -> io::Result<D::File> {
    let name = file_name(id);
    let file = directory.create(&name)?;
    fill(&file, capacity).inspect_err(|_| {
        // Half a file would only take room. If it cannot go now, the next opening removes it.
        let _ = directory.remove(&name);
    })?;
    Ok(file)
}

/// Writes zeros: writing over what is there is several times cheaper than growing a file.
fn fill<F: DirectoryFile>(file: &F, capacity: u64) -> io::Result<()> {
    let zeros = vec![0; 256 * 1024];
    let mut at = 0;
    while at < capacity {
        let len = (capacity - at).min(zeros.len() as u64);
        let part = usize::try_from(len).unwrap_or(zeros.len());
        file.write_at(zeros.get(..part).unwrap_or(&zeros), at)?;
        at += len;
    }
    file.sync()
}

/// Makes a spare file the one that is written.
fn activate<F: DirectoryFile>(
    manifest: &Manifest,
    spare: Spare<F>,
    first: Lsn,
) -> io::Result<Active<F>> {
    spare.file.write_at(&manifest.file_header(spare.id, first).encode(), 0)?;
    spare.file.sync()?;
    Ok(Active {
        file: spare.file,
        id: spare.id,
        first,
        offset: FIRST_BATCH,
        capacity: spare.capacity,
        previous_crc: 0,
    })
}

fn entry<F>(active: &Active<F>) -> FileEntry {
    FileEntry { id: active.id, first: active.first, end: Lsn(0), bytes: 0, clean: Lsn(0) }
}

//! The log: opened and read back, then written batch by batch.
//!
//! One thread writes. It shares the list of files and the liveness of records with background
//! compactions, behind a lock that is never held during a write of records.

mod next_segment;
mod options;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::next_segment::{Capacity, NextSegment, Preallocated, preallocate_needed};
use self::options::io_failed;
use crate::directory::{Directory, DirectoryFile, is_full};
use crate::format::{FIRST_BATCH, FORMAT_VERSION, FORMAT_VERSION_OLDEST, Lsn, batch_len};
use crate::liveness::Liveness;
use crate::manifest::{FileEntry, Manifest, StoreError, file_id, file_name};
use crate::recovery::{
    Damage, DamageHandling, OpenError, OpenReport, ReadProgress, References, foreign_files,
    io_error, read_files, read_manifest, refuse_newer_files, unlisted,
};
use crate::segment_reader::Record;
use crate::write_batch::WriteBatch;
use crate::write_queue::WriteQueue;

pub use next_segment::{Preparation, Prepared};
pub use options::{Durability, LogError, LogOptions, Written};

/// State that the writer shares with compactions.
#[derive(Debug)]
pub(crate) struct Shared<F> {
    pub(crate) manifest: Manifest,
    pub(crate) liveness: Liveness,
    /// All records up to here are written, and with [`Durability::Fsync`] durable.
    pub(crate) written: Lsn,
    /// Number of compactions that have dropped records, plus one.
    pub(crate) dropping_compactions: u64,
    /// File of the active segment.
    pub(crate) active: Arc<F>,
    /// Number of snapshots, which need the files that they list.
    pub(crate) snapshots: usize,
    /// Files that compactions have replaced, to be removed with the last snapshot.
    pub(crate) replaced: Vec<String>,
}

pub(crate) fn lock<F>(shared: &Mutex<Shared<F>>) -> MutexGuard<'_, Shared<F>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The segment that is written.
#[derive(Debug)]
struct ActiveSegment<F> {
    file: Arc<F>,
    id: u64,
    /// First position of its range.
    first: Lsn,
    /// Last position that was written, or that is covered by a batch without records.
    last: Lsn,
    /// Offset of the next batch, in bytes.
    offset: u64,
    /// Size of the file, in bytes.
    capacity: u64,
    /// CRC of the batch before, 0 without one.
    previous_crc: u32,
}

impl<F> ActiveSegment<F> {
    /// True if no batch has been written to it.
    fn is_empty(&self) -> bool {
        self.offset == FIRST_BATCH
    }

    /// The entry of an unsealed segment in the manifest.
    fn entry(&self) -> FileEntry {
        FileEntry { id: self.id, first: self.first, end: Lsn(0), bytes: 0, compacted_at: Lsn(0) }
    }

    /// The manifest's entry of this segment, which is always its last one.
    fn entry_in<'a>(&self, manifest: &'a mut Manifest) -> &'a mut FileEntry {
        let last = manifest.files.last_mut().filter(|last| last.id == self.id);
        last.expect("the active segment is listed last")
    }
}

/// A log in a directory.
#[derive(Debug)]
pub struct Log<D: Directory> {
    directory: Arc<D>,
    options: LogOptions,
    shared: Arc<Mutex<Shared<D::File>>>,
    active: ActiveSegment<D::File>,
    next_segment: NextSegment<D::File>,
    /// Version of the format in the manifest.
    format_version: u32,
    /// All records up to here are durable.
    synced: Lsn,
    has_failed: bool,
}

impl<D: Directory> Log<D> {
    /// Opens the log in `directory`, or creates one, and passes every record to `each`, in order.
    /// Calls `progress` after each file.
    ///
    /// # Errors
    /// [`OpenError`]: the directory cannot be read or written, holds another log, or was written by a
    /// newer version.
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
            None => Manifest {
                format_version: FORMAT_VERSION_OLDEST,
                log_id: options.log_id,
                reserved: 0,
                next_file_id: 1,
                files: Vec::new(),
            },
        };
        refuse_newer_files(&*directory, &manifest)?;
        // Unlisted files are removed before anything new is written: the disk may be full.
        let foreign = foreign_files(&*directory, &names, &manifest)?;
        remove_unlisted(&*directory, &names, &manifest, &foreign)?;
        let was_sealed: Vec<bool> = manifest.files.iter().map(FileEntry::is_sealed).collect();
        let mut report = OpenReport::default();
        let handling = DamageHandling::Preserve;
        let liveness =
            read_files(&*directory, &mut manifest, handling, &mut report, each, progress)?;
        for (entry, was_sealed) in manifest.files.iter().zip(was_sealed) {
            if !was_sealed {
                truncate(&*directory, entry);
            }
        }
        // Two files must not begin at the same position: `start` begins one at the end of the last.
        manifest.files.retain(|file| file.first != file.end);
        let used = names.iter().filter_map(|name| file_id(name)).max().map_or(1, |id| id + 1);
        manifest.next_file_id = manifest.next_file_id.max(used);
        let mut log = Self::start(directory, options, manifest, liveness, &mut report)?;
        let listed = lock(&log.shared).manifest.clone();
        let names = log.directory.list().map_err(io_error("list the log's directory"))?;
        remove_unlisted(&*log.directory, &names, &listed, &foreign)?;
        report.damages.extend(foreign);
        log.synced = report.last;
        Ok((log, report))
    }

    /// Begins a new segment behind the ones that were read: no batch is ever written behind a crash.
    fn start(
        directory: Arc<D>,
        options: LogOptions,
        mut manifest: Manifest,
        mut liveness: Liveness,
        report: &mut OpenReport,
    ) -> Result<Self, OpenError> {
        report.format_version = manifest.format_version;
        report.files = manifest.files.len();
        let first = Lsn(report.last.0 + 1);
        let total = manifest.files.iter().map(|file| file.bytes).sum();
        let id = manifest.take_file_id();
        let preallocated = preallocate_needed(&*directory, id, Capacity::new(&options, total, 0))
            .map_err(io_error("make a log file"))?;
        let active =
            activate(&manifest, preallocated, first).map_err(io_error("begin a log file"))?;
        manifest.files.push(active.entry());
        liveness.open_file(first, None, Lsn(0));
        let stored = manifest.store(&*directory).map_err(StoreError::into_io);
        stored.map_err(io_error("write the manifest"))?;
        let file = Arc::clone(&active.file);
        let format_version = manifest.format_version;
        let shared = Shared {
            manifest,
            liveness,
            written: report.last,
            dropping_compactions: 1,
            active: file,
            snapshots: 0,
            replaced: Vec::new(),
        };
        Ok(Self {
            directory,
            options,
            shared: Arc::new(Mutex::new(shared)),
            active,
            next_segment: NextSegment::None,
            format_version,
            synced: Lsn(0),
            has_failed: false,
        })
    }

    /// Position of the last record that was read or written.
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

    /// File, id and bytes in use of the active segment.
    pub(crate) fn active(&self) -> (&Arc<D::File>, u64, u64) {
        let ActiveSegment { file, id, offset, .. } = &self.active;
        (file, *id, *offset)
    }

    /// Writes all batches of `queue`. When this returns, their records are durable.
    ///
    /// # Errors
    /// As [`Log::write_batch`]; batches before the one that failed are durable.
    pub fn write(&mut self, queue: &mut WriteQueue) -> Result<Written, LogError> {
        let mut all = Written::default();
        let mut batch = WriteBatch::default();
        loop {
            let is_last = !queue.take_batch(&mut batch);
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

    /// Writes a batch. When this returns, its records are durable.
    ///
    /// # Errors
    /// [`LogError`]. No record of the batch may be confirmed then, and the log cannot be used any more,
    /// except after [`LogError::Full`].
    ///
    /// # Panics
    /// If the batch holds a position that was written before: it could not be read back.
    pub fn write_batch(&mut self, batch: &mut WriteBatch) -> Result<Written, LogError> {
        if self.has_failed {
            return Err(LogError::Failed);
        }
        let result = self.try_write(batch);
        self.has_failed = result.as_ref().is_err_and(|error| !error.is_full());
        result
    }

    /// True if the manifest is replaced before the batch is written, which takes several more writes.
    #[must_use]
    pub fn needs_new_manifest(&self, batch: &WriteBatch) -> bool {
        let end = self.active.offset.checked_add(batch_len(batch.bytes()));
        end.is_none_or(|end| end > self.active.capacity)
            || batch.format_version() > self.format_version
    }

    fn try_write(&mut self, batch: &mut WriteBatch) -> Result<Written, LogError> {
        batch.remove_dropped();
        let durable = batch.last();
        let mut written = Written { durable, ..Written::default() };
        if let Some(first) = batch.records().first().map(|record| record.lsn) {
            // Recovery skips a position that is not above all before it, so it must never be written.
            let last = self.active.last;
            assert!(first > last, "a batch begins at position {first}, behind position {last}");
            if batch.format_version() > self.format_version {
                self.raise_format_version(batch.format_version())?;
            }
            let len = batch_len(batch.encoder.len());
            let needed = self.active.offset.checked_add(len);
            if needed.is_none_or(|needed| needed > self.active.capacity) {
                self.roll(first, len)?;
            }
            let Self { active, synced, .. } = self;
            let crc = batch.encoder.seal(active.id, first..=durable, *synced, active.previous_crc);
            let doing = |what| {
                let name = file_name(active.id);
                move |error| LogError::Io { doing: format!("{what} {name}"), error }
            };
            let put =
                batch.encoder.write_to(&*active.file, active.offset).map_err(doing("write"))?;
            assert_eq!(put, len, "a batch takes the room that was made for it");
            // The offset moves only behind a batch that is durable: a failed sync ends the log.
            if self.options.durability == Durability::Fsync {
                active.file.sync().map_err(doing("sync"))?;
                *synced = durable;
            }
            active.offset += len;
            active.previous_crc = crc;
            written.bytes = len;
            written.records = batch.records().len() as u64;
        }
        self.active.last = self.active.last.max(durable);
        let mut shared = lock(&self.shared);
        // Records first: a batch may release its own records.
        for record in batch.records() {
            let is_in_file = shared.liveness.add(record.lsn, record.references);
            assert!(is_in_file, "position {} is in no file", record.lsn);
        }
        for lsn in batch.released() {
            shared.liveness.release(*lsn);
        }
        shared.written = shared.written.max(durable);
        Ok(written)
    }

    /// Continues in a new segment that has room for a batch of `len` bytes.
    fn roll(&mut self, first: Lsn, len: u64) -> Result<(), LogError> {
        let preallocated = self.take_segment(FIRST_BATCH + len)?;
        // A sealed segment counts as durable, so it is synced before the manifest says it is sealed.
        if self.options.durability != Durability::Fsync {
            self.active.file.sync().map_err(io_failed("sync a log file"))?;
        }
        let mut shared = lock(&self.shared);
        let mut manifest = shared.manifest.clone();
        let entry = self.active.entry_in(&mut manifest);
        if self.active.is_empty() {
            manifest.files.pop();
        } else {
            entry.end = first;
            entry.bytes = self.active.offset;
        }
        let next =
            activate(&manifest, preallocated, first).map_err(io_failed("begin a log file"))?;
        manifest.files.push(next.entry());
        match manifest.store(&*self.directory) {
            Ok(()) => {}
            Err(StoreError::Unchanged(error)) if is_full(&error) => {
                drop(shared);
                self.put_back(next);
                return Err(LogError::Full { doing: "write the manifest", error });
            }
            Err(error) => return Err(io_failed("write the manifest")(error.into_io())),
        }
        // The manifest is stored: from here on the new segment is the active one.
        let Shared { liveness, .. } = &mut *shared;
        if self.active.is_empty() {
            liveness.remove_file(self.active.first);
        } else {
            liveness.seal_file(self.active.first, first);
        }
        liveness.open_file(first, None, Lsn(0));
        shared.manifest = manifest;
        shared.active = Arc::clone(&next.file);
        drop(shared);
        let old = std::mem::replace(&mut self.active, next);
        // Room is given back at once. If that fails, the next opening does it.
        let _ = if old.is_empty() {
            self.directory.remove(&file_name(old.id))
        } else {
            old.file.truncate(old.offset)
        };
        Ok(())
    }

    /// Writes down that the log needs a newer version of the format, before the first record that needs it: an
    /// earlier build would leave out such a record.
    fn raise_format_version(&mut self, format_version: u32) -> Result<(), LogError> {
        assert!(
            format_version <= FORMAT_VERSION,
            "version {format_version} of the format is unknown"
        );
        let mut shared = lock(&self.shared);
        let manifest = Manifest { format_version, ..shared.manifest.clone() };
        match manifest.store(&*self.directory) {
            Ok(()) => {}
            Err(StoreError::Unchanged(error)) if is_full(&error) => {
                return Err(LogError::Full { doing: "write the manifest", error });
            }
            Err(error) => return Err(io_failed("write the manifest")(error.into_io())),
        }
        shared.manifest = manifest;
        drop(shared);
        self.format_version = format_version;
        Ok(())
    }

    /// Keeps a segment that could not be listed for the next attempt.
    fn put_back(&mut self, next: ActiveSegment<D::File>) {
        let ActiveSegment { file, id, capacity, .. } = next;
        if matches!(self.next_segment, NextSegment::Preparing) {
            // Another one is on its way. If this one cannot be removed now, the next opening does it.
            let _ = self.directory.remove(&file_name(id));
        } else {
            self.next_segment = NextSegment::Ready(Preallocated { file, id, capacity });
        }
    }

    /// A segment with room for `needed` bytes: the one that was created in advance, or a new one.
    fn take_segment(&mut self, needed: u64) -> Result<Preallocated<D::File>, LogError> {
        match std::mem::replace(&mut self.next_segment, NextSegment::None) {
            NextSegment::Ready(segment) if segment.capacity >= needed => return Ok(segment),
            NextSegment::Ready(small) => {
                // If it cannot be removed now, the next opening removes it.
                let _ = self.directory.remove(&file_name(small.id));
            }
            NextSegment::Preparing => self.next_segment = NextSegment::Preparing,
            NextSegment::None | NextSegment::Failed => {}
        }
        let (id, capacity) = self.next_file(needed);
        let what = "make a log file";
        preallocate_needed(&*self.directory, id, capacity).map_err(|error| match is_full(&error) {
            true => LogError::Full { doing: what, error },
            false => io_failed(what)(error),
        })
    }

    /// Id and size of the next segment.
    fn next_file(&self, needed: u64) -> (u64, Capacity) {
        let mut shared = lock(&self.shared);
        let manifest = &mut shared.manifest;
        let id = manifest.take_file_id();
        let total = manifest.files.iter().map(|file| file.bytes).sum();
        (id, Capacity::new(&self.options, total, needed))
    }

    /// Background work that creates the next segment, once the active one is half full. The caller runs
    /// it on another thread and passes the result to [`Log::install_next_segment`].
    #[must_use]
    pub fn prepare_next_segment(&mut self) -> Option<Preparation<D>> {
        if !matches!(self.next_segment, NextSegment::None)
            || self.active.offset <= self.active.capacity / 2
        {
            return None;
        }
        self.next_segment = NextSegment::Preparing;
        let (id, capacity) = self.next_file(0);
        Some(Preparation { directory: Arc::clone(&self.directory), id, capacity })
    }

    /// Takes the segment that [`Log::prepare_next_segment`] asked for, `None` if it could not be
    /// created. The log continues in either case.
    ///
    /// # Panics
    /// If no segment was asked for.
    pub fn install_next_segment(&mut self, prepared: Option<Prepared<D>>) {
        let is_expected = matches!(self.next_segment, NextSegment::Preparing);
        assert!(is_expected, "a segment that was not asked for");
        self.next_segment =
            prepared.map_or(NextSegment::Failed, |Prepared(segment)| NextSegment::Ready(segment));
    }

    /// Closes the log and records its end in the manifest. The next opening then reports missing bytes
    /// as damage instead of a torn end, and knows that no crash happened.
    ///
    /// # Errors
    /// [`LogError`]; no record is lost then.
    pub fn close(self) -> Result<(), LogError> {
        if self.has_failed {
            return Err(LogError::Failed);
        }
        if self.options.durability != Durability::Fsync {
            self.active.file.sync().map_err(io_failed("sync a log file"))?;
        }
        let mut shared = lock(&self.shared);
        let end = Lsn(shared.written.0 + 1);
        let entry = self.active.entry_in(&mut shared.manifest);
        entry.end = end;
        entry.bytes = self.active.offset;
        let stored = shared.manifest.store(&*self.directory).map_err(StoreError::into_io);
        stored.map_err(io_failed("write the manifest"))
    }
}

/// Removes the files that the manifest does not list, except those of other logs.
fn remove_unlisted<D: Directory>(
    directory: &D,
    names: &[String],
    manifest: &Manifest,
    foreign: &[Damage],
) -> Result<(), OpenError> {
    let is_foreign = |name: &str| foreign.iter().any(|damage| damage.file == name);
    let mut unlisted = unlisted(names, manifest).filter(|name| !is_foreign(name)).peekable();
    if unlisted.peek().is_some() {
        // Synced before files are removed: after a power cut, the manifest must be the one that does
        // not list them.
        directory.sync().map_err(io_error("sync the log's directory"))?;
    }
    for name in unlisted {
        directory.remove(name).map_err(io_error(format!("remove {name}")))?;
    }
    Ok(())
}

/// Gives back the room behind the end of a file. If that fails, the room stays in use without harm.
fn truncate<D: Directory>(directory: &D, entry: &FileEntry) {
    let _ = directory.open(&entry.name()).and_then(|file| file.truncate(entry.bytes));
}

/// Writes and syncs the header of a new segment.
fn activate<F: DirectoryFile>(
    manifest: &Manifest,
    segment: Preallocated<F>,
    first: Lsn,
) -> io::Result<ActiveSegment<F>> {
    segment.file.write_at(&manifest.file_header(segment.id, first).encode(), 0)?;
    segment.file.sync()?;
    Ok(ActiveSegment {
        file: segment.file,
        id: segment.id,
        first,
        last: Lsn(first.0.saturating_sub(1)),
        offset: FIRST_BATCH,
        capacity: segment.capacity,
        previous_crc: 0,
    })
}

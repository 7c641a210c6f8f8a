//! The log: opened and read back, then written batch by batch.
//!
//! One thread writes. It shares the list of files and the liveness of records with background
//! compactions, behind a lock that is never held during a write of records.

mod files;
mod next_segment;
mod opening;
mod options;
mod segments;
mod shared;

use crate::directory::{Directory, DirectoryFile};
use crate::format::{Layout, Lsn, batch_len};
use crate::manifest::{Manifest, file_name};
use crate::recovery::{OpenError, OpenReport, ReadProgress, RecordSink, io_error, read_manifest};
use crate::write_batch::WriteBatch;
use crate::write_queue::WriteQueue;

pub use next_segment::{Preparation, Prepared};
pub(crate) use opening::open_segments;
pub(crate) use options::io_failed;
pub use options::{Durability, LogError, LogOptions, Written};
pub(crate) use segments::{LogEnd, Segments};
pub(crate) use shared::{Shared, lock};

/// A log in a directory.
#[derive(Debug)]
pub struct Log<D: Directory> {
    segments: Segments<D>,
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
        each: &mut dyn RecordSink,
        progress: &mut dyn FnMut(ReadProgress),
    ) -> Result<(Self, OpenReport), OpenError> {
        let names = directory.list().map_err(io_error("list the log's directory"))?;
        let manifest = match read_manifest(&directory, &names)? {
            Some(manifest) if manifest.log_id != options.log_id => {
                return Err(OpenError::other_log(&manifest, options.log_id));
            }
            Some(manifest) if manifest.is_replicated() => return Err(OpenError::is_replicated()),
            Some(manifest) => manifest,
            None if !options.create_if_missing => return Err(OpenError::no_manifest()),
            None => Manifest::new(options.log_id),
        };
        let (segments, report) = open_segments(directory, options, manifest, None, each, progress)?;
        Ok((Self { segments, synced: report.last, has_failed: false }, report))
    }

    /// Position of the last record that was read or written.
    #[must_use]
    pub fn last(&self) -> Lsn {
        lock(&self.segments.shared).written
    }

    pub(crate) fn segments(&self) -> &Segments<D> {
        &self.segments
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
        !self.segments.active.has_room(batch_len(Layout::Batches, batch.bytes()))
            || batch.format_version() > self.segments.format_version
    }

    fn try_write(&mut self, batch: &mut WriteBatch) -> Result<Written, LogError> {
        batch.remove_dropped();
        let durable = batch.last();
        let mut written = Written { durable, ..Written::default() };
        if let Some(first) = batch.records().first().map(|record| record.lsn) {
            // Recovery skips a position that is not above all before it, so it must never be written.
            let last = self.segments.active.last;
            assert!(first > last, "a batch begins at position {first}, behind position {last}");
            if batch.format_version() > self.segments.format_version {
                self.segments.raise_format_version(batch.format_version())?;
            }
            let len = batch_len(Layout::Batches, batch.encoder.len());
            if !self.segments.active.has_room(len) {
                self.segments.roll(first, len)?;
            }
            let Self { segments: Segments { active, options, .. }, synced, .. } = self;
            let crc = batch.encoder.seal(active.id, first..=durable, *synced, active.previous_crc);
            let doing = |what| {
                let name = file_name(active.id);
                move |error| LogError::Io { doing: format!("{what} {name}"), error }
            };
            let put =
                batch.encoder.write_to(&*active.file, active.offset).map_err(doing("write"))?;
            assert_eq!(put, len, "a batch takes the room that was made for it");
            // The offset moves only behind a batch that is durable: a failed sync ends the log.
            if options.durability == Durability::Fsync {
                active.file.sync().map_err(doing("sync"))?;
                *synced = durable;
            }
            active.offset += len;
            active.previous_crc = crc;
            written.bytes = len;
            written.records = batch.records().len() as u64;
        }
        let Segments { active, shared, .. } = &mut self.segments;
        active.last = active.last.max(durable);
        let mut shared = lock(shared);
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

    /// Background work that creates the next segment, once the active one is half full. The caller runs
    /// it on another thread and passes the result to [`Log::install_next_segment`].
    #[must_use]
    pub fn prepare_next_segment(&mut self) -> Option<Preparation<D>> {
        self.segments.prepare_next_segment()
    }

    /// Takes the segment that [`Log::prepare_next_segment`] asked for, `None` if it could not be
    /// created. The log continues in either case.
    ///
    /// # Panics
    /// If no segment was asked for.
    pub fn install_next_segment(&mut self, prepared: Option<Prepared<D>>) {
        self.segments.install_next_segment(prepared);
    }

    /// Closes the log and records its end in the manifest. The next opening then reports missing bytes
    /// as damage instead of a torn end, and knows that no crash happened.
    ///
    /// # Errors
    /// [`LogError`]; no record is lost then.
    pub fn close(mut self) -> Result<(), LogError> {
        if self.has_failed {
            return Err(LogError::Failed);
        }
        let end = Lsn(self.last().0 + 1);
        self.segments.seal(end)
    }
}

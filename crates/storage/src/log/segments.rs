//! The segments of a log: the active one, the next one, and the step from one to the other.

use std::io;
use std::sync::{Arc, Mutex};

use super::next_segment::{
    Capacity, NextSegment, Preallocated, Preparation, Prepared, preallocate_needed,
};
use super::options::{Durability, LogError, LogOptions, io_failed};
use super::shared::{Shared, lock};
use crate::directory::{Directory, DirectoryFile, is_full};
use crate::format::{FIRST_BATCH, FORMAT_VERSION, Layout, Lsn};
use crate::liveness::Liveness;
use crate::manifest::{FileEntry, Manifest, StoreError, file_name};
use crate::recovery::{OpenError, OpenReport, write_error};
use crate::replicated::{EntryIndex, EntryState, Term};

/// The segment that is written.
#[derive(Debug)]
pub(crate) struct ActiveSegment<F> {
    pub(crate) file: Arc<F>,
    pub(crate) id: u64,
    layout: Layout,
    /// First position of its range.
    first: Lsn,
    /// Last entry before it.
    before: (EntryIndex, Term),
    /// Last position that was written, or that is covered by a batch without records.
    pub(crate) last: Lsn,
    /// Offset of the next batch, in bytes.
    pub(crate) offset: u64,
    /// Size of the file, in bytes.
    pub(crate) capacity: u64,
    /// CRC of the batch before, 0 without one.
    pub(crate) previous_crc: u32,
}

impl<F> ActiveSegment<F> {
    /// True if no batch has been written to it.
    pub(crate) fn is_empty(&self) -> bool {
        self.offset == FIRST_BATCH
    }

    /// Index of the last entry before it.
    pub(crate) fn before(&self) -> EntryIndex {
        self.before.0
    }

    /// True if a batch of `len` bytes fits in.
    pub(crate) fn has_room(&self, len: u64) -> bool {
        self.offset.checked_add(len).is_some_and(|end| end <= self.capacity)
    }

    /// The entry of an unsealed segment in the manifest.
    fn entry(&self) -> FileEntry {
        let Self { id, first, layout, before, .. } = *self;
        let (end, bytes, compacted_at) = (Lsn(0), 0, Lsn(0));
        FileEntry { id, first, end, bytes, compacted_at, layout, before }
    }

    /// The manifest's entry of this segment, which is always its last one.
    fn entry_in<'a>(&self, manifest: &'a mut Manifest) -> &'a mut FileEntry {
        let last = manifest.files.last_mut().filter(|last| last.id == self.id);
        last.expect("the active segment is listed last")
    }
}

/// End of a log behind which a new segment begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogEnd {
    /// Number of the last files that are dropped. Background work may replace others at any time.
    pub(crate) dropped: usize,
    /// Bytes in use of the last file that is kept, if it is sealed or shortened here.
    pub(crate) sealed_at: Option<u64>,
    /// First position of the new segment.
    pub(crate) first: Lsn,
    /// Last entry before the new segment.
    pub(crate) before: (EntryIndex, Term),
}

/// The segments of a log and the state that it shares with background work.
pub(crate) struct Segments<D: Directory> {
    pub(crate) directory: Arc<D>,
    pub(crate) options: LogOptions,
    pub(crate) shared: Arc<Mutex<Shared<D::File>>>,
    pub(crate) active: ActiveSegment<D::File>,
    next_segment: NextSegment<D::File>,
    /// Version of the format in the manifest.
    pub(crate) format_version: u32,
}

impl<D: Directory> std::fmt::Debug for Segments<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segments").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<D: Directory> Segments<D> {
    /// Begins a new segment behind the ones that were read: no batch is ever written behind a crash.
    ///
    /// # Errors
    /// [`OpenError::Io`].
    pub(crate) fn start(
        directory: Arc<D>,
        options: LogOptions,
        mut manifest: Manifest,
        mut liveness: Liveness,
        entries: Option<EntryState>,
        report: &mut OpenReport,
    ) -> Result<Self, OpenError> {
        report.format_version = manifest.format_version;
        report.files = manifest.files.len();
        let first = Lsn(report.last.0 + 1);
        let none = (EntryIndex(0), Term(0));
        let before = entries.as_ref().map_or(none, |entries| entries.map.last_with_term());
        let total = manifest.files.iter().map(|file| file.bytes).sum();
        let id = manifest.take_file_id();
        let preallocated = preallocate_needed(&*directory, id, Capacity::new(&options, total, 0))
            .map_err(write_error("make a log file"))?;
        let active = activate(&manifest, preallocated, first, before)
            .map_err(write_error("begin a log file"))?;
        manifest.files.push(active.entry());
        liveness.open_file(first, None, Lsn(0));
        let stored = manifest.store(&*directory).map_err(StoreError::into_io);
        stored.map_err(write_error("write the manifest"))?;
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
            entries,
        };
        Ok(Self {
            directory,
            options,
            shared: Arc::new(Mutex::new(shared)),
            active,
            next_segment: NextSegment::None,
            format_version,
        })
    }

    /// Continues in a new segment that has room for `len` bytes of batches, and whose range begins at `first`.
    ///
    /// # Errors
    /// [`LogError`]; after [`LogError::Full`] the log goes on as it was.
    pub(crate) fn roll(&mut self, first: Lsn, len: u64) -> Result<(), LogError> {
        let preallocated = self.take_segment(FIRST_BATCH + len)?;
        let before = lock(&self.shared).last_entry();
        let end = match self.active.is_empty() {
            true => LogEnd { dropped: 1, sealed_at: None, first, before },
            false => LogEnd { dropped: 0, sealed_at: Some(self.active.offset), first, before },
        };
        self.continue_behind(end, preallocated)
    }

    /// Ends the log at `end` and begins a new segment there. Nothing is ever written behind a cut.
    ///
    /// # Errors
    /// As [`Segments::roll`].
    pub(crate) fn cut(&mut self, end: LogEnd) -> Result<(), LogError> {
        let preallocated = self.take_segment(FIRST_BATCH)?;
        self.continue_behind(end, preallocated)
    }

    fn continue_behind(
        &mut self,
        end: LogEnd,
        preallocated: Preallocated<D::File>,
    ) -> Result<(), LogError> {
        let LogEnd { dropped, sealed_at, first, before } = end;
        // A sealed segment counts as durable, so it is synced before the manifest says it is sealed.
        if self.options.durability != Durability::Fsync {
            self.active.file.sync().map_err(io_failed("sync a log file"))?;
        }
        let mut shared = lock(&self.shared);
        let mut manifest = shared.manifest.clone();
        self.active.entry_in(&mut manifest);
        let kept = manifest.files.len().checked_sub(dropped);
        let kept = kept.expect("only files that are listed are dropped");
        let dropped = manifest.files.split_off(kept);
        let mut sealed = None;
        if let (Some(bytes), Some(last)) = (sealed_at, manifest.files.last_mut()) {
            last.end = first;
            last.bytes = bytes;
            sealed = Some(*last);
        }
        let next = activate(&manifest, preallocated, first, before)
            .map_err(io_failed("begin a log file"))?;
        manifest.files.push(next.entry());
        if let Some(entries) = &shared.entries {
            // All that is committed is synced: sealed segments are.
            manifest.group.commit = manifest.group.commit.max(entries.commit);
        }
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
        for file in &dropped {
            liveness.remove_file(file.first);
        }
        if let Some(sealed) = sealed {
            liveness.seal_file(sealed.first, first);
        }
        liveness.open_file(first, None, Lsn(0));
        shared.manifest = manifest;
        shared.active = Arc::clone(&next.file);
        drop(shared);
        let old = std::mem::replace(&mut self.active, next);
        // Room is given back at once. If that fails, the next opening does it.
        for file in &dropped {
            let _ = self.directory.remove(&file.name());
        }
        if let Some(sealed) = sealed {
            let _ = match sealed.id == old.id {
                true => old.file.truncate(sealed.bytes),
                false => {
                    self.directory.open(&sealed.name()).and_then(|file| file.truncate(sealed.bytes))
                }
            };
        }
        Ok(())
    }

    /// Writes down that the log needs a newer version of the format, before the first record that needs it: an
    /// earlier build would leave out such a record.
    pub(crate) fn raise_format_version(&mut self, format_version: u32) -> Result<(), LogError> {
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
    /// it on another thread and passes the result to [`Segments::install_next_segment`].
    pub(crate) fn prepare_next_segment(&mut self) -> Option<Preparation<D>> {
        if !matches!(self.next_segment, NextSegment::None)
            || self.active.offset <= self.active.capacity / 2
        {
            return None;
        }
        self.next_segment = NextSegment::Preparing;
        let (id, capacity) = self.next_file(0);
        Some(Preparation { directory: Arc::clone(&self.directory), id, capacity })
    }

    /// Takes the segment that [`Segments::prepare_next_segment`] asked for, `None` if it could not be
    /// created. The log continues in either case.
    ///
    /// # Panics
    /// If no segment was asked for.
    pub(crate) fn install_next_segment(&mut self, prepared: Option<Prepared<D>>) {
        let is_expected = matches!(self.next_segment, NextSegment::Preparing);
        assert!(is_expected, "a segment that was not asked for");
        self.next_segment =
            prepared.map_or(NextSegment::Failed, |Prepared(segment)| NextSegment::Ready(segment));
    }

    /// Records the end of the log, `end`, in the manifest.
    pub(crate) fn seal(&mut self, end: Lsn) -> Result<(), LogError> {
        if self.options.durability != Durability::Fsync {
            self.active.file.sync().map_err(io_failed("sync a log file"))?;
        }
        let mut shared = lock(&self.shared);
        let commit = shared.entries.as_ref().map_or(EntryIndex(0), |entries| entries.commit);
        let manifest = &mut shared.manifest;
        manifest.group.commit = manifest.group.commit.max(commit);
        let entry = self.active.entry_in(manifest);
        entry.end = end;
        entry.bytes = self.active.offset;
        let stored = manifest.store(&*self.directory).map_err(StoreError::into_io);
        stored.map_err(io_failed("write the manifest"))
    }
}

/// Writes and syncs the header of a new segment.
fn activate<F: DirectoryFile>(
    manifest: &Manifest,
    segment: Preallocated<F>,
    first: Lsn,
    before: (EntryIndex, Term),
) -> io::Result<ActiveSegment<F>> {
    let layout = manifest.layout();
    segment.file.write_at(&manifest.file_header(segment.id, first, layout).encode(), 0)?;
    segment.file.sync()?;
    Ok(ActiveSegment {
        file: segment.file,
        id: segment.id,
        layout,
        first,
        before,
        last: Lsn(first.0.saturating_sub(1)),
        offset: FIRST_BATCH,
        capacity: segment.capacity,
        previous_crc: 0,
    })
}

//! Compaction: rewriting neighbouring sealed files of which little is needed.
//!
//! The new file covers the range of the old ones and holds the needed records in the same order, so that
//! reading the log back gives the same state. No file is written if none is needed. The new file is
//! complete and durable before the manifest lists it in place of the old ones, and they are removed
//! after that: a crash at any instant leaves the one or the others.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use crate::batch_encoder::BatchEncoder;
use crate::directory::{Directory, DirectoryFile, with_room};
use crate::format::{FIRST_BATCH, Flags, Layout, Lsn, RecordHeader};
use crate::limits::{
    LIVE_PERCENT_MIN, RECORDS_PER_LOCK, REWRITTEN_BATCH_BYTES, SMALL_SEGMENT_BYTES,
    SMALL_SEGMENTS_MAX,
};
use crate::liveness::{FileLiveness, RewrittenRecords};
use crate::log::{Durability, Log, Segments, Shared, lock};
use crate::manifest::{FileEntry, StoreError, file_name};
use crate::recovery::{read_all, scanned_file};
use crate::replicated::{EntryIndex, Term};
use crate::segment_reader::{Record, Scanned, scan};

/// Background work: rewriting some neighbouring files.
#[derive(Debug)]
pub struct Compaction<D: Directory> {
    directory: Arc<D>,
    shared: Arc<Mutex<Shared<D::File>>>,
    durability: Durability,
    files: Vec<FileEntry>,
    /// Position up to which all effects are considered, and perhaps those of later records.
    compacted_at: Lsn,
    log_id: u64,
}

/// Result of a compaction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Compacted {
    /// Number of files that were replaced.
    pub files: usize,
    /// Bytes of the replaced files.
    pub bytes_before: u64,
    /// Bytes of the file in their place; 0 if there is none.
    pub bytes_after: u64,
}

impl<D: Directory> Log<D> {
    /// The most worthwhile compaction now, if there is one. Only one may run at a time: ask for the next
    /// when this one has returned.
    #[must_use]
    pub fn compaction(&self) -> Option<Compaction<D>> {
        compaction(self.segments())
    }
}

/// The most worthwhile compaction of a log now.
pub(crate) fn compaction<D: Directory>(segments: &Segments<D>) -> Option<Compaction<D>> {
    let shared = lock(&segments.shared);
    let files = choose(&shared, segments.options.segment_bytes_max)?;
    let compacted_at = shared.considered();
    let log_id = shared.manifest.log_id;
    drop(shared);
    let directory = Arc::clone(&segments.directory);
    let shared = Arc::clone(&segments.shared);
    let durability = segments.options.durability;
    Some(Compaction { directory, shared, durability, files, compacted_at, log_id })
}

/// Chooses the neighbouring sealed files to rewrite.
fn choose<F>(shared: &Shared<F>, bytes_max: u64) -> Option<Vec<FileEntry>> {
    let mut best: Option<(u64, Vec<FileEntry>)> = None;
    let mut run: Vec<FileEntry> = Vec::new();
    let (mut kept, mut gain, mut small) = (0, 0, 0);
    let replicated = shared.entries.as_ref();
    let compactable = replicated.map(|entries| entries.compactable(&shared.manifest));
    for entry in &shared.manifest.files {
        let may_be_rewritten =
            entry.is_sealed() && compactable.as_ref().is_none_or(|files| files.contains(&entry.id));
        // A file without a position has no records.
        let is_hollow = may_be_rewritten && entry.is_range_empty();
        let has_records = may_be_rewritten && !is_hollow;
        let file = shared.liveness.file(entry.first).filter(|_| has_records);
        let sparse = is_hollow
            || file
                .is_some_and(|file| file.is_sparse(shared.dropping_compactions, LIVE_PERCENT_MIN));
        let is_small = file.is_some() && entry.bytes < SMALL_SEGMENT_BYTES;
        let live = file.map_or(0, |file| entry.bytes * file.live / file.all.max(1));
        if !(sparse || is_small) || kept + live > bytes_max {
            consider(&mut best, &mut run, gain, small);
            (kept, gain, small) = (0, 0, 0);
        }
        if sparse || is_small {
            run.push(*entry);
            kept += live;
            gain += if sparse { entry.bytes - live } else { 0 };
            small += usize::from(is_small);
        }
    }
    consider(&mut best, &mut run, gain, small);
    best.map(|(_, files)| files)
}

/// Keeps the run if it is the most worthwhile so far, and begins another.
fn consider(
    best: &mut Option<(u64, Vec<FileEntry>)>,
    run: &mut Vec<FileEntry>,
    gain: u64,
    small: usize,
) {
    let run = std::mem::take(run);
    let merges = if small >= SMALL_SEGMENTS_MAX { 1 } else { 0 };
    let worth = gain + merges;
    if worth > 0 && best.as_ref().is_none_or(|(most, _)| worth > *most) {
        *best = Some((worth, run));
    }
}

/// Key of an annotation: a later one with the same key replaces it.
fn subject<'a>(record: &Record<'a>) -> (Lsn, u8, &'a [u8]) {
    let about = record.payload.get(..8).unwrap_or(record.payload);
    (record.target, record.kind, about)
}

/// Header of a rewritten record: one whose own references have ended is marked as spent.
fn header(record: &Record<'_>, is_live: bool) -> RecordHeader {
    let is_spent = record.references > 0 && !is_live;
    RecordHeader {
        length: 0,
        lsn: record.lsn,
        target: record.target,
        reserved: record.reserved,
        kind: record.kind,
        flags: if is_spent { record.flags.and(Flags::SPENT) } else { record.flags },
        references: if is_spent { 0 } else { record.references },
    }
}

/// The new file.
struct Rewritten<F> {
    file: Option<F>,
    id: u64,
    bytes: u64,
    records: RewrittenRecords,
    /// Number of records in the file.
    all: u64,
    previous_crc: u32,
    batch: BatchEncoder,
    positions: (Lsn, Lsn),
}

impl<D: Directory> Compaction<D> {
    /// Runs the compaction.
    ///
    /// # Errors
    /// The system's error. The log is unchanged, except for files that the next opening removes.
    ///
    /// # Panics
    /// If another compaction has replaced the same files meanwhile.
    pub fn run(self) -> io::Result<Compacted> {
        let (Some(first), Some(last)) = (self.files.first(), self.files.last()) else {
            return Ok(Compacted::default());
        };
        let range = first.first..last.end;
        let mut out = Rewritten {
            file: None,
            id: 0,
            bytes: FIRST_BATCH,
            records: RewrittenRecords::new(range),
            all: 0,
            previous_crc: 0,
            batch: BatchEncoder::default(),
            positions: (Lsn(0), Lsn(0)),
        };
        let done = self.rewrite_all(&mut out);
        if let Err(StoreError::Unchanged(_)) = &done
            && out.file.is_some()
        {
            // Half a file would only take room. If it cannot be removed now, the next opening does it.
            let _ = self.directory.remove(&file_name(out.id));
        }
        done.map_err(StoreError::into_io)
    }

    /// Writes the new file and replaces the old ones by it.
    fn rewrite_all(&self, out: &mut Rewritten<D::File>) -> Result<Compacted, StoreError> {
        let seen = self.write_file(out).map_err(StoreError::Unchanged)?;
        self.replace(seen, out)
    }

    /// Writes the new file. Returns the number of records in the old ones.
    fn write_file(&self, out: &mut Rewritten<D::File>) -> io::Result<u64> {
        let mut seen = 0;
        for entry in &self.files {
            let file = self.directory.open(&entry.name())?;
            let mut bytes = read_all(&file)?;
            bytes.truncate(usize::try_from(entry.bytes).unwrap_or(usize::MAX));
            let mut records = Vec::new();
            let file = scanned_file(self.log_id, entry);
            let found = scan(&bytes, file, &mut |scanned| match scanned {
                Scanned::Record(record) => records.push(record),
                Scanned::Entry(_) => {}
            });
            seen += found.records;
            self.rewrite(&records, out)?;
        }
        self.write_batch(out)?;
        if let Some(file) = &out.file {
            file.sync()?;
        }
        Ok(seen)
    }

    fn rewrite(&self, records: &[Record<'_>], out: &mut Rewritten<D::File>) -> io::Result<()> {
        let mut latest: HashMap<_, Lsn> = HashMap::new();
        for record in records.iter().filter(|record| record.flags.has(Flags::ANNOTATES)) {
            latest.insert(subject(record), record.lsn);
        }
        for records in records.chunks(RECORDS_PER_LOCK) {
            let shared = lock(&self.shared);
            let headers: Vec<Option<RecordHeader>> = records
                .iter()
                .map(|record| {
                    let is_superseded = record.flags == Flags::ANNOTATES
                        && latest.get(&subject(record)) != Some(&record.lsn);
                    if is_superseded || !shared.liveness.is_needed(record, &out.records) {
                        return None;
                    }
                    let header = header(record, shared.liveness.references(record.lsn) > 0);
                    if header.references > 0 {
                        out.records.add(record.lsn, header.references);
                    }
                    Some(header)
                })
                .collect();
            drop(shared);
            for (record, header) in records.iter().zip(headers) {
                let Some(header) = header else { continue };
                if out.batch.count() == 0 {
                    out.positions.0 = record.lsn;
                }
                out.positions.1 = record.lsn;
                let copy = |bytes: &mut Vec<u8>| bytes.extend_from_slice(record.payload);
                out.batch.push(&header, copy, None);
                out.all += 1;
                if out.batch.len() >= REWRITTEN_BATCH_BYTES {
                    self.write_batch(out)?;
                }
            }
        }
        Ok(())
    }

    fn write_batch(&self, out: &mut Rewritten<D::File>) -> io::Result<()> {
        if out.batch.count() == 0 {
            return Ok(());
        }
        if out.file.is_none() {
            self.begin_file(out)?;
        }
        let Some(file) = &out.file else { return Ok(()) };
        let (first_of_batch, last_of_batch) = out.positions;
        out.previous_crc =
            out.batch.seal(out.id, first_of_batch..=last_of_batch, Lsn(0), out.previous_crc);
        let (batch, offset) = (&mut out.batch, out.bytes);
        out.bytes += with_room(&*self.directory, || batch.write_to(file, offset))?;
        out.batch.clear(2 * REWRITTEN_BATCH_BYTES);
        Ok(())
    }

    fn begin_file(&self, out: &mut Rewritten<D::File>) -> io::Result<()> {
        let mut shared = lock(&self.shared);
        out.id = shared.manifest.take_file_id();
        let start = out.records.range.start;
        let header = shared.manifest.file_header(out.id, start, Layout::Batches);
        drop(shared);
        let name = file_name(out.id);
        let file = with_room(&*self.directory, || self.directory.create(&name))?;
        let written = with_room(&*self.directory, || file.write_at(&header.encode(), 0));
        out.file = Some(file);
        written
    }

    /// Lists the new file in place of the old ones, and removes them.
    fn replace(&self, seen: u64, out: &mut Rewritten<D::File>) -> Result<Compacted, StoreError> {
        let range = &out.records.range;
        let before = self.files.first().map_or((EntryIndex(0), Term(0)), |first| first.before);
        let entry = out.file.is_some().then_some(FileEntry {
            id: out.id,
            first: range.start,
            end: range.end,
            bytes: out.bytes,
            compacted_at: self.compacted_at,
            layout: Layout::Batches,
            before,
        });
        let mut shared = lock(&self.shared);
        if self.durability != Durability::Fsync {
            // The records that ended others must be durable before those are removed.
            shared.active.sync().map_err(StoreError::Unchanged)?;
        }
        let mut manifest = shared.manifest.clone();
        let is_old = |file: &FileEntry| self.files.iter().any(|old| old.id == file.id);
        let at = manifest.files.iter().position(is_old);
        let at = at.expect("the files of a compaction are listed until it replaces them");
        manifest.files.retain(|file| !is_old(file));
        if let Some(entry) = entry {
            manifest.files.insert(at, entry);
        }
        let next = manifest.files.get(at + usize::from(entry.is_some()));
        let behind = next.map_or((EntryIndex(0), Term(0)), |next| next.before);
        if let Some(entries) = &shared.entries {
            // More was applied while the records were looked at, and the new file lacks what that has ended. All of it is
            // durable by now, so that no opening knows less of the commit.
            manifest.group.clean = manifest.group.clean.max(entries.applied);
        }
        manifest.store(&*self.directory)?;
        shared.manifest = manifest;
        if let Some(entries) = &mut shared.entries {
            entries.map.forget_up_to(behind);
        }
        assert!(out.all <= seen, "a compaction has written records that it has not read");
        if seen > out.all {
            shared.dropping_compactions += 1;
        }
        let mut file = FileLiveness::new(range.start, Some(range.end), self.compacted_at);
        for (lsn, references) in out.records.iter() {
            file.add(lsn, references, shared.liveness.references(lsn));
        }
        file.all = out.all;
        file.drops_at_compaction = Some(shared.dropping_compactions);
        for old in self.files.iter().filter(|old| !old.is_range_empty()) {
            shared.liveness.remove_file(old.first);
        }
        if entry.is_some() {
            shared.liveness.insert_file(range.start, file);
        }
        if shared.snapshots > 0 {
            // The last snapshot removes them; after a crash, the next opening does.
            shared.replaced.extend(self.files.iter().map(FileEntry::name));
            drop(shared);
        } else {
            drop(shared);
            for old in &self.files {
                self.directory.remove(&old.name()).map_err(StoreError::Unknown)?;
            }
        }
        Ok(Compacted {
            files: self.files.len(),
            bytes_before: self.files.iter().map(|file| file.bytes).sum(),
            bytes_after: entry.map_or(0, |entry| entry.bytes),
        })
    }
}

//! Getting space back: sealed files of which little is needed are written anew, their neighbours with
//! them, and files of which nothing is needed go.
//!
//! The new file covers the range of those it replaces and holds the same records in the same order,
//! without what no longer matters, so that reading the log back does not change. It is complete and
//! durable before the manifest lists it in their place, and they are removed after that: a crash at
//! any instant leaves the one or the others.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use crate::batch_encoder::Batch;
use crate::directory::{Directory, DirectoryFile, with_room};
use crate::format::{FIRST_BATCH, Flags, Lsn, RecordHeader};
use crate::limits::{
    LIVE_PERCENT_MIN, RECORDS_PER_LOCK, REWRITTEN_BATCH_BYTES, SMALL_SEGMENT_BYTES,
    SMALL_SEGMENTS_MAX,
};
use crate::liveness::{FileLiveness, Needs};
use crate::log::{Durability, Log, Shared, lock};
use crate::manifest::{FileEntry, StoreError, file_name};
use crate::recovery::read_all;
use crate::segment_reader::{Record, scan};

/// A piece of background work: some neighbouring files are to be written anew.
#[derive(Debug)]
pub struct Compaction<D: Directory> {
    directory: Arc<D>,
    shared: Arc<Mutex<Shared<D::File>>>,
    durability: Durability,
    files: Vec<FileEntry>,
    /// What ended by then is left out.
    clean: Lsn,
}

/// What a compaction did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Compacted {
    /// Files that are gone.
    pub files: usize,
    /// Octets that they used.
    pub bytes_before: u64,
    /// Octets of the file in their place; 0 without one.
    pub bytes_after: u64,
}

impl<D: Directory> Log<D> {
    /// What is worth compacting now, if anything is. One at a time: the next may be asked for when
    /// this one has run.
    #[must_use]
    pub fn compaction(&self) -> Option<Compaction<D>> {
        let shared = lock(self.shared());
        let files = choose(&shared, self.options().segment_bytes_max)?;
        let clean = shared.written;
        drop(shared);
        let (directory, shared) = (Arc::clone(self.directory()), Arc::clone(self.shared()));
        let durability = self.options().durability;
        Some(Compaction { directory, shared, durability, files, clean })
    }
}

/// The neighbouring sealed files that are to be written anew.
fn choose<F>(shared: &Shared<F>, bytes_max: u64) -> Option<Vec<FileEntry>> {
    let mut best: Option<(u64, Vec<FileEntry>)> = None;
    let mut run: Vec<FileEntry> = Vec::new();
    let (mut kept, mut gain, mut small) = (0, 0, 0);
    for entry in &shared.manifest.files {
        let file = shared.liveness.file(entry.first).filter(|_| entry.is_sealed());
        let sparse = file.is_some_and(|file| file.is_sparse(shared.dropped, LIVE_PERCENT_MIN));
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

/// Remembers the run if it is the most worthwhile so far, and begins another.
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

/// What an annotation is about.
fn subject<'a>(record: &Record<'a>) -> (Lsn, u8, &'a [u8]) {
    let about = record.payload.get(..8).unwrap_or(record.payload);
    (record.target, record.kind, about)
}

/// How a record is written anew: one whose own references have ended says so.
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

/// The file that takes the place of others.
struct Rewritten<F> {
    file: Option<F>,
    id: u64,
    bytes: u64,
    /// The records with references left and how many they began with.
    referred: Vec<(Lsn, u16)>,
    /// How many records there are in all.
    all: u64,
    previous_crc: u32,
    batch: Batch,
    range: (Lsn, Lsn),
}

impl<D: Directory> Compaction<D> {
    /// Does it.
    ///
    /// # Errors
    /// When the disk refuses; the log is as it was, but for octets that the next opening removes.
    pub fn run(self) -> io::Result<Compacted> {
        let (Some(first), Some(last)) = (self.files.first(), self.files.last()) else {
            return Ok(Compacted::default());
        };
        let (from, to) = (first.first, last.end);
        let mut out = Rewritten {
            file: None,
            id: 0,
            bytes: FIRST_BATCH,
            referred: Vec::new(),
            all: 0,
            previous_crc: 0,
            batch: Batch::default(),
            range: (Lsn(0), Lsn(0)),
        };
        let done = self.rewrite_all((from, to), &mut out);
        if let Err(StoreError::Unchanged(_)) = &done
            && out.file.is_some()
        {
            // Half a file would only take room. If it cannot go now, the next opening removes it.
            let _ = self.directory.remove(&file_name(out.id));
        }
        done.map_err(StoreError::into_io)
    }

    /// Writes the new file and lets it take the place of the old ones.
    fn rewrite_all(
        &self,
        (from, to): (Lsn, Lsn),
        out: &mut Rewritten<D::File>,
    ) -> Result<Compacted, StoreError> {
        let seen = self.write_file((from, to), out).map_err(StoreError::Unchanged)?;
        self.replace(from, to, seen, out)
    }

    /// Writes the new file; how many records there were before.
    fn write_file(&self, (from, to): (Lsn, Lsn), out: &mut Rewritten<D::File>) -> io::Result<u64> {
        let mut seen = 0;
        for entry in &self.files {
            let file = self.directory.open(&entry.name())?;
            let mut octets = read_all(&file)?;
            octets.truncate(usize::try_from(entry.bytes).unwrap_or(usize::MAX));
            let mut records = Vec::new();
            let found =
                scan(&octets, entry.id, entry.first, true, &mut |record| records.push(record));
            seen += found.records;
            self.rewrite(&records, (from, to), out)?;
        }
        self.write_batch(out, from)?;
        if let Some(file) = &out.file {
            file.sync()?;
        }
        Ok(seen)
    }

    fn rewrite(
        &self,
        records: &[Record<'_>],
        (from, to): (Lsn, Lsn),
        out: &mut Rewritten<D::File>,
    ) -> io::Result<()> {
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
                    let is_needed =
                        !is_superseded && shared.liveness.is_needed(&Needs::of(record), from, to);
                    let is_live = shared.liveness.references(record.lsn) > 0;
                    is_needed.then(|| header(record, is_live))
                })
                .collect();
            drop(shared);
            for (record, header) in records.iter().zip(headers) {
                let Some(header) = header else { continue };
                if out.batch.count() == 0 {
                    out.range.0 = record.lsn;
                }
                out.range.1 = record.lsn;
                let copy = |octets: &mut Vec<u8>| octets.extend_from_slice(record.payload);
                out.batch.push(&header, copy, None);
                out.all += 1;
                if header.references > 0 {
                    out.referred.push((record.lsn, header.references));
                }
                if out.batch.len() >= REWRITTEN_BATCH_BYTES {
                    self.write_batch(out, from)?;
                }
            }
        }
        Ok(())
    }

    fn write_batch(&self, out: &mut Rewritten<D::File>, first: Lsn) -> io::Result<()> {
        if out.batch.count() == 0 {
            return Ok(());
        }
        if out.file.is_none() {
            self.begin_file(out, first)?;
        }
        let Some(file) = &out.file else { return Ok(()) };
        out.previous_crc = out.batch.seal(out.id, out.range, Lsn(0), out.previous_crc);
        let (batch, offset) = (&mut out.batch, out.bytes);
        out.bytes += with_room(&*self.directory, || batch.write_to(file, offset))?;
        out.batch.clear(2 * REWRITTEN_BATCH_BYTES);
        Ok(())
    }

    fn begin_file(&self, out: &mut Rewritten<D::File>, first: Lsn) -> io::Result<()> {
        let mut shared = lock(&self.shared);
        out.id = shared.manifest.take_file_id();
        let header = shared.manifest.file_header(out.id, first);
        drop(shared);
        let name = file_name(out.id);
        let file = with_room(&*self.directory, || self.directory.create(&name))?;
        let written = with_room(&*self.directory, || file.write_at(&header.encode(), 0));
        out.file = Some(file);
        written
    }

    /// Lists the new file in place of the old ones, and removes these.
    fn replace(
        &self,
        from: Lsn,
        to: Lsn,
        seen: u64,
        out: &mut Rewritten<D::File>,
    ) -> Result<Compacted, StoreError> {
        let entry = out.file.is_some().then_some(FileEntry {
            id: out.id,
            first: from,
            end: to,
            bytes: out.bytes,
            clean: self.clean,
        });
        let mut shared = lock(&self.shared);
        if self.durability != Durability::Fsync {
            // What told that records may go must be there when they are not.
            shared.active.sync().map_err(StoreError::Unchanged)?;
        }
        let mut manifest = shared.manifest.clone();
        let is_old = |file: &FileEntry| self.files.iter().any(|old| old.id == file.id);
        let at = manifest.files.iter().position(is_old).unwrap_or(manifest.files.len());
        manifest.files.retain(|file| !is_old(file));
        if let Some(entry) = entry {
            manifest.files.insert(at, entry);
        }
        manifest.store(&*self.directory)?;
        shared.manifest = manifest;
        if seen > out.all {
            shared.dropped += 1;
        }
        let mut file = FileLiveness::new(from, Some(to), self.clean);
        for (lsn, references) in std::mem::take(&mut out.referred) {
            file.add(lsn, references, shared.liveness.references(lsn));
        }
        file.all = out.all;
        file.looked_at = Some(shared.dropped);
        for old in &self.files {
            shared.liveness.remove_file(old.first);
        }
        if entry.is_some() {
            shared.liveness.insert_file(from, file);
        }
        drop(shared);
        for old in &self.files {
            self.directory.remove(&old.name()).map_err(StoreError::Unknown)?;
        }
        Ok(Compacted {
            files: self.files.len(),
            bytes_before: self.files.iter().map(|file| file.bytes).sum(),
            bytes_after: entry.map_or(0, |entry| entry.bytes),
        })
    }
}

//! Recovery: reading the files of a log in order, and reporting damage.
//!
//! The log is not changed here. Copies of damaged bytes are written to files of their own, except by
//! a check.

mod record_sink;
mod references;
mod report;

use std::io;

use crate::directory::{Directory, DirectoryFile};
use crate::format::{
    FILE_HEADER_BYTES, FILE_VERSION, FIRST_BATCH, FORMAT_VERSION_REPLICATED, FileHeader, Flags,
    HeaderFault, Lsn,
};
use crate::liveness::Liveness;
use crate::manifest::{FileEntry, MANIFEST, Manifest, ManifestFault, file_id};
use crate::replicated::EntryReading;
use crate::segment_reader::{Corruption, Scanned, ScannedFile, scan};

pub use record_sink::{IgnoreRecords, RecordSink};
pub use references::References;
pub use report::{Damage, OpenError, OpenReport, ReadProgress};
pub(crate) use report::{io_error, write_error};

pub(crate) fn read_manifest<D: Directory>(
    directory: &D,
    names: &[String],
) -> Result<Option<Manifest>, OpenError> {
    if names.iter().all(|name| name != MANIFEST) {
        let files = names.iter().filter(|name| file_id(name).is_some());
        for (count, name) in files.enumerate() {
            // A crash during the creation of a log leaves one unused file.
            if count > 0 || !is_unused(directory, name)? {
                let problem = format!("missing, though there is {name}; nothing is changed");
                return Err(OpenError::Manifest { file: MANIFEST, problem });
            }
        }
        return Ok(None);
    }
    let file = directory.open(MANIFEST).map_err(io_error("open the manifest"))?;
    let bytes = read_all(&file).map_err(io_error("read the manifest"))?;
    match Manifest::decode(&bytes) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(ManifestFault::Damaged) => {
            let problem = "damaged; nothing is changed".to_owned();
            Err(OpenError::Manifest { file: MANIFEST, problem })
        }
        Err(ManifestFault::Version(version)) => Err(OpenError::Version {
            file: MANIFEST.to_owned(),
            version,
            known: FORMAT_VERSION_REPLICATED,
        }),
    }
}

/// True if nothing was ever written behind the header of a log file.
fn is_unused<D: Directory>(directory: &D, name: &str) -> Result<bool, OpenError> {
    let bytes = directory.open(name).and_then(|file| read_all(&file));
    let bytes = bytes.map_err(io_error(format!("read {name}")))?;
    Ok(bytes.iter().skip(FIRST_BATCH as usize).all(|byte| *byte == 0))
}

pub(crate) fn read_all<F: DirectoryFile>(file: &F) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_into(file, &mut bytes)?;
    Ok(bytes)
}

/// Replaces `bytes` by the content of a file.
fn read_into<F: DirectoryFile>(file: &F, bytes: &mut Vec<u8>) -> io::Result<()> {
    let size = usize::try_from(file.size()?).map_err(io::Error::other)?;
    // Not cleared first: `resize` would then zero all bytes, which the read overwrites anyway.
    bytes.resize(size, 0);
    let count = file.read_at(bytes, 0)?;
    bytes.truncate(count);
    Ok(())
}

/// Treatment of damaged bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DamageHandling {
    /// Copies are written to files of their own.
    Preserve,
    /// The bytes are only reported.
    ReportOnly,
}

/// Refuses a log with a file that a newer version has written, before anything is changed.
///
/// # Errors
/// [`OpenError::Version`], or [`OpenError::Io`] if a file cannot be read.
pub(crate) fn refuse_newer_files<D: Directory>(
    directory: &D,
    manifest: &Manifest,
) -> Result<(), OpenError> {
    for file in manifest.files.iter().map(FileEntry::name) {
        let mut header = [0; FILE_HEADER_BYTES];
        match directory.open(&file).and_then(|opened| opened.read_at(&mut header, 0)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(io_error(format!("read {file}"))(error)),
        }
        if let Err(HeaderFault::Version(version)) = FileHeader::decode(&header) {
            return Err(OpenError::Version { file, version, known: FILE_VERSION });
        }
    }
    Ok(())
}

/// Log files that the manifest does not list: created in advance, incomplete, or left over.
pub(crate) fn unlisted<'a>(
    names: &'a [String],
    manifest: &Manifest,
) -> impl Iterator<Item = &'a String> {
    let is_listed = |id| manifest.files.iter().any(|file| file.id == id);
    names.iter().filter(move |name| file_id(name).is_some_and(|id| !is_listed(id)))
}

/// Unlisted files of another log, which may need them: they must not be removed.
pub(crate) fn foreign_files<D: Directory>(
    directory: &D,
    names: &[String],
    manifest: &Manifest,
) -> Result<Vec<Damage>, OpenError> {
    let mut foreign = Vec::new();
    for name in unlisted(names, manifest) {
        let mut block = [0; FIRST_BATCH as usize];
        let read = |file: D::File| Ok((file.read_at(&mut block, 0)?, file.size()?));
        let read = directory.open(name).and_then(read);
        let (_, len) = read.map_err(io_error(format!("read {name}")))?;
        if FileHeader::decode(&block).is_ok_and(|header| header.log_id != manifest.log_id) {
            let problem = "belongs to another log and is left here";
            let (file, offset, after) = (name.clone(), 0, Lsn(0));
            foreign.push(Damage { file, offset, len, after, problem, kept_in: None, record: None });
        }
    }
    Ok(foreign)
}

/// Reads all files of a log, in order. The entry of an unsealed one is sealed at its end. Calls `progress`
/// after each file.
pub(crate) fn read_files<D: Directory>(
    directory: &D,
    manifest: &mut Manifest,
    handling: DamageHandling,
    mut entries: Option<&mut EntryReading>,
    report: &mut OpenReport,
    each: &mut dyn RecordSink,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Liveness, OpenError> {
    let mut liveness = Liveness::default();
    let sizes: Vec<u64> =
        manifest.files.iter().map(|entry| bytes_to_read(directory, entry)).collect();
    let mut done = ReadProgress {
        files_total: sizes.len(),
        bytes_total: sizes.iter().sum(),
        ..ReadProgress::default()
    };
    // One buffer for all files: fresh memory costs as much as reading into it.
    let mut bytes = Vec::new();
    for (entry, size) in manifest.files.iter_mut().zip(sizes) {
        let mut reading = Reading {
            log_id: manifest.log_id,
            liveness: &mut liveness,
            entries: entries.as_deref_mut(),
            report,
        };
        let FileRead { corruptions, problem } =
            read_file(directory, entry, &mut bytes, &mut reading, each)?;
        for corruption in corruptions {
            let end = (corruption.offset + corruption.len).min(bytes.len());
            let wrong = bytes.get(corruption.offset..end).unwrap_or_default();
            let kept_in = match handling {
                DamageHandling::Preserve => {
                    preserve(directory, &entry.name(), corruption.offset, wrong)?
                }
                DamageHandling::ReportOnly => None,
            };
            report.damages.push(Damage {
                file: entry.name(),
                offset: corruption.offset as u64,
                len: corruption.len as u64,
                after: corruption.after,
                problem,
                kept_in,
                record: corruption.record,
            });
        }
        done.files += 1;
        done.bytes += size;
        done.records = report.records;
        progress(done);
    }
    each.end(&mut References::at_once(&mut liveness));
    Ok(liveness)
}

/// Bytes of a file to read; 0 if the file is missing.
fn bytes_to_read<D: Directory>(directory: &D, entry: &FileEntry) -> u64 {
    if entry.is_sealed() {
        return entry.bytes;
    }
    directory.open(&entry.name()).and_then(|file| file.size()).unwrap_or(0)
}

/// Damage found in a file.
struct FileRead {
    corruptions: Vec<Corruption>,
    problem: &'static str,
}

/// State of reading the files of a log.
struct Reading<'a> {
    log_id: u64,
    liveness: &'a mut Liveness,
    /// The entries of a replicated log.
    entries: Option<&'a mut EntryReading>,
    report: &'a mut OpenReport,
}

/// Reads one file of the log into `bytes`. The entry of an unsealed one is sealed at its end.
fn read_file<D: Directory>(
    directory: &D,
    entry: &mut FileEntry,
    bytes: &mut Vec<u8>,
    reading: &mut Reading<'_>,
    each: &mut dyn RecordSink,
) -> Result<FileRead, OpenError> {
    let Reading { log_id, liveness, entries, report } = reading;
    let (log_id, name) = (*log_id, entry.name());
    let is_sealed = entry.is_sealed();
    // That of the open file is not, unless the manifest is damaged.
    let is_range_empty = entry.is_range_empty();
    if !is_range_empty {
        liveness.open_file(entry.first, is_sealed.then_some(entry.end), entry.compacted_at);
    }
    if let Some(entries) = entries {
        entries.begin_file(entry);
    }
    match directory.open(&name) {
        Ok(file) => read_into(&file, bytes).map_err(io_error(format!("read {name}")))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => bytes.clear(),
        Err(error) => return Err(io_error(format!("open {name}"))(error)),
    }
    let used =
        if is_sealed { usize::try_from(entry.bytes).unwrap_or(usize::MAX) } else { bytes.len() };
    let mut corruptions = Vec::new();
    let mut problem = "bytes that were durable have changed";
    let mut counted = bytes.get(..used.min(bytes.len())).unwrap_or_default();
    match FileHeader::decode(bytes) {
        Ok(header)
            if header.log_id == log_id
                && header.file_id == entry.id
                && header.layout == entry.layout => {}
        Err(HeaderFault::Version(version)) => {
            return Err(OpenError::Version { file: name, version, known: FILE_VERSION });
        }
        Ok(_) => {
            problem = "belongs to another log";
            counted = &[];
            corruptions.push(Corruption::of_unknown(0, bytes.len(), report.last));
        }
        Err(HeaderFault::Missing) if bytes.is_empty() => {
            problem = "missing";
            corruptions.push(Corruption::of_unknown(0, 0, report.last));
        }
        // The batches can be read without the header: their CRCs contain the file's id.
        Err(HeaderFault::Missing | HeaderFault::Damaged) => {
            corruptions.push(Corruption::of_unknown(0, FIRST_BATCH as usize, report.last));
        }
    }
    let file = scanned_file(log_id, entry);
    let found = scan(counted, file, &mut |scanned| {
        let record = match scanned {
            Scanned::Record(record) => record,
            Scanned::Entry(of) => {
                if let Some(entries) = entries.as_mut() {
                    entries.begin_entry(entry.id, &of);
                }
                return;
            }
        };
        if entries.as_ref().is_some_and(|entries| !entries.is_committed()) {
            return;
        }
        liveness.add(record.lsn, record.references);
        if record.flags.has(Flags::RELEASES) {
            liveness.release(record.target);
        }
        each.record(record, &mut References::at_once(liveness));
    });
    if is_sealed && bytes.len() < used && !bytes.is_empty() {
        corruptions.push(Corruption::of_unknown(bytes.len(), used - bytes.len(), found.last));
    }
    corruptions.extend(found.corruptions);
    report.records += found.records;
    report.bytes += found.end as u64;
    report.torn_bytes += found.torn_bytes as u64;
    report.last = report.last.max(found.last);
    if is_sealed {
        report.last = report.last.max(Lsn(entry.end.0.saturating_sub(1)));
    } else {
        report.was_open = true;
        entry.end = Lsn(found.last.0 + 1);
        entry.bytes = (found.end as u64).max(FIRST_BATCH);
        if !is_range_empty {
            liveness.seal_file(entry.first, entry.end);
        }
    }
    Ok(FileRead { corruptions, problem })
}

/// A file of the log `log_id` as the manifest lists it.
pub(crate) fn scanned_file(log_id: u64, entry: &FileEntry) -> ScannedFile {
    ScannedFile {
        id: entry.id,
        log_id,
        layout: entry.layout,
        first: entry.first,
        before: entry.before.0.0,
        is_sealed: entry.is_sealed(),
    }
}

/// Copies damaged bytes to a file of their own, for an examination.
fn preserve<D: Directory>(
    directory: &D,
    name: &str,
    offset: usize,
    bytes: &[u8],
) -> Result<Option<String>, OpenError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let kept = format!("{name}.{offset}.damaged");
    match directory.create(&kept) {
        Ok(file) => {
            file.write_at(bytes, 0).map_err(write_error(format!("write {kept}")))?;
            file.sync().map_err(write_error(format!("sync {kept}")))?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(write_error(format!("make {kept}"))(error)),
    }
    Ok(Some(kept))
}

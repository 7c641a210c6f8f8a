//! Recovery: reading the files of a log in order, and reporting damage.
//!
//! The log is not changed here. Copies of damaged bytes are written to files of their own, except by
//! a check.

use std::io;

use crate::directory::{Directory, DirectoryFile};
use crate::format::{
    FILE_HEADER_BYTES, FILE_VERSION, FIRST_BATCH, FORMAT_VERSION_REPLICATED, FileHeader, Flags,
    HeaderFault, Lsn,
};
use crate::liveness::Liveness;
use crate::manifest::{FileEntry, MANIFEST, Manifest, ManifestFault, file_id};
use crate::replicated::EntryReading;
use crate::segment_reader::{Corruption, Record, Scanned, ScannedFile, scan};

/// Reason for which a log cannot be opened. Nothing was changed.
#[derive(thiserror::Error, Debug)]
pub enum OpenError {
    /// An operation on the disk failed.
    #[error("{doing}: {error}")]
    Io {
        /// The operation.
        doing: String,
        /// The system's error.
        error: io::Error,
    },
    /// A file was written by a newer version of Leveret.
    #[error("{file} has format version {version}, but this Leveret knows version {known}")]
    Version {
        /// Name of the file.
        file: String,
        /// Version of its format.
        version: u32,
        /// Newest version that this program knows.
        known: u32,
    },
    /// The manifest is missing, damaged, or that of another log.
    #[error("{file}: {problem}")]
    Manifest {
        /// Name of the file.
        file: &'static str,
        /// The problem.
        problem: String,
    },
    /// The hard state of a replicated log is lost or that of another member: the member must not vote, and is
    /// rebuilt under a new id.
    #[error("raft: {problem}; the member does not vote")]
    DoesNotVote {
        /// The problem.
        problem: String,
    },
}

/// Damage to bytes that were durable. Copies of the bytes are kept in a file of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Name of the damaged file.
    pub file: String,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length, in bytes.
    pub len: u64,
    /// Last position before the damage that could be read.
    pub after: Lsn,
    /// The problem.
    pub problem: &'static str,
    /// Name of the file with the copies, if there were bytes to copy.
    pub kept_in: Option<String>,
    /// Position and kind of the record that was damaged, as far as they can be read.
    pub record: Option<(Lsn, u8)>,
}

impl OpenError {
    pub(crate) fn no_manifest() -> Self {
        Self::Manifest { file: MANIFEST, problem: "missing".to_owned() }
    }

    /// Error of opening a replicated log as one without a group.
    pub(crate) fn is_replicated() -> Self {
        let problem = "belongs to a replicated log; nothing is changed".to_owned();
        Self::Manifest { file: MANIFEST, problem }
    }

    /// Error of opening a log without a group as a replicated one.
    pub(crate) fn is_not_replicated() -> Self {
        let problem = "belongs to a log without a group; nothing is changed".to_owned();
        Self::Manifest { file: MANIFEST, problem }
    }

    pub(crate) fn does_not_vote(problem: impl Into<String>) -> Self {
        Self::DoesNotVote { problem: problem.into() }
    }

    /// Error for the manifest of another log.
    pub(crate) fn other_log(manifest: &Manifest, log_id: u64) -> Self {
        let problem = format!(
            "belongs to log {}, and this is log {log_id}; nothing is changed",
            manifest.log_id
        );
        Self::Manifest { file: MANIFEST, problem }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}: {}, {} bytes", self.file, self.offset, self.problem, self.len)?;
        match &self.kept_in {
            Some(name) => write!(f, ", kept in {name}"),
            None => Ok(()),
        }
    }
}

/// Result of opening a log.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OpenReport {
    /// Version of the log's format: the oldest that suffices for its records. A new log has the oldest of all.
    pub format_version: u32,
    /// Number of files read.
    pub files: usize,
    /// Bytes read.
    pub bytes: u64,
    /// Number of records read.
    pub records: u64,
    /// Last position in the log.
    pub last: Lsn,
    /// Bytes at the end that a crash has left half written.
    pub torn_bytes: u64,
    /// True if the log was not closed: the last changes before a crash may be missing.
    pub was_open: bool,
    /// Damage to bytes that were durable.
    pub damages: Vec<Damage>,
}

/// Progress of reading a log.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadProgress {
    /// Number of files read.
    pub files: usize,
    /// Number of all files.
    pub files_total: usize,
    /// Bytes read, with the empty rest of the segment that was written last.
    pub bytes: u64,
    /// Bytes of all files.
    pub bytes_total: u64,
    /// Number of records read.
    pub records: u64,
}

impl ReadProgress {
    /// Share of the bytes that have been read, in percent.
    #[must_use]
    pub fn percent(&self) -> u64 {
        (self.bytes.saturating_mul(100)).checked_div(self.bytes_total).unwrap_or(100)
    }
}

/// References of the records that have been read. The callback of a reading ends them.
#[derive(Debug)]
pub struct References<'a>(Ended<'a>);

/// Place of the references that end.
#[derive(Debug)]
enum Ended<'a> {
    /// They end at once.
    AtOnce(&'a mut Liveness),
    /// They end once the entry is applied.
    Later(&'a mut Vec<Lsn>),
}

impl<'a> References<'a> {
    /// References that end at once.
    pub(crate) fn at_once(liveness: &'a mut Liveness) -> Self {
        Self(Ended::AtOnce(liveness))
    }

    /// References that are noted in `ended`.
    pub(crate) fn later(ended: &'a mut Vec<Lsn>) -> Self {
        Self(Ended::Later(ended))
    }

    /// Ends one reference of the record at `lsn`.
    pub fn release(&mut self, lsn: Lsn) {
        match &mut self.0 {
            Ended::AtOnce(liveness) => liveness.release(lsn),
            Ended::Later(ended) => ended.push(lsn),
        }
    }
}

pub(crate) fn io_error(doing: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
    let doing = doing.into();
    |error| OpenError::Io { doing, error }
}

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
    each: &mut dyn FnMut(Record<'_>, &mut References<'_>),
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
    each: &mut dyn FnMut(Record<'_>, &mut References<'_>),
) -> Result<FileRead, OpenError> {
    let Reading { log_id, liveness, entries, report } = reading;
    let (log_id, name) = (*log_id, entry.name());
    let is_sealed = entry.is_sealed();
    if !entry.is_range_empty() {
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
        each(record, &mut References::at_once(liveness));
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
        liveness.seal_file(entry.first, entry.end);
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
            file.write_at(bytes, 0).map_err(io_error(format!("write {kept}")))?;
            file.sync().map_err(io_error(format!("sync {kept}")))?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io_error(format!("make {kept}"))(error)),
    }
    Ok(Some(kept))
}

//! Reading a log back: its files in order, what they hold, and what is wrong with them.
//!
//! Nothing of the log is changed here; damaged octets are put aside in files of their own, unless one
//! only wants to know.

use std::io;

use crate::directory::{Directory, DirectoryFile};
use crate::format::{FIRST_BATCH, FORMAT_VERSION, FileHeader, Flags, HeaderFault, Lsn};
use crate::liveness::Liveness;
use crate::manifest::{FileEntry, MANIFEST, Manifest, ManifestFault, file_id};
use crate::segment_reader::{Record, Rot, scan};

/// Why a log cannot be opened. Nothing was changed.
#[derive(thiserror::Error, Debug)]
pub enum OpenError {
    /// The disk refuses.
    #[error("{doing}: {error}")]
    Io {
        /// What was tried.
        doing: String,
        /// What the system says.
        error: io::Error,
    },
    /// A file was written by a version of Leveret that knows more.
    #[error("{file} has format version {version}, but this Leveret knows version {FORMAT_VERSION}")]
    Version {
        /// Which.
        file: String,
        /// Its version.
        version: u32,
    },
    /// The list of files is damaged or gone.
    #[error("{file}: {problem}")]
    Manifest {
        /// Which.
        file: &'static str,
        /// What is wrong.
        problem: String,
    },
}

/// Damage to what had been durable. The octets are kept in a file of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// Where in it, in octets.
    pub offset: u64,
    /// How many octets.
    pub len: u64,
    /// The last position before it that could be read.
    pub after: Lsn,
    /// What is wrong.
    pub problem: &'static str,
    /// Where the octets were put, if there were any.
    pub kept_in: Option<String>,
    /// The record that it seems to be: its position and its kind.
    pub record: Option<(Lsn, u8)>,
}

impl OpenError {
    pub(crate) fn no_manifest() -> Self {
        Self::Manifest { file: MANIFEST, problem: "missing".to_owned() }
    }

    /// The manifest is that of another log.
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
        write!(f, "{} at {}: {}, {} octets", self.file, self.offset, self.problem, self.len)?;
        match &self.kept_in {
            Some(name) => write!(f, ", kept in {name}"),
            None => Ok(()),
        }
    }
}

/// What opening a log found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OpenReport {
    /// Files read.
    pub files: usize,
    /// Octets read.
    pub bytes: u64,
    /// Records read.
    pub records: u64,
    /// The last position.
    pub last: Lsn,
    /// Octets at the end that a crash had left half written.
    pub torn_bytes: u64,
    /// Whether the log had not been closed: what was done last before a crash may not be in it.
    pub was_open: bool,
    /// Damage to what had been durable.
    pub damages: Vec<Damage>,
}

/// How far the reading of a log is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadProgress {
    /// Files read.
    pub files: usize,
    /// Files that there are.
    pub files_total: usize,
    /// Octets read; of the file that was written last the empty rest counts, too.
    pub bytes: u64,
    /// Octets that there are.
    pub bytes_total: u64,
    /// Records read.
    pub records: u64,
}

impl ReadProgress {
    /// How much of it is done, in percent.
    #[must_use]
    pub fn percent(&self) -> u64 {
        (self.bytes.saturating_mul(100)).checked_div(self.bytes_total).unwrap_or(100)
    }
}

/// Ends references while a log is read back.
#[derive(Debug)]
pub struct References<'a>(&'a mut Liveness);

impl References<'_> {
    /// One reference of the record at `lsn` has ended.
    pub fn release(&mut self, lsn: Lsn) {
        self.0.release(lsn);
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
            // A log that was being begun has one file, which holds nothing.
            if count > 0 || !holds_nothing(directory, name)? {
                let problem = format!("missing, though there is {name}; nothing is changed");
                return Err(OpenError::Manifest { file: MANIFEST, problem });
            }
        }
        return Ok(None);
    }
    let file = directory.open(MANIFEST).map_err(io_error("open the manifest"))?;
    let octets = read_all(&file).map_err(io_error("read the manifest"))?;
    match Manifest::decode(&octets) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(ManifestFault::Damaged) => {
            let problem = "damaged; nothing is changed".to_owned();
            Err(OpenError::Manifest { file: MANIFEST, problem })
        }
        Err(ManifestFault::Version(version)) => {
            Err(OpenError::Version { file: MANIFEST.to_owned(), version })
        }
    }
}

/// Whether nothing was ever written behind the header of a log file.
fn holds_nothing<D: Directory>(directory: &D, name: &str) -> Result<bool, OpenError> {
    let octets = directory.open(name).and_then(|file| read_all(&file));
    let octets = octets.map_err(io_error(format!("read {name}")))?;
    Ok(octets.iter().skip(FIRST_BATCH as usize).all(|octet| *octet == 0))
}

pub(crate) fn read_all<F: DirectoryFile>(file: &F) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    read_into(file, &mut octets)?;
    Ok(octets)
}

/// Replaces `octets` by those of a file.
fn read_into<F: DirectoryFile>(file: &F, octets: &mut Vec<u8>) -> io::Result<()> {
    let size = usize::try_from(file.size()?).map_err(io::Error::other)?;
    // Not cleared before: what is there is overwritten.
    octets.resize(size, 0);
    let count = file.read_at(octets, 0)?;
    octets.truncate(count);
    Ok(())
}

/// What becomes of damaged octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Damaged {
    /// They are put aside.
    Kept,
    /// They are only told of.
    Told,
}

/// Reads the log with that id without changing anything, and hands every record to `each`, in order.
///
/// # Errors
/// When there is none or another one, it cannot be read, or it was written by a newer version.
pub fn check<D: Directory>(
    directory: &D,
    log_id: u64,
    each: &mut dyn FnMut(Record<'_>, &mut References<'_>),
) -> Result<OpenReport, OpenError> {
    let names = directory.list().map_err(io_error("list the log's directory"))?;
    let Some(mut manifest) = read_manifest(directory, &names)? else {
        return Err(OpenError::no_manifest());
    };
    if manifest.log_id != log_id {
        return Err(OpenError::other_log(&manifest, log_id));
    }
    let mut report = OpenReport { files: manifest.files.len(), ..OpenReport::default() };
    read_files(directory, &mut manifest, Damaged::Told, &mut report, each, &mut |_| {})?;
    report.damages.extend(foreign_files(directory, &names, &manifest)?);
    Ok(report)
}

/// The log files that the manifest does not list: made ahead, half made, or left over.
pub(crate) fn unlisted<'a>(
    names: &'a [String],
    manifest: &Manifest,
) -> impl Iterator<Item = &'a String> {
    let is_listed = |id| manifest.files.iter().any(|file| file.id == id);
    names.iter().filter(move |name| file_id(name).is_some_and(|id| !is_listed(id)))
}

/// Unlisted files that another log misses, perhaps: they are not this one's to remove.
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

/// Reads all files of a log, in order; one that was being written is sealed where it ends. After each
/// of them `progress` is told.
pub(crate) fn read_files<D: Directory>(
    directory: &D,
    manifest: &mut Manifest,
    damaged: Damaged,
    report: &mut OpenReport,
    each: &mut dyn FnMut(Record<'_>, &mut References<'_>),
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Liveness, OpenError> {
    let mut liveness = Liveness::default();
    let sizes: Vec<u64> = manifest.files.iter().map(|entry| size(directory, entry)).collect();
    let mut done = ReadProgress {
        files_total: sizes.len(),
        bytes_total: sizes.iter().sum(),
        ..ReadProgress::default()
    };
    // One buffer for all files: fresh memory costs as much as reading into it.
    let mut octets = Vec::new();
    for (entry, size) in manifest.files.iter_mut().zip(sizes) {
        let log_id = manifest.log_id;
        let Read { rot, problem } =
            read_file(directory, log_id, entry, &mut octets, &mut liveness, report, each)?;
        for rot in rot {
            let end = (rot.offset + rot.len).min(octets.len());
            let wrong = octets.get(rot.offset..end).unwrap_or_default();
            let kept_in = match damaged {
                Damaged::Kept => keep(directory, &entry.name(), rot.offset, wrong)?,
                Damaged::Told => None,
            };
            report.damages.push(Damage {
                file: entry.name(),
                offset: rot.offset as u64,
                len: rot.len as u64,
                after: rot.after,
                problem,
                kept_in,
                record: rot.record,
            });
        }
        done.files += 1;
        done.bytes += size;
        done.records = report.records;
        progress(done);
    }
    Ok(liveness)
}

/// How many octets of a file are to be read; none if it is not there.
fn size<D: Directory>(directory: &D, entry: &FileEntry) -> u64 {
    if entry.is_sealed() {
        return entry.bytes;
    }
    directory.open(&entry.name()).and_then(|file| file.size()).unwrap_or(0)
}

/// What was read of a file, and what is wrong with it.
struct Read {
    rot: Vec<Rot>,
    problem: &'static str,
}

/// Reads one file of the log into `octets`; an unsealed one is sealed where it ends.
fn read_file<D: Directory>(
    directory: &D,
    log_id: u64,
    entry: &mut FileEntry,
    octets: &mut Vec<u8>,
    liveness: &mut Liveness,
    report: &mut OpenReport,
    each: &mut dyn FnMut(Record<'_>, &mut References<'_>),
) -> Result<Read, OpenError> {
    let name = entry.name();
    let is_sealed = entry.is_sealed();
    liveness.open_file(entry.first, is_sealed.then_some(entry.end), entry.clean);
    match directory.open(&name) {
        Ok(file) => read_into(&file, octets).map_err(io_error(format!("read {name}")))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => octets.clear(),
        Err(error) => return Err(io_error(format!("open {name}"))(error)),
    }
    let used =
        if is_sealed { usize::try_from(entry.bytes).unwrap_or(usize::MAX) } else { octets.len() };
    let mut rot = Vec::new();
    let mut problem = "octets that were durable have changed";
    let mut counted = octets.get(..used.min(octets.len())).unwrap_or_default();
    match FileHeader::decode(octets) {
        Ok(header) if header.log_id == log_id && header.file_id == entry.id => {}
        Err(HeaderFault::Version(version)) => {
            return Err(OpenError::Version { file: name, version });
        }
        Ok(_) => {
            problem = "belongs to another log";
            counted = &[];
            rot.push(Rot::of_batches(0, octets.len(), report.last));
        }
        Err(HeaderFault::Missing) if octets.is_empty() => {
            problem = "missing";
            rot.push(Rot::of_batches(0, 0, report.last));
        }
        // The header is guarded apart from the batches, which know the file's id themselves.
        Err(HeaderFault::Missing | HeaderFault::Damaged) => {
            rot.push(Rot::of_batches(0, FIRST_BATCH as usize, report.last));
        }
    }
    let found = scan(counted, entry.id, entry.first, is_sealed, &mut |record| {
        liveness.add(record.lsn, record.references);
        if record.flags.has(Flags::RELEASES) {
            liveness.release(record.target);
        }
        each(record, &mut References(liveness));
    });
    if is_sealed && octets.len() < used && !octets.is_empty() {
        rot.push(Rot::of_batches(octets.len(), used - octets.len(), found.last));
    }
    rot.extend(found.rot);
    report.records += found.records;
    report.bytes += found.end as u64;
    report.torn_bytes += found.torn as u64;
    report.last = report.last.max(found.last);
    if is_sealed {
        report.last = report.last.max(Lsn(entry.end.0.saturating_sub(1)));
    } else {
        report.was_open = true;
        entry.end = Lsn(found.last.0 + 1);
        entry.bytes = (found.end as u64).max(FIRST_BATCH);
        liveness.seal_file(entry.first, entry.end);
    }
    Ok(Read { rot, problem })
}

/// Puts damaged octets aside, where people can look at them.
fn keep<D: Directory>(
    directory: &D,
    name: &str,
    offset: usize,
    octets: &[u8],
) -> Result<Option<String>, OpenError> {
    if octets.is_empty() {
        return Ok(None);
    }
    let kept = format!("{name}.{offset}.damaged");
    match directory.create(&kept) {
        Ok(file) => {
            file.write_at(octets, 0).map_err(io_error(format!("write {kept}")))?;
            file.sync().map_err(io_error(format!("sync {kept}")))?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io_error(format!("make {kept}"))(error)),
    }
    Ok(Some(kept))
}

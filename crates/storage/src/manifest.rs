//! The manifest: the files of a log, their order, and the length of each.
//!
//! The manifest is replaced as a whole: the new one is written to another file, synced and renamed, then
//! the directory is synced. A file that is not listed does not belong to the log; a listed file that is
//! missing is damage.

use std::io;

use crc32c::crc32c;

use crate::directory::{Directory, DirectoryFile, with_room};
use crate::format::{
    FORMAT_VERSION_OLDEST, FORMAT_VERSION_REPLICATED, FileHeader, Layout, Lsn, put, u32_at, u64_at,
};
use crate::limits::{FILE_BYTES_MAX, NUMBER_MAX, SEGMENTS_MAX};
use crate::replicated::{EntryIndex, Term};

/// Name of the manifest in the directory.
pub(crate) const MANIFEST: &str = "manifest";
const MANIFEST_NEW: &str = "manifest.new";
const MAGIC: [u8; 8] = *b"LVRTMAN\0";
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 40;
/// Bytes of the header and of a file's entry in the manifest of a replicated log.
const REPLICATED_HEADER_BYTES: usize = 88;
const REPLICATED_ENTRY_BYTES: usize = 64;

/// One file of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileEntry {
    pub(crate) id: u64,
    /// First position of the range.
    pub(crate) first: Lsn,
    /// First position behind the range; 0 while the file is the active segment.
    pub(crate) end: Lsn,
    /// Number of bytes in use; 0 while the file is the active segment.
    pub(crate) bytes: u64,
    /// Position up to which ended references were considered when the file was rewritten; 0 if it was
    /// not.
    pub(crate) compacted_at: Lsn,
    /// Layout of the file. Only the manifest of a replicated log says it; other logs have one layout.
    pub(crate) layout: Layout,
    /// Index and term of the last entry before the file; 0 in a log that is not replicated.
    pub(crate) before: (EntryIndex, Term),
}

/// Facts that only the manifest of a replicated log has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct GroupFacts {
    /// Entries up to this one were committed, and durable here, when the manifest was written.
    pub(crate) commit: EntryIndex,
    /// Rewritten files lack what entries up to this one have ended.
    pub(crate) clean: EntryIndex,
    /// Last entry whose effects the log began with, its term, and the last position then: entries up to it stand
    /// in no file, or in those that were shipped.
    pub(crate) base: (EntryIndex, Term, Lsn),
}

impl FileEntry {
    pub(crate) fn is_sealed(&self) -> bool {
        self.end != Lsn(0)
    }

    pub(crate) fn name(&self) -> String {
        file_name(self.id)
    }

    /// True if the numbers are in the ranges that a log can write.
    fn is_plausible(&self) -> bool {
        let Self { id, first, end, bytes, compacted_at, layout: _, before } = self;
        let numbers = [*id, first.0, end.0, compacted_at.0, before.0.0, before.1.0];
        numbers.iter().all(|number| *number <= NUMBER_MAX)
            && *bytes <= FILE_BYTES_MAX
            && (!self.is_sealed() || first <= end)
    }

    /// True if no position lies in the range of the file, though it may have entries without records.
    pub(crate) fn is_range_empty(&self) -> bool {
        self.first == self.end
    }
}

/// Name of the file with this id.
pub(crate) fn file_name(id: u64) -> String {
    format!("{id:016x}.log")
}

/// Id of the file with this name; `None` if it is no log file.
pub(crate) fn file_id(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log").filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok().filter(|id| *id <= NUMBER_MAX)
}

/// The manifest of a log; the files are in the order of their ranges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Manifest {
    /// Oldest version of the format that suffices for the records of the log.
    pub(crate) format_version: u32,
    pub(crate) log_id: u64,
    /// Reserved bytes: 0 in a new log, copied when the manifest is replaced.
    pub(crate) reserved: u64,
    pub(crate) next_file_id: u64,
    pub(crate) files: Vec<FileEntry>,
    /// Facts of a replicated log; zeros in others, whose manifests have no room for them.
    pub(crate) group: GroupFacts,
}

/// Reason for which a manifest cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ManifestFault {
    Damaged,
    Version(u32),
}

/// True if a directory holds a log.
///
/// # Errors
/// If the directory cannot be listed.
pub fn has_log<D: Directory>(directory: &D) -> io::Result<bool> {
    Ok(directory.list()?.iter().any(|name| name == MANIFEST))
}

impl Manifest {
    /// The manifest of a log without a file.
    pub(crate) fn new(log_id: u64) -> Self {
        Self {
            format_version: FORMAT_VERSION_OLDEST,
            log_id,
            reserved: 0,
            next_file_id: 1,
            files: Vec::new(),
            group: GroupFacts::default(),
        }
    }

    /// An id for a new file, never used again.
    pub(crate) fn take_file_id(&mut self) -> u64 {
        let id = self.next_file_id;
        self.next_file_id += 1;
        id
    }

    /// True if the log is that of a group.
    pub(crate) fn is_replicated(&self) -> bool {
        self.format_version == FORMAT_VERSION_REPLICATED
    }

    /// Layout of the files to which batches are appended.
    pub(crate) fn layout(&self) -> Layout {
        if self.is_replicated() { Layout::Entries } else { Layout::Batches }
    }

    /// Header of the file with the id `file_id`, whose range begins at `first`.
    pub(crate) fn file_header(&self, file_id: u64, first: Lsn, layout: Layout) -> FileHeader {
        let (log_id, reserved) = (self.log_id, self.reserved);
        FileHeader { layout, log_id, file_id, first, reserved }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.extend(self.format_version.to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.log_id.to_le_bytes());
        out.extend(self.reserved.to_le_bytes());
        out.extend(self.next_file_id.to_le_bytes());
        out.extend((self.files.len() as u64).to_le_bytes());
        if self.is_replicated() {
            let GroupFacts { commit, clean, base: (index, term, position) } = self.group;
            for value in [commit.0, clean.0, index.0, term.0, position.0] {
                out.extend(value.to_le_bytes());
            }
        }
        for file in &self.files {
            for value in [file.id, file.first.0, file.end.0, file.bytes, file.compacted_at.0] {
                out.extend(value.to_le_bytes());
            }
            if self.is_replicated() {
                out.extend(file.before.0.0.to_le_bytes());
                out.extend(file.before.1.0.to_le_bytes());
                out.extend(file.layout.version().to_le_bytes());
                out.extend([0; 4]);
            }
        }
        let crc = crc32c(&out);
        put(&mut out, 12, crc);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, ManifestFault> {
        // The length is checked first: the fields of the header are read without a check.
        if bytes.len() < HEADER_BYTES || !bytes.starts_with(&MAGIC) {
            return Err(ManifestFault::Damaged);
        }
        let mut plain = bytes.to_vec();
        put(&mut plain, 12, 0);
        if crc32c(&plain) != u32_at(bytes, 12) {
            return Err(ManifestFault::Damaged);
        }
        let format_version = u32_at(bytes, 8);
        if !(FORMAT_VERSION_OLDEST..=FORMAT_VERSION_REPLICATED).contains(&format_version) {
            return Err(ManifestFault::Version(format_version));
        }
        let is_replicated = format_version == FORMAT_VERSION_REPLICATED;
        let (header_bytes, entry_bytes) = match is_replicated {
            true => (REPLICATED_HEADER_BYTES, REPLICATED_ENTRY_BYTES),
            false => (HEADER_BYTES, ENTRY_BYTES),
        };
        let (header, entries) =
            bytes.split_at_checked(header_bytes).ok_or(ManifestFault::Damaged)?;
        let entries = entries.chunks_exact(entry_bytes);
        if !entries.remainder().is_empty()
            || entries.len() as u64 != u64_at(bytes, 40)
            || entries.len() > SEGMENTS_MAX
        {
            return Err(ManifestFault::Damaged);
        }
        let group = match is_replicated {
            true => GroupFacts {
                commit: EntryIndex(u64_at(header, 48)),
                clean: EntryIndex(u64_at(header, 56)),
                base: (
                    EntryIndex(u64_at(header, 64)),
                    Term(u64_at(header, 72)),
                    Lsn(u64_at(header, 80)),
                ),
            },
            false => GroupFacts::default(),
        };
        let files: Option<Vec<_>> =
            entries.map(|entry| decode_file(entry, is_replicated)).collect();
        let manifest = Self {
            format_version,
            log_id: u64_at(bytes, 16),
            reserved: u64_at(bytes, 24),
            next_file_id: u64_at(bytes, 32),
            files: files.ok_or(ManifestFault::Damaged)?,
            group,
        };
        match manifest.is_plausible() {
            true => Ok(manifest),
            false => Err(ManifestFault::Damaged),
        }
    }

    /// True if a log can have written this manifest: a checksum may match by chance or be forged.
    fn is_plausible(&self) -> bool {
        let GroupFacts { commit, clean, base: (index, term, position) } = self.group;
        let numbers = [self.next_file_id, commit.0, clean.0, index.0, term.0, position.0];
        numbers.into_iter().all(|number| number <= NUMBER_MAX)
            && self.files.iter().all(FileEntry::is_plausible)
    }

    /// Replaces the manifest in `directory`, durably.
    ///
    /// # Errors
    /// [`StoreError`]: an operation on the disk failed, or the manifest lists too many files.
    ///
    /// # Panics
    /// If the manifest is implausible: it could not be read back.
    pub(crate) fn store<D: Directory>(&self, directory: &D) -> Result<(), StoreError> {
        assert!(self.is_plausible(), "a manifest that could not be read back: {self:?}");
        if self.files.len() > SEGMENTS_MAX {
            let problem = format!("a log may have {SEGMENTS_MAX} files");
            return Err(StoreError::Unchanged(io::Error::other(problem)));
        }
        let bytes = self.encode();
        with_room(directory, || write_new(directory, &bytes)).map_err(StoreError::Unchanged)?;
        directory.rename(MANIFEST_NEW, MANIFEST).map_err(StoreError::Unknown)?;
        directory.sync().map_err(StoreError::Unknown)
    }
}

/// Decodes the entry of a file, whose length has been checked.
fn decode_file(entry: &[u8], is_replicated: bool) -> Option<FileEntry> {
    let (layout, before) = match is_replicated {
        true => (
            Layout::of_version(u32_at(entry, 56))?,
            (EntryIndex(u64_at(entry, 40)), Term(u64_at(entry, 48))),
        ),
        false => (Layout::Batches, (EntryIndex(0), Term(0))),
    };
    Some(FileEntry {
        id: u64_at(entry, 0),
        first: Lsn(u64_at(entry, 8)),
        end: Lsn(u64_at(entry, 16)),
        bytes: u64_at(entry, 24),
        compacted_at: Lsn(u64_at(entry, 32)),
        layout,
        before,
    })
}

/// Writes the new manifest to a file beside the old one.
fn write_new<D: Directory>(directory: &D, bytes: &[u8]) -> io::Result<()> {
    // A crash or an attempt on a full disk may have left one behind.
    match directory.remove(MANIFEST_NEW) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = directory.create(MANIFEST_NEW)?;
    file.write_at(bytes, 0)?;
    file.sync()
}

/// Error of replacing a manifest.
#[derive(Debug)]
pub(crate) enum StoreError {
    /// The old manifest is in place.
    Unchanged(io::Error),
    /// The old or the new manifest is in place.
    Unknown(io::Error),
}

impl StoreError {
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Unchanged(error) | Self::Unknown(error) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let file = |id, first, end, bytes| FileEntry {
            id,
            first: Lsn(first),
            end: Lsn(end),
            bytes,
            compacted_at: Lsn(0),
            layout: Layout::Batches,
            before: (EntryIndex(0), Term(0)),
        };
        let files = vec![file(3, 1, 100, 4096), file(9, 100, 0, 0)];
        let group = GroupFacts::default();
        Manifest { format_version: 2, log_id: 7, reserved: 0, next_file_id: 10, files, group }
    }

    fn replicated() -> Manifest {
        let mut manifest = Manifest { format_version: 3, ..manifest() };
        manifest.files[1].layout = Layout::Entries;
        manifest.files[1].before = (EntryIndex(12), Term(3));
        let base = (EntryIndex(9), Term(2), Lsn(77));
        manifest.group = GroupFacts { commit: EntryIndex(15), clean: EntryIndex(11), base };
        manifest
    }

    #[test]
    fn manifest_with_impossible_numbers_is_damaged() {
        let changes: [fn(&mut Manifest); 9] = [
            |manifest| manifest.files[0].bytes = u64::MAX,
            |manifest| manifest.files[1].bytes = u64::MAX - 4096,
            |manifest| manifest.files[0].end = Lsn(u64::MAX),
            |manifest| manifest.files[0].first = Lsn(101),
            |manifest| manifest.files[1].id = u64::MAX,
            |manifest| manifest.next_file_id = u64::MAX,
            |manifest| manifest.files[1].before.0 = EntryIndex(u64::MAX),
            |manifest| manifest.group.commit = EntryIndex(u64::MAX),
            |manifest| manifest.group.base.2 = Lsn(u64::MAX),
        ];
        for change in changes {
            let mut changed = replicated();
            change(&mut changed);
            assert_eq!(
                Manifest::decode(&changed.encode()),
                Err(ManifestFault::Damaged),
                "{changed:?}"
            );
        }
        assert_eq!(file_id("ffffffffffffffff.log"), None);
    }

    #[test]
    fn manifest_with_too_many_files_is_not_written() {
        struct NoDirectory;
        impl Directory for NoDirectory {
            type File = std::fs::File;
            fn create(&self, _: &str) -> io::Result<Self::File> {
                unreachable!()
            }
            fn open(&self, _: &str) -> io::Result<Self::File> {
                unreachable!()
            }
            fn list(&self) -> io::Result<Vec<String>> {
                unreachable!()
            }
            fn rename(&self, _: &str, _: &str) -> io::Result<()> {
                unreachable!()
            }
            fn remove(&self, _: &str) -> io::Result<()> {
                unreachable!()
            }
            fn sync(&self) -> io::Result<()> {
                unreachable!()
            }
        }
        let mut many = manifest();
        many.files = vec![many.files[1]; SEGMENTS_MAX + 1];
        assert_eq!(Manifest::decode(&many.encode()), Err(ManifestFault::Damaged));
        let refused = many.store(&NoDirectory).unwrap_err().into_io();
        assert_eq!(refused.to_string(), "a log may have 65536 files");
    }

    #[test]
    fn manifest_round_trips() {
        for manifest in [manifest(), replicated()] {
            assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
        }
    }

    #[test]
    fn manifest_with_a_changed_byte_is_damaged() {
        for bytes in [manifest().encode(), replicated().encode()] {
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 4;
                assert!(Manifest::decode(&changed).is_err(), "byte {at}");
                assert!(Manifest::decode(&bytes[..at]).is_err(), "cut at {at}");
            }
        }
    }

    #[test]
    fn manifest_of_another_version_is_refused() {
        let mut bytes = manifest().encode();
        put(&mut bytes, 8, 4);
        put(&mut bytes, 12, 0);
        let crc = crc32c(&bytes);
        put(&mut bytes, 12, crc);
        assert_eq!(Manifest::decode(&bytes), Err(ManifestFault::Version(4)));
    }

    #[test]
    fn file_names_are_numbers() {
        assert_eq!(file_id(&file_name(0xAB)), Some(0xAB));
        for name in ["ab.log", "00000000000000ab", "00000000000000zz.log", "manifest"] {
            assert_eq!(file_id(name), None, "{name}");
        }
    }
}

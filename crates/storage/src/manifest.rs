//! The manifest: the files of a log, their order, and the length of each.
//!
//! The manifest is replaced as a whole: the new one is written to another file, synced and renamed, then
//! the directory is synced. A file that is not listed does not belong to the log; a listed file that is
//! missing is damage.

use std::io;

use crc32c::crc32c;

use crate::directory::{Directory, DirectoryFile, with_room};
use crate::format::{
    FILE_VERSION, FORMAT_VERSION, FORMAT_VERSION_OLDEST, FileHeader, Lsn, put, u32_at, u64_at,
};
use crate::limits::{FILE_BYTES_MAX, NUMBER_MAX, SEGMENTS_MAX};

/// Name of the manifest in the directory.
pub(crate) const MANIFEST: &str = "manifest";
const MANIFEST_NEW: &str = "manifest.new";
const MAGIC: [u8; 8] = *b"LVRTMAN\0";
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 40;

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
        let Self { id, first, end, bytes, compacted_at } = self;
        let numbers = [*id, first.0, end.0, compacted_at.0];
        numbers.iter().all(|number| *number <= NUMBER_MAX)
            && *bytes <= FILE_BYTES_MAX
            && (!self.is_sealed() || first <= end)
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
}

/// Reason for which a manifest cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ManifestFault {
    Damaged,
    Version(u32),
}

impl Manifest {
    /// An id for a new file, never used again.
    pub(crate) fn take_file_id(&mut self) -> u64 {
        let id = self.next_file_id;
        self.next_file_id += 1;
        id
    }

    /// Header of the file with the id `file_id`, whose range begins at `first`.
    pub(crate) fn file_header(&self, file_id: u64, first: Lsn) -> FileHeader {
        let (log_id, reserved) = (self.log_id, self.reserved);
        FileHeader { version: FILE_VERSION, log_id, file_id, first, reserved }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES + self.files.len() * ENTRY_BYTES);
        out.extend(MAGIC);
        out.extend(self.format_version.to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.log_id.to_le_bytes());
        out.extend(self.reserved.to_le_bytes());
        out.extend(self.next_file_id.to_le_bytes());
        out.extend((self.files.len() as u64).to_le_bytes());
        for file in &self.files {
            for value in [file.id, file.first.0, file.end.0, file.bytes, file.compacted_at.0] {
                out.extend(value.to_le_bytes());
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
        if !(FORMAT_VERSION_OLDEST..=FORMAT_VERSION).contains(&format_version) {
            return Err(ManifestFault::Version(format_version));
        }
        let (entries, rest) = bytes.split_at(HEADER_BYTES).1.as_chunks::<ENTRY_BYTES>();
        if !rest.is_empty()
            || entries.len() as u64 != u64_at(bytes, 40)
            || entries.len() > SEGMENTS_MAX
        {
            return Err(ManifestFault::Damaged);
        }
        let entry = |entry: &[u8; ENTRY_BYTES]| FileEntry {
            id: u64_at(entry, 0),
            first: Lsn(u64_at(entry, 8)),
            end: Lsn(u64_at(entry, 16)),
            bytes: u64_at(entry, 24),
            compacted_at: Lsn(u64_at(entry, 32)),
        };
        let manifest = Self {
            format_version,
            log_id: u64_at(bytes, 16),
            reserved: u64_at(bytes, 24),
            next_file_id: u64_at(bytes, 32),
            files: entries.iter().map(entry).collect(),
        };
        match manifest.is_plausible() {
            true => Ok(manifest),
            false => Err(ManifestFault::Damaged),
        }
    }

    /// True if a log can have written this manifest: a checksum may match by chance or be forged.
    fn is_plausible(&self) -> bool {
        self.next_file_id <= NUMBER_MAX && self.files.iter().all(FileEntry::is_plausible)
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
        };
        let files = vec![file(3, 1, 100, 4096), file(9, 100, 0, 0)];
        Manifest { format_version: 2, log_id: 7, reserved: 0, next_file_id: 10, files }
    }

    #[test]
    fn manifest_with_impossible_numbers_is_damaged() {
        let changes: [fn(&mut Manifest); 6] = [
            |manifest| manifest.files[0].bytes = u64::MAX,
            |manifest| manifest.files[1].bytes = u64::MAX - 4096,
            |manifest| manifest.files[0].end = Lsn(u64::MAX),
            |manifest| manifest.files[0].first = Lsn(101),
            |manifest| manifest.files[1].id = u64::MAX,
            |manifest| manifest.next_file_id = u64::MAX,
        ];
        for change in changes {
            let mut changed = manifest();
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
        assert_eq!(Manifest::decode(&manifest().encode()), Ok(manifest()));
    }

    #[test]
    fn manifest_with_a_changed_byte_is_damaged() {
        let bytes = manifest().encode();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 4;
            assert!(Manifest::decode(&changed).is_err(), "byte {at}");
            assert!(Manifest::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn manifest_of_another_version_is_refused() {
        let mut bytes = manifest().encode();
        put(&mut bytes, 8, 3);
        put(&mut bytes, 12, 0);
        let crc = crc32c(&bytes);
        put(&mut bytes, 12, crc);
        assert_eq!(Manifest::decode(&bytes), Err(ManifestFault::Version(3)));
    }

    #[test]
    fn file_names_are_numbers() {
        assert_eq!(file_id(&file_name(0xAB)), Some(0xAB));
        for name in ["ab.log", "00000000000000ab", "00000000000000zz.log", "manifest"] {
            assert_eq!(file_id(name), None, "{name}");
        }
    }
}

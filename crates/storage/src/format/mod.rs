//! Encoding of a log file: its header, the headers of batches and records, and their checksums.
//!
//! All integers are little-endian. The CRC-32C of a batch header is seeded with the file's id, that of
//! a record with its batch's CRC, so that bytes of an earlier use of the same blocks, or of another file,
//! never look valid. `docs/internals/formats/log.md` has the
//! tables.

mod batch;
mod numbers;
mod record;

pub(crate) use batch::{BatchHeader, EntryHeader, EntryKind, batch_len, entry_seed};
pub(crate) use numbers::{put, put_u64, u32_at, u64_at};
pub(crate) use record::{ReadRecord, RecordHeader, mark_spent, put_record_crc, read_record};

/// Newest version of the format of a log without a group. A manifest has the oldest version that suffices for the records of the
/// log, so that an earlier build reads a log without newer records and refuses any other.
pub const FORMAT_VERSION: u32 = 2;

/// Oldest version of the log's format; a new log has this version.
pub const FORMAT_VERSION_OLDEST: u32 = 1;

/// Version of the format of a replicated log, which has a manifest and files of its own layout.
pub const FORMAT_VERSION_REPLICATED: u32 = 3;

/// Newest version of the layout of a log file.
pub(crate) const FILE_VERSION: u32 = 2;

/// Layout of the batches of a log file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Layout {
    /// Batches of records, in files of every version of the format.
    #[default]
    Batches,
    /// Entries of a replicated log, in files that were not rewritten.
    Entries,
}

impl Layout {
    /// Version in the header of a file of this layout.
    pub(crate) fn version(self) -> u32 {
        match self {
            Self::Batches => 1,
            Self::Entries => 2,
        }
    }

    /// The layout with this version.
    pub(crate) fn of_version(version: u32) -> Option<Self> {
        [Self::Batches, Self::Entries].into_iter().find(|layout| layout.version() == version)
    }

    /// Bytes of the header of a batch.
    pub(crate) fn batch_header_bytes(self) -> usize {
        match self {
            Self::Batches => BATCH_HEADER_BYTES,
            Self::Entries => ENTRY_HEADER_BYTES,
        }
    }
}

const MAGIC: [u8; 8] = *b"LVRTLOG\0";
const BATCH_MAGIC: u32 = 0x4843_5442; // "BTCH"

/// Offset of the first batch: the file's header has a block of its own, which is written once.
pub(crate) const FIRST_BATCH: u64 = 4096;
pub(crate) const FILE_HEADER_BYTES: usize = 64;
pub(crate) const BATCH_HEADER_BYTES: usize = 48;
pub(crate) const ENTRY_HEADER_BYTES: usize = 80;
pub(crate) const RECORD_HEADER_BYTES: usize = 32;

/// Alignment of batches, so that they can be found again behind damage.
pub(crate) const BATCH_ALIGN: usize = 8;

/// Position in the log (log sequence number): the number of a record, from 1; 0 means none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lsn(pub u64);

impl std::fmt::Display for Lsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Effects of a record on others, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(pub u8);

impl Flags {
    /// No effect on other records.
    pub const NONE: Self = Self(0);
    /// The record ends one reference of its target.
    pub const RELEASES: Self = Self(1);
    /// The record annotates its target, and replaces earlier annotations of the same kind whose payload
    /// begins with the same eight bytes.
    pub const ANNOTATES: Self = Self(2);
    /// The record ends references of earlier records, which its payload names.
    pub const ENDS_MANY: Self = Self(4);
    /// The record's own references have ended; it is kept for its effect on others. Set when a file is
    /// rewritten.
    pub const SPENT: Self = Self(8);

    /// The union of both.
    #[must_use]
    pub fn and(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// True if all of `flags` are set.
    #[must_use]
    pub fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

/// The header of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileHeader {
    /// Layout of the batches.
    pub(crate) layout: Layout,
    /// Id of the log.
    pub(crate) log_id: u64,
    /// Id of the file, never used again.
    pub(crate) file_id: u64,
    /// First position of its range.
    pub(crate) first: Lsn,
    /// Reserved bytes: 0 in a new log, copied from the manifest otherwise.
    pub(crate) reserved: u64,
}

/// Reason for which a header cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeaderFault {
    /// No header was written.
    Missing,
    /// Damaged bytes.
    Damaged,
    /// A version that this program does not know.
    Version(u32),
}

impl FileHeader {
    /// The first block of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FIRST_BATCH as usize);
        out.extend(MAGIC);
        out.extend(self.layout.version().to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.log_id.to_le_bytes());
        out.extend(self.file_id.to_le_bytes());
        out.extend(self.first.0.to_le_bytes());
        out.extend(self.reserved.to_le_bytes());
        out.resize(FILE_HEADER_BYTES, 0);
        let crc = crc32c::crc32c(&out);
        put(&mut out, 12, crc);
        out.resize(FIRST_BATCH as usize, 0);
        out
    }

    pub(crate) fn decode(block: &[u8]) -> Result<Self, HeaderFault> {
        let header = block.get(..FILE_HEADER_BYTES).ok_or(HeaderFault::Missing)?;
        if header.iter().all(|byte| *byte == 0) {
            return Err(HeaderFault::Missing);
        }
        let crc = u32_at(header, 12);
        let mut plain = header.to_vec();
        put(&mut plain, 12, 0);
        if !header.starts_with(&MAGIC) || crc32c::crc32c(&plain) != crc {
            return Err(HeaderFault::Damaged);
        }
        let version = u32_at(header, 8);
        let layout = Layout::of_version(version).ok_or(HeaderFault::Version(version))?;
        Ok(Self {
            layout,
            log_id: u64_at(header, 16),
            file_id: u64_at(header, 24),
            first: Lsn(u64_at(header, 32)),
            reserved: u64_at(header, 40),
        })
    }
}

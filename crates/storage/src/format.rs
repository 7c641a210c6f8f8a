//! Encoding of a log file: its header, the headers of batches and records, and their checksums.
//!
//! All integers are little-endian. The CRC-32C of a batch header is seeded with the file's id, that of
//! a record with its batch's CRC, so that bytes of an earlier use of the same blocks, or of another file,
//! never look valid. `docs/internals/formats/log.md` has the
//! tables.

use crc32c::crc32c_append;

/// Newest version of the log's format. A manifest has the oldest version that suffices for the records of the
/// log, so that an earlier build reads a log without newer records and refuses any other.
pub const FORMAT_VERSION: u32 = 2;

/// Oldest version of the log's format; a new log has this version.
pub const FORMAT_VERSION_OLDEST: u32 = 1;

/// Version of the layout of a log file, which versions 1 and 2 of the log's format share.
pub(crate) const FILE_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"LVRTLOG\0";
const BATCH_MAGIC: u32 = 0x4843_5442; // "BTCH"

/// Offset of the first batch: the file's header has a block of its own, which is written once.
pub(crate) const FIRST_BATCH: u64 = 4096;
pub(crate) const FILE_HEADER_BYTES: usize = 64;
pub(crate) const BATCH_HEADER_BYTES: usize = 48;
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
    /// Version of the layout.
    pub(crate) version: u32,
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
        out.extend(self.version.to_le_bytes());
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
        if version != FILE_VERSION {
            return Err(HeaderFault::Version(version));
        }
        Ok(Self {
            version,
            log_id: u64_at(header, 16),
            file_id: u64_at(header, 24),
            first: Lsn(u64_at(header, 32)),
            reserved: u64_at(header, 40),
        })
    }
}

/// The header of a batch: records that were written together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BatchHeader {
    /// Bytes of the records.
    pub(crate) length: u32,
    /// Number of records.
    pub(crate) count: u32,
    /// Position of the first record. Positions ascend; some may be missing.
    pub(crate) first: Lsn,
    /// Last position that the batch covers, perhaps beyond its last record.
    pub(crate) last: Lsn,
    /// All records up to here were durable when the batch was written.
    pub(crate) synced: Lsn,
    /// CRC of the batch before in the same file; 0 for the first.
    pub(crate) previous_crc: u32,
}

impl BatchHeader {
    /// Writes the header over the front of `out` and returns its CRC.
    pub(crate) fn write(&self, file_id: u64, out: &mut [u8]) -> u32 {
        let mut header = [0; BATCH_HEADER_BYTES];
        put(&mut header, 0, BATCH_MAGIC);
        put(&mut header, 8, self.length);
        put(&mut header, 12, self.count);
        put_u64(&mut header, 16, self.first.0);
        put_u64(&mut header, 24, self.last.0);
        put_u64(&mut header, 32, self.synced.0);
        put(&mut header, 40, self.previous_crc);
        let crc = batch_crc(file_id, &header);
        put(&mut header, 4, crc);
        let front = out.get_mut(..BATCH_HEADER_BYTES).expect("room for the header");
        front.copy_from_slice(&header);
        crc
    }

    /// The header at the front of `bytes`, if there is a valid one, with its CRC.
    pub(crate) fn read(file_id: u64, bytes: &[u8]) -> Option<(Self, u32)> {
        let header = bytes.get(..BATCH_HEADER_BYTES)?;
        if u32_at(header, 0) != BATCH_MAGIC {
            return None;
        }
        let crc = u32_at(header, 4);
        if batch_crc(file_id, header) != crc {
            return None;
        }
        let read = Self {
            length: u32_at(header, 8),
            count: u32_at(header, 12),
            first: Lsn(u64_at(header, 16)),
            last: Lsn(u64_at(header, 24)),
            synced: Lsn(u64_at(header, 32)),
            previous_crc: u32_at(header, 40),
        };
        Some((read, crc))
    }

    /// Bytes from the beginning of this batch to that of the next.
    pub(crate) fn whole_len(&self) -> u64 {
        batch_len(self.length as usize)
    }
}

/// Bytes that a batch with `records` bytes of records takes, with the gap behind it.
pub(crate) fn batch_len(records: usize) -> u64 {
    (BATCH_HEADER_BYTES + records).next_multiple_of(BATCH_ALIGN) as u64
}

fn batch_crc(file_id: u64, header: &[u8]) -> u32 {
    let seed = crc32c::crc32c(&file_id.to_le_bytes());
    crc32c_append(seed, header.get(8..).unwrap_or_default())
}

/// The header of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordHeader {
    /// Bytes of the payload.
    pub(crate) length: u32,
    /// Position of the record.
    pub(crate) lsn: Lsn,
    /// Position of the record that this one is about; 0 for none.
    pub(crate) target: Lsn,
    /// Reserved bytes: 0 in a new record, copied when a record is rewritten.
    pub(crate) reserved: u32,
    /// Kind of the record; the log does not interpret it.
    pub(crate) kind: u8,
    /// Effect of the record on others.
    pub(crate) flags: Flags,
    /// Number of references that keep the record.
    pub(crate) references: u16,
}

impl RecordHeader {
    /// The bytes with an empty CRC; [`put_record_crc`] sets it.
    pub(crate) fn encode(&self) -> [u8; RECORD_HEADER_BYTES] {
        let mut out = [0; RECORD_HEADER_BYTES];
        put(&mut out, 0, self.length);
        put_u64(&mut out, 8, self.lsn.0);
        put_u64(&mut out, 16, self.target.0);
        put(&mut out, 24, self.reserved);
        let [low, high] = self.references.to_le_bytes();
        out[28] = self.kind;
        out[29] = self.flags.0;
        out[30] = low;
        out[31] = high;
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..RECORD_HEADER_BYTES)?;
        Some(Self {
            length: u32_at(bytes, 0),
            lsn: Lsn(u64_at(bytes, 8)),
            target: Lsn(u64_at(bytes, 16)),
            reserved: u32_at(bytes, 24),
            kind: bytes[28],
            flags: Flags(bytes[29]),
            references: u16::from_le_bytes([bytes[30], bytes[31]]),
        })
    }
}

/// Marks the record at the front of `bytes` as spent: its references have ended.
pub(crate) fn mark_spent(bytes: &mut [u8]) {
    let Some([flags, references @ ..]) = bytes.get_mut(29..RECORD_HEADER_BYTES) else {
        panic!("a record is longer than its header");
    };
    *flags |= Flags::SPENT.0;
    references.fill(0);
}

/// Sets the CRC of the record that begins with `bytes` and ends with `body`, in the batch with the CRC
/// `batch_crc`.
pub(crate) fn put_record_crc(batch_crc: u32, bytes: &mut [u8], body: &[u8]) {
    let crc = crc32c_append(record_crc(batch_crc, bytes), body);
    put(bytes, 4, crc);
}

/// Result of reading a record.
pub(crate) enum ReadRecord<'a> {
    /// A whole record.
    Whole(RecordHeader, &'a [u8]),
    /// The CRC does not match. The next record begins this many bytes later, if the length is right.
    Damaged(usize),
    /// The record is longer than the input.
    Cut,
}

/// Reads the record at the front of `bytes`, in the batch with the CRC `batch_crc`.
pub(crate) fn read_record(batch_crc: u32, bytes: &[u8]) -> ReadRecord<'_> {
    let Some(header) = RecordHeader::decode(bytes) else {
        return ReadRecord::Cut;
    };
    let len = RECORD_HEADER_BYTES.saturating_add(header.length as usize);
    let Some(whole) = bytes.get(..len) else {
        return ReadRecord::Cut;
    };
    if record_crc(batch_crc, whole) != u32_at(whole, 4) {
        return ReadRecord::Damaged(len);
    }
    ReadRecord::Whole(header, whole.get(RECORD_HEADER_BYTES..).unwrap_or_default())
}

fn record_crc(batch_crc: u32, bytes: &[u8]) -> u32 {
    let length = bytes.get(..4).unwrap_or_default();
    let rest = bytes.get(8..).unwrap_or_default();
    crc32c_append(crc32c_append(batch_crc, length), rest)
}

/// Reads a field of a header whose length has been checked.
///
/// # Panics
/// If `bytes` is too short: the caller has not checked its length.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    u32::from_le_bytes(four.expect("the length of a header is checked before its fields"))
}

/// Reads a field of a header whose length has been checked; panics as [`u32_at`].
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok());
    u64::from_le_bytes(eight.expect("the length of a header is checked before its fields"))
}

/// Writes a field of a header.
///
/// # Panics
/// If `out` is too short: the header on the disk would lack the field.
pub(crate) fn put(out: &mut [u8], at: usize, value: u32) {
    let four = out.get_mut(at..at + 4).expect("a header has room for its fields");
    four.copy_from_slice(&value.to_le_bytes());
}

/// Writes a field of a header; panics as [`put`].
fn put_u64(out: &mut [u8], at: usize, value: u64) {
    let eight = out.get_mut(at..at + 8).expect("a header has room for its fields");
    eight.copy_from_slice(&value.to_le_bytes());
}

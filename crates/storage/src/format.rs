//! The octets of a log file: its header, the headers of batches and records, and how each is guarded.
//!
//! All integers are little-endian. Every header carries a CRC-32C that begins with something only this
//! place can know (the file's id for a batch, the batch's CRC for a record), so that octets of an
//! earlier use of the same blocks, or of another file, never look valid. `docs/internals/formats/log.md` has the
//! tables.

use crc32c::crc32c_append;

/// Version of everything in here.
pub const FORMAT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"LVRTLOG\0";
const BATCH_MAGIC: u32 = 0x4843_5442; // "BTCH"

/// Where the first batch begins: the file's header has a block of its own, which is written once.
pub(crate) const FIRST_BATCH: u64 = 4096;
const FILE_HEADER_BYTES: usize = 64;
pub(crate) const BATCH_HEADER_BYTES: usize = 48;
pub(crate) const RECORD_HEADER_BYTES: usize = 32;

/// Batches begin at multiples of this, so that they can be found again behind damage.
pub(crate) const BATCH_ALIGN: usize = 8;

/// A position in the log: the number of a record, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lsn(pub u64);

impl std::fmt::Display for Lsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What a record means to the log.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(pub u8);

impl Flags {
    /// Nothing but itself.
    pub const NONE: Self = Self(0);
    /// It ends one reference of the record it is about.
    pub const RELEASES: Self = Self(1);
    /// It says something of the record it is about, and replaces what was said before by others of its
    /// kind whose payload begins with the same eight octets.
    pub const ANNOTATES: Self = Self(2);
    /// It ends references of earlier records that its payload alone tells.
    pub const ENDS_MANY: Self = Self(4);
    /// Its own references have ended; it is here for what it says of others. Set when a file is
    /// written anew.
    pub const SPENT: Self = Self(8);

    /// These and those.
    #[must_use]
    pub fn and(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// Whether all of `flags` are set.
    #[must_use]
    pub fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

/// The header of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileHeader {
    /// Version of the format.
    pub(crate) version: u32,
    /// The log it belongs to.
    pub(crate) log_id: u64,
    /// Its own id, never used again.
    pub(crate) file_id: u64,
    /// The first position it may hold.
    pub(crate) first: Lsn,
    /// Reserved bytes: 0 in a new log, copied from the manifest otherwise.
    pub(crate) reserved: u64,
}

/// Why a header cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeaderFault {
    /// There is none.
    Missing,
    /// Its octets are damaged.
    Damaged,
    /// It is of a version that this program does not know.
    Version(u32),
}

impl FileHeader {
    /// The whole first block.
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
        if header.iter().all(|octet| *octet == 0) {
            return Err(HeaderFault::Missing);
        }
        let crc = u32_at(header, 12);
        let mut plain = header.to_vec();
        put(&mut plain, 12, 0);
        if !header.starts_with(&MAGIC) || crc32c::crc32c(&plain) != crc {
            return Err(HeaderFault::Damaged);
        }
        let version = u32_at(header, 8);
        if version != FORMAT_VERSION {
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

/// The header of a batch: what was written at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BatchHeader {
    /// Octets of its records.
    pub(crate) length: u32,
    /// How many records.
    pub(crate) count: u32,
    /// The first record's position; records ascend, positions may be missing.
    pub(crate) first: Lsn,
    /// The last position that the batch covers, perhaps beyond its last record.
    pub(crate) last: Lsn,
    /// Everything up to here was durable when the batch was written.
    pub(crate) synced: Lsn,
    /// The CRC of the batch before it in the same file; 0 for the first.
    pub(crate) previous_crc: u32,
}

impl BatchHeader {
    /// Writes it over the front of `out` and returns its CRC.
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
        if let Some(front) = out.get_mut(..BATCH_HEADER_BYTES) {
            front.copy_from_slice(&header);
        }
        crc
    }

    /// The header at the front of `octets`, if there is a valid one, with its CRC.
    pub(crate) fn read(file_id: u64, octets: &[u8]) -> Option<(Self, u32)> {
        let header = octets.get(..BATCH_HEADER_BYTES)?;
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

    /// Octets from this batch to the next.
    pub(crate) fn whole_len(&self) -> u64 {
        batch_len(self.length as usize)
    }
}

/// Octets that a batch with so many octets of records takes.
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
    /// Octets of its payload.
    pub(crate) length: u32,
    /// Its position.
    pub(crate) lsn: Lsn,
    /// The record it is about; 0 for none.
    pub(crate) target: Lsn,
    /// Reserved bytes: 0 in a new record, copied when a record is rewritten.
    pub(crate) reserved: u32,
    /// What it is; the log's user knows.
    pub(crate) kind: u8,
    /// What it means to the log.
    pub(crate) flags: Flags,
    /// How many references keep it.
    pub(crate) references: u16,
}

impl RecordHeader {
    /// Its octets with an empty CRC; [`guard`] sets it.
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

    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let octets = octets.get(..RECORD_HEADER_BYTES)?;
        Some(Self {
            length: u32_at(octets, 0),
            lsn: Lsn(u64_at(octets, 8)),
            target: Lsn(u64_at(octets, 16)),
            reserved: u32_at(octets, 24),
            kind: octets[28],
            flags: Flags(octets[29]),
            references: u16::from_le_bytes([octets[30], octets[31]]),
        })
    }
}

/// The references of the record at the front of `octets` have ended.
pub(crate) fn spend(octets: &mut [u8]) {
    if let Some([flags, references @ ..]) = octets.get_mut(29..RECORD_HEADER_BYTES) {
        *flags |= Flags::SPENT.0;
        references.fill(0);
    }
}

/// Guards the record that begins with `octets` and ends with `body`, as one of the batch with this CRC.
pub(crate) fn guard(batch_crc: u32, octets: &mut [u8], body: &[u8]) {
    let crc = crc32c_append(record_crc(batch_crc, octets), body);
    put(octets, 4, crc);
}

/// A record at the front of `octets`, as far as it can be read.
pub(crate) enum ReadRecord<'a> {
    /// It is whole.
    Whole(RecordHeader, &'a [u8]),
    /// Its guard does not hold; the next one may begin behind so many octets, if its length is right.
    Damaged(usize),
    /// It does not fit.
    Cut,
}

/// Reads the record at the front of `octets`, one of the batch with this CRC.
pub(crate) fn read_record(batch_crc: u32, octets: &[u8]) -> ReadRecord<'_> {
    let Some(header) = RecordHeader::decode(octets) else {
        return ReadRecord::Cut;
    };
    let len = RECORD_HEADER_BYTES.saturating_add(header.length as usize);
    let Some(whole) = octets.get(..len) else {
        return ReadRecord::Cut;
    };
    if record_crc(batch_crc, whole) != u32_at(whole, 4) {
        return ReadRecord::Damaged(len);
    }
    ReadRecord::Whole(header, whole.get(RECORD_HEADER_BYTES..).unwrap_or_default())
}

fn record_crc(batch_crc: u32, octets: &[u8]) -> u32 {
    let length = octets.get(..4).unwrap_or_default();
    let rest = octets.get(8..).unwrap_or_default();
    crc32c_append(crc32c_append(batch_crc, length), rest)
}

pub(crate) fn u32_at(octets: &[u8], at: usize) -> u32 {
    let four = octets.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map(u32::from_le_bytes).unwrap_or_default()
}

pub(crate) fn u64_at(octets: &[u8], at: usize) -> u64 {
    let eight = octets.get(at..at + 8).and_then(|eight| eight.try_into().ok());
    eight.map(u64::from_le_bytes).unwrap_or_default()
}

pub(crate) fn put(out: &mut [u8], at: usize, value: u32) {
    if let Some(four) = out.get_mut(at..at + 4) {
        four.copy_from_slice(&value.to_le_bytes());
    }
}

fn put_u64(out: &mut [u8], at: usize, value: u64) {
    if let Some(eight) = out.get_mut(at..at + 8) {
        eight.copy_from_slice(&value.to_le_bytes());
    }
}

//! The header of a record, and its checksum.

use crc32c::crc32c_append;

use super::numbers::{put, put_u64, u32_at, u64_at};
use super::{Flags, Lsn, RECORD_HEADER_BYTES};

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

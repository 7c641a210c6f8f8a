//! The header of a batch, in both layouts of a file.

use crc32c::{crc32c, crc32c_append};

use super::numbers::{put, put_u64, u32_at, u64_at};
use super::{BATCH_ALIGN, BATCH_MAGIC, ENTRY_HEADER_BYTES, Layout, Lsn};

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
    /// All records up to this position, or entries up to this index, were durable when the batch was written.
    pub(crate) synced: u64,
    /// CRC of the batch before in the same file; 0 for the first.
    pub(crate) previous_crc: u32,
    /// The fields that only entries have.
    pub(crate) entry: Option<EntryHeader>,
}

/// Fields of the header of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EntryHeader {
    pub(crate) index: u64,
    pub(crate) term: u64,
    pub(crate) axis_us: u64,
    pub(crate) kind: EntryKind,
    /// CRC of the octets behind the header.
    pub(crate) octets_crc: u32,
}

/// Kind of an entry on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryKind {
    Records,
    Empty,
    Membership,
}

impl EntryKind {
    fn code(self) -> u8 {
        match self {
            Self::Records => 0,
            Self::Empty => 1,
            Self::Membership => 2,
        }
    }

    fn of_code(code: u8) -> Option<Self> {
        [Self::Records, Self::Empty, Self::Membership].into_iter().find(|kind| kind.code() == code)
    }
}

/// CRC with which the CRCs of the records of an entry begin: equal on all members.
pub(crate) fn entry_seed(log_id: u64, term: u64, index: u64) -> u32 {
    let seed = crc32c(&log_id.to_le_bytes());
    crc32c_append(crc32c_append(seed, &term.to_le_bytes()), &index.to_le_bytes())
}

impl BatchHeader {
    /// Layout of the file that the header stands in.
    pub(crate) fn layout(&self) -> Layout {
        if self.entry.is_some() { Layout::Entries } else { Layout::Batches }
    }

    /// Writes the header over the front of `out` and returns its CRC.
    pub(crate) fn write(&self, file_id: u64, out: &mut [u8]) -> u32 {
        let mut header = [0; ENTRY_HEADER_BYTES];
        put(&mut header, 0, BATCH_MAGIC);
        put(&mut header, 8, self.length);
        put(&mut header, 12, self.count);
        put_u64(&mut header, 16, self.first.0);
        put_u64(&mut header, 24, self.last.0);
        put_u64(&mut header, 32, self.synced);
        put(&mut header, 40, self.previous_crc);
        if let Some(entry) = &self.entry {
            put_u64(&mut header, 48, entry.index);
            put_u64(&mut header, 56, entry.term);
            put_u64(&mut header, 64, entry.axis_us);
            header[72] = entry.kind.code();
            put(&mut header, 76, entry.octets_crc);
        }
        let len = self.layout().batch_header_bytes();
        let header = header.get_mut(..len).expect("no header is longer than that of an entry");
        let crc = batch_crc(file_id, header);
        put(header, 4, crc);
        let front = out.get_mut(..len).expect("room for the header");
        front.copy_from_slice(header);
        crc
    }

    /// The header at the front of `bytes`, if there is a valid one, with its CRC.
    pub(crate) fn read(layout: Layout, file_id: u64, bytes: &[u8]) -> Option<(Self, u32)> {
        let header = bytes.get(..layout.batch_header_bytes())?;
        if u32_at(header, 0) != BATCH_MAGIC {
            return None;
        }
        let crc = u32_at(header, 4);
        if batch_crc(file_id, header) != crc {
            return None;
        }
        let entry = match layout {
            Layout::Batches => None,
            Layout::Entries => Some(EntryHeader {
                index: u64_at(header, 48),
                term: u64_at(header, 56),
                axis_us: u64_at(header, 64),
                kind: EntryKind::of_code(*header.get(72)?)?,
                octets_crc: u32_at(header, 76),
            }),
        };
        let read = Self {
            length: u32_at(header, 8),
            count: u32_at(header, 12),
            first: Lsn(u64_at(header, 16)),
            last: Lsn(u64_at(header, 24)),
            synced: u64_at(header, 32),
            previous_crc: u32_at(header, 40),
            entry,
        };
        Some((read, crc))
    }

    /// Bytes from the beginning of this batch to that of the next.
    pub(crate) fn whole_len(&self) -> u64 {
        batch_len(self.layout(), self.length as usize)
    }

    /// CRC with which the CRCs of its records begin, in the log `log_id`; `crc` is the batch's own.
    pub(crate) fn record_seed(&self, log_id: u64, crc: u32) -> u32 {
        self.entry.map_or(crc, |entry| entry_seed(log_id, entry.term, entry.index))
    }
}

/// Bytes that a batch with `records` bytes of records takes, with the gap behind it.
pub(crate) fn batch_len(layout: Layout, records: usize) -> u64 {
    (layout.batch_header_bytes() + records).next_multiple_of(BATCH_ALIGN) as u64
}

fn batch_crc(file_id: u64, header: &[u8]) -> u32 {
    let seed = crc32c(&file_id.to_le_bytes());
    crc32c_append(seed, header.get(8..).unwrap_or_default())
}

//! Reading of a file: its batches and records in order, and classification of damage.
//!
//! A crash leaves a torn end: the last batch, or a part of it, is missing, and no record behind it was
//! ever confirmed. Corruption is any other damage: bytes that were durable have changed. Each batch has
//! the position up to which all records were durable when it was written, which distinguishes the two.

use crc32c::crc32c;

use crate::format::{
    BATCH_ALIGN, BatchHeader, EntryHeader, FIRST_BATCH, Flags, Layout, Lsn, RECORD_HEADER_BYTES,
    ReadRecord, RecordHeader, read_record,
};
use crate::limits::NUMBER_MAX;

/// A record that was read from the log.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Position of the record.
    pub lsn: Lsn,
    /// Position of the record that this one is about; 0 for none.
    pub target: Lsn,
    /// Kind of the record; the log does not interpret it.
    pub kind: u8,
    /// Effect of the record on others.
    pub flags: Flags,
    /// Number of references that the record began with.
    pub references: u16,
    /// Reserved bytes of the header.
    pub(crate) reserved: u32,
    /// Content of the record.
    pub payload: &'a [u8],
}

impl<'a> Record<'a> {
    pub(crate) fn new(header: RecordHeader, payload: &'a [u8]) -> Self {
        Self {
            lsn: header.lsn,
            target: header.target,
            kind: header.kind,
            flags: header.flags,
            references: header.references,
            reserved: header.reserved,
            payload,
        }
    }
}

/// A range of bytes that were durable and have changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Corruption {
    pub(crate) offset: usize,
    pub(crate) len: usize,
    /// Position of the last record before the range.
    pub(crate) after: Lsn,
    /// Position and kind of the record that the range seems to be.
    pub(crate) record: Option<(Lsn, u8)>,
}

impl Corruption {
    /// A range whose former content is unknown.
    pub(crate) fn of_unknown(offset: usize, len: usize, after: Lsn) -> Self {
        Self { offset, len, after, record: None }
    }
}

/// A file to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScannedFile {
    pub(crate) id: u64,
    pub(crate) log_id: u64,
    pub(crate) layout: Layout,
    /// First position of its range.
    pub(crate) first: Lsn,
    /// Index of the entry before its first.
    pub(crate) before: u64,
    /// The end of a sealed file is known; an unsealed one was the active segment when the log was last used.
    pub(crate) is_sealed: bool,
}

/// Content of a file, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scanned<'a> {
    /// An entry begins; its records follow.
    Entry(ScannedEntry),
    /// A record.
    Record(Record<'a>),
}

/// An entry of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScannedEntry {
    pub(crate) header: EntryHeader,
    /// Last position that it covers.
    pub(crate) last: Lsn,
    /// Offset of its header, in bytes.
    pub(crate) offset: u64,
}

/// Result of reading a file.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// End of the last good batch, in bytes.
    pub(crate) end: usize,
    /// Last position that the batches cover.
    pub(crate) last: Lsn,
    /// Order of the last batch: its last position, or its index. Orders ascend, and headers tell how far the log was
    /// durable as such a number.
    order: u64,
    /// Number of records read.
    pub(crate) records: u64,
    /// Damage to records that were durable.
    pub(crate) corruptions: Vec<Corruption>,
    /// Length of a torn end, in bytes.
    pub(crate) torn_bytes: usize,
}

/// Reads the batches in `bytes`, a whole file, and passes entries and records to `each`.
pub(crate) fn scan<'a>(
    bytes: &'a [u8],
    file: ScannedFile,
    each: &mut dyn FnMut(Scanned<'a>),
) -> Scan {
    let last = Lsn(file.first.0.saturating_sub(1));
    let order = match file.layout {
        Layout::Batches => last.0,
        Layout::Entries => file.before,
    };
    let header_bytes = file.layout.batch_header_bytes();
    let mut scan = Scan { end: FIRST_BATCH as usize, last, order, ..Scan::default() };
    // The CRC of the batch before, as far as it is known.
    let mut previous = Some(0);
    while scan.end < bytes.len() {
        let at = scan.end;
        let Some((header, crc)) = batch_at(bytes, file, at, &scan, previous) else {
            let next = find_batch(bytes, file, at + BATCH_ALIGN, &scan);
            match next {
                Some((offset, header)) if file.is_sealed || header.synced > scan.order => {
                    scan.corruptions.push(Corruption::of_unknown(at, offset - at, scan.last));
                    scan.end = offset;
                    previous = None;
                    continue;
                }
                None if file.is_sealed => {
                    scan.corruptions.push(Corruption::of_unknown(at, bytes.len() - at, scan.last));
                    scan.end = bytes.len();
                }
                Some(_) | None => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    let used = rest.iter().rposition(|byte| *byte != 0);
                    scan.torn_bytes = used.map_or(0, |used| used + 1);
                }
            }
            break;
        };
        let behind = at + usize::try_from(header.whole_len()).unwrap_or(usize::MAX);
        let order = order_of(&header);
        let was_durable = file.is_sealed || {
            let to = Scan { last: header.last, order, ..Scan::default() };
            find_batch(bytes, file, behind, &to).is_some_and(|(_, next)| next.synced >= order)
        };
        let records = bytes.get(at + header_bytes..behind).unwrap_or_default();
        let records = records.get(..header.length as usize).unwrap_or_default();
        let seed = header.record_seed(file.log_id, crc);
        if !was_durable && !is_whole(&header, seed, records) {
            // No record of it was confirmed, so the whole batch is dropped.
            scan.torn_bytes = behind - at;
            break;
        }
        let damages = scan.corruptions.len();
        if let Some(entry) = header.entry {
            let offset = at as u64;
            each(Scanned::Entry(ScannedEntry { header: entry, last: header.last, offset }));
        }
        let mut position = 0;
        for _ in 0..header.count {
            let rest = records.get(position..).unwrap_or_default();
            let bad = match read_record(seed, rest) {
                ReadRecord::Whole(record, payload)
                    if record.lsn > scan.last && record.lsn <= header.last =>
                {
                    position += RECORD_HEADER_BYTES + payload.len();
                    scan.records += 1;
                    scan.last = record.lsn;
                    each(Scanned::Record(Record::new(record, payload)));
                    continue;
                }
                // A record outside the range of its batch, or out of order.
                ReadRecord::Whole(_, payload) => RECORD_HEADER_BYTES + payload.len(),
                ReadRecord::Damaged(len) => len,
                ReadRecord::Cut if rest.is_empty() => break,
                ReadRecord::Cut => rest.len(),
            };
            let offset = at + header_bytes + position;
            // The position of a damaged record is probably right if it fits in here.
            let seems = RecordHeader::decode(rest).map(|header| (header.lsn, header.kind));
            let record = seems.filter(|(lsn, _)| *lsn > scan.last && *lsn <= header.last);
            scan.corruptions.push(Corruption { offset, len: bad, after: scan.last, record });
            position += bad;
        }
        // Octets that belong to no record, such as those of a membership.
        if scan.corruptions.len() == damages
            && header.entry.is_some_and(|entry| entry.octets_crc != crc32c(records))
        {
            let damage = Corruption::of_unknown(at + header_bytes, records.len(), scan.last);
            scan.corruptions.push(damage);
        }
        scan.last = header.last;
        scan.order = order;
        scan.end = behind;
        previous = Some(crc);
    }
    scan
}

/// Order of a batch: its last position, or its index.
fn order_of(header: &BatchHeader) -> u64 {
    header.entry.map_or(header.last.0, |entry| entry.index)
}

/// True if the CRCs of all records of a batch match.
pub(crate) fn is_whole(header: &BatchHeader, seed: u32, records: &[u8]) -> bool {
    if let Some(entry) = header.entry {
        return entry.octets_crc == crc32c(records);
    }
    let mut position = 0;
    for _ in 0..header.count {
        match read_record(seed, records.get(position..).unwrap_or_default()) {
            ReadRecord::Whole(_, payload) => position += RECORD_HEADER_BYTES + payload.len(),
            ReadRecord::Damaged(_) | ReadRecord::Cut => return false,
        }
    }
    position == records.len()
}

/// The valid batch at `at`, if there is one that may follow what was read.
fn batch_at(
    bytes: &[u8],
    file: ScannedFile,
    at: usize,
    read: &Scan,
    previous: Option<u32>,
) -> Option<(BatchHeader, u32)> {
    let rest = bytes.get(at..)?;
    let (header, crc) = BatchHeader::read(file.layout, file.id, rest)?;
    let follows = match header.entry {
        None => header.first > read.last && header.last >= header.first,
        Some(entry) => {
            entry.index > read.order
                && header.first > read.last
                && header.last.0 >= header.first.0 - 1
        }
    };
    let in_range = header.last.0 <= NUMBER_MAX && order_of(&header) <= NUMBER_MAX;
    let chained = previous.is_none_or(|previous| previous == header.previous_crc);
    let fits = header.whole_len() <= rest.len() as u64;
    (follows && in_range && chained && fits).then_some((header, crc))
}

/// The first valid batch at or behind `from` that may follow what was read.
fn find_batch(
    bytes: &[u8],
    file: ScannedFile,
    from: usize,
    read: &Scan,
) -> Option<(usize, BatchHeader)> {
    let mut at = from.next_multiple_of(BATCH_ALIGN);
    while at + file.layout.batch_header_bytes() <= bytes.len() {
        if let Some((header, _)) = batch_at(bytes, file, at, read, None) {
            return Some((at, header));
        }
        at += BATCH_ALIGN;
    }
    None
}

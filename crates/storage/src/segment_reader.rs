//! Reading of a file: its batches and records in order, and classification of damage.
//!
//! A crash leaves a torn end: the last batch, or a part of it, is missing, and no record behind it was
//! ever confirmed. Corruption is any other damage: bytes that were durable have changed. Each batch has
//! the position up to which all records were durable when it was written, which distinguishes the two.

use crate::format::{
    BATCH_ALIGN, BATCH_HEADER_BYTES, BatchHeader, FIRST_BATCH, Flags, Lsn, RECORD_HEADER_BYTES,
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
    fn new(header: RecordHeader, payload: &'a [u8]) -> Self {
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

/// Result of reading a file.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// End of the last good batch, in bytes.
    pub(crate) end: usize,
    /// Last position that the batches cover.
    pub(crate) last: Lsn,
    /// Largest position that the batches report as durable.
    pub(crate) synced: Lsn,
    /// Number of records read.
    pub(crate) records: u64,
    /// Damage to records that were durable.
    pub(crate) corruptions: Vec<Corruption>,
    /// Length of a torn end, in bytes.
    pub(crate) torn_bytes: usize,
}

/// Reads the batches in `bytes`, a whole file, and passes the records to `each`. The end of a sealed file
/// is known; an unsealed one was the active segment when the log was last used.
pub(crate) fn scan<'a>(
    bytes: &'a [u8],
    file_id: u64,
    first: Lsn,
    is_sealed: bool,
    each: &mut dyn FnMut(Record<'a>),
) -> Scan {
    let mut scan =
        Scan { end: FIRST_BATCH as usize, last: Lsn(first.0.saturating_sub(1)), ..Scan::default() };
    // The CRC of the batch before, as far as it is known.
    let mut previous = Some(0);
    while scan.end < bytes.len() {
        let at = scan.end;
        let Some((header, crc)) = batch_at(bytes, file_id, at, scan.last, previous) else {
            let next = find_batch(bytes, file_id, at + BATCH_ALIGN, scan.last);
            match next {
                Some((offset, header)) if is_sealed || header.synced > scan.last => {
                    scan.corruptions.push(Corruption::of_unknown(at, offset - at, scan.last));
                    scan.end = offset;
                    previous = None;
                    continue;
                }
                None if is_sealed => {
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
        let was_durable = is_sealed
            || find_batch(bytes, file_id, behind, header.last)
                .is_some_and(|(_, next)| next.synced >= header.last);
        let records = bytes.get(at + BATCH_HEADER_BYTES..behind).unwrap_or_default();
        let records = records.get(..header.length as usize).unwrap_or_default();
        if !was_durable && !is_whole(crc, header.count, records) {
            // No record of it was confirmed, so the whole batch is dropped.
            scan.torn_bytes = behind - at;
            break;
        }
        let mut position = 0;
        for _ in 0..header.count {
            let rest = records.get(position..).unwrap_or_default();
            let bad = match read_record(crc, rest) {
                ReadRecord::Whole(record, payload)
                    if record.lsn > scan.last && record.lsn <= header.last =>
                {
                    position += RECORD_HEADER_BYTES + payload.len();
                    scan.records += 1;
                    scan.last = record.lsn;
                    each(Record::new(record, payload));
                    continue;
                }
                // A record outside the range of its batch, or out of order.
                ReadRecord::Whole(_, payload) => RECORD_HEADER_BYTES + payload.len(),
                ReadRecord::Damaged(len) => len,
                ReadRecord::Cut if rest.is_empty() => break,
                ReadRecord::Cut => rest.len(),
            };
            let offset = at + BATCH_HEADER_BYTES + position;
            // The position of a damaged record is probably right if it fits in here.
            let seems = RecordHeader::decode(rest).map(|header| (header.lsn, header.kind));
            let record = seems.filter(|(lsn, _)| *lsn > scan.last && *lsn <= header.last);
            scan.corruptions.push(Corruption { offset, len: bad, after: scan.last, record });
            position += bad;
        }
        scan.last = header.last;
        scan.synced = scan.synced.max(header.synced);
        scan.end = behind;
        previous = Some(crc);
    }
    scan
}

/// True if the CRCs of all records of a batch match.
fn is_whole(crc: u32, count: u32, records: &[u8]) -> bool {
    let mut position = 0;
    for _ in 0..count {
        match read_record(crc, records.get(position..).unwrap_or_default()) {
            ReadRecord::Whole(_, payload) => position += RECORD_HEADER_BYTES + payload.len(),
            ReadRecord::Damaged(_) | ReadRecord::Cut => return false,
        }
    }
    position == records.len()
}

/// The valid batch at `at`, if there is one that may follow position `last`.
fn batch_at(
    bytes: &[u8],
    file_id: u64,
    at: usize,
    last: Lsn,
    previous: Option<u32>,
) -> Option<(BatchHeader, u32)> {
    let rest = bytes.get(at..)?;
    let (header, crc) = BatchHeader::read(file_id, rest)?;
    let follows = header.first > last && header.last >= header.first && header.last.0 <= NUMBER_MAX;
    let chained = previous.is_none_or(|previous| previous == header.previous_crc);
    let fits = header.whole_len() <= rest.len() as u64;
    (follows && chained && fits).then_some((header, crc))
}

/// The first valid batch at or behind `from` that may follow position `last`.
fn find_batch(bytes: &[u8], file_id: u64, from: usize, last: Lsn) -> Option<(usize, BatchHeader)> {
    let mut at = from.next_multiple_of(BATCH_ALIGN);
    while at + BATCH_HEADER_BYTES <= bytes.len() {
        if let Some((header, _)) = batch_at(bytes, file_id, at, last, None) {
            return Some((at, header));
        }
        at += BATCH_ALIGN;
    }
    None
}

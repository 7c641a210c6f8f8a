//! Reading a file: its batches and records in order, and what to make of damage.
//!
//! A crash leaves a torn end: the last batch, or a part of it, is missing, and nothing behind it was
//! ever promised to anybody. Rot is anything else: octets that were durable and have changed. A batch
//! says up to where everything was durable when it was written, which tells the two apart.

use crate::format::{
    BATCH_ALIGN, BATCH_HEADER_BYTES, BatchHeader, FIRST_BATCH, Flags, Lsn, RECORD_HEADER_BYTES,
    ReadRecord, RecordHeader, read_record,
};
use crate::limits::NUMBER_MAX;

/// A record as it is read back.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its position.
    pub lsn: Lsn,
    /// The record it is about; 0 for none.
    pub target: Lsn,
    /// What it is.
    pub kind: u8,
    /// What it means to the log.
    pub flags: Flags,
    /// How many references it began with.
    pub references: u16,
    /// Reserved bytes of the header.
    pub(crate) reserved: u32,
    /// What it says.
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

/// Octets that were durable and are not what they were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rot {
    pub(crate) offset: usize,
    pub(crate) len: usize,
    /// The last position that was read before it.
    pub(crate) after: Lsn,
    /// What record it seems to be: its position and its kind.
    pub(crate) record: Option<(Lsn, u8)>,
}

impl Rot {
    /// Octets of which nobody knows what they were.
    pub(crate) fn of_batches(offset: usize, len: usize, after: Lsn) -> Self {
        Self { offset, len, after, record: None }
    }
}

/// What a file held.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Where its last good batch ends.
    pub(crate) end: usize,
    /// The last position that its batches cover.
    pub(crate) last: Lsn,
    /// What the batches say was durable.
    pub(crate) synced: Lsn,
    /// Records read.
    pub(crate) records: u64,
    /// Damage to what was durable.
    pub(crate) rot: Vec<Rot>,
    /// Octets of a torn end.
    pub(crate) torn: usize,
}

/// Reads the batches in `octets`, the whole file up to its known end. `is_sealed` says that the end is
/// known; otherwise the file was being written when it was last used.
pub(crate) fn scan<'a>(
    octets: &'a [u8],
    file_id: u64,
    first: Lsn,
    is_sealed: bool,
    each: &mut dyn FnMut(Record<'a>),
) -> Scan {
    let mut scan =
        Scan { end: FIRST_BATCH as usize, last: Lsn(first.0.saturating_sub(1)), ..Scan::default() };
    // The CRC of the batch before, as far as it is known.
    let mut previous = Some(0);
    while scan.end < octets.len() {
        let at = scan.end;
        let Some((header, crc)) = batch_at(octets, file_id, at, scan.last, previous) else {
            let next = find_batch(octets, file_id, at + BATCH_ALIGN, scan.last);
            match next {
                Some((offset, header)) if is_sealed || header.synced > scan.last => {
                    scan.rot.push(Rot::of_batches(at, offset - at, scan.last));
                    scan.end = offset;
                    previous = None;
                    continue;
                }
                None if is_sealed => {
                    scan.rot.push(Rot::of_batches(at, octets.len() - at, scan.last));
                    scan.end = octets.len();
                }
                Some(_) | None => {
                    let rest = octets.get(at..).unwrap_or_default();
                    let used = rest.iter().rposition(|octet| *octet != 0);
                    scan.torn = used.map_or(0, |used| used + 1);
                }
            }
            break;
        };
        let behind = at + usize::try_from(header.whole_len()).unwrap_or(usize::MAX);
        let was_durable = is_sealed
            || find_batch(octets, file_id, behind, header.last)
                .is_some_and(|(_, next)| next.synced >= header.last);
        let records = octets.get(at + BATCH_HEADER_BYTES..behind).unwrap_or_default();
        let records = records.get(..header.length as usize).unwrap_or_default();
        if !was_durable && !is_whole(crc, header.count, records) {
            // Nobody was told of anything in it.
            scan.torn = behind - at;
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
                // Out of its batch or out of order.
                ReadRecord::Whole(_, payload) => RECORD_HEADER_BYTES + payload.len(),
                ReadRecord::Damaged(len) => len,
                ReadRecord::Cut if rest.is_empty() => break,
                ReadRecord::Cut => rest.len(),
            };
            let offset = at + BATCH_HEADER_BYTES + position;
            // Of a damaged record the position is right, probably, if it is where it belongs.
            let seems = RecordHeader::decode(rest).map(|header| (header.lsn, header.kind));
            let record = seems.filter(|(lsn, _)| *lsn > scan.last && *lsn <= header.last);
            scan.rot.push(Rot { offset, len: bad, after: scan.last, record });
            position += bad;
        }
        scan.last = header.last;
        scan.synced = scan.synced.max(header.synced);
        scan.end = behind;
        previous = Some(crc);
    }
    scan
}

/// Whether all records of a batch are as they were written.
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

/// The valid batch at `at` that may follow `last`.
fn batch_at(
    octets: &[u8],
    file_id: u64,
    at: usize,
    last: Lsn,
    previous: Option<u32>,
) -> Option<(BatchHeader, u32)> {
    let rest = octets.get(at..)?;
    let (header, crc) = BatchHeader::read(file_id, rest)?;
    let follows = header.first > last && header.last >= header.first && header.last.0 <= NUMBER_MAX;
    let chained = previous.is_none_or(|previous| previous == header.previous_crc);
    let fits = header.whole_len() <= rest.len() as u64;
    (follows && chained && fits).then_some((header, crc))
}

/// The first valid batch from `from` on that comes after `last`.
fn find_batch(octets: &[u8], file_id: u64, from: usize, last: Lsn) -> Option<(usize, BatchHeader)> {
    let mut at = from.next_multiple_of(BATCH_ALIGN);
    while at + BATCH_HEADER_BYTES <= octets.len() {
        if let Some((header, _)) = batch_at(octets, file_id, at, last, None) {
            return Some((at, header));
        }
        at += BATCH_ALIGN;
    }
    None
}

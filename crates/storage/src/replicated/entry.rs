//! An entry of a replicated log: a batch of records with its index, its term and its time.

use bytes::Bytes;

use crate::format::{
    EntryKind, Lsn, RECORD_HEADER_BYTES, ReadRecord, RecordHeader, entry_seed, read_record,
};
use crate::limits::{ENTRY_BYTES_MAX, MEMBERSHIP_BYTES_MAX, NUMBER_MAX};
use crate::segment_reader::Record;

/// Number of an entry in the log of a group, from 1; 0 means none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct EntryIndex(pub u64);

impl std::fmt::Display for EntryIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Term of a leader; 0 is before the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Term(pub u64);

impl std::fmt::Display for Term {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// An entry of the log of a group. Clones share their octets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// Number of the entry.
    pub index: EntryIndex,
    /// Term of the leader that has proposed the entry.
    pub term: Term,
    /// Time of the proposal on the axis of the group, in microseconds.
    pub axis_us: u64,
    /// Content of the entry.
    pub content: EntryContent,
}

/// Content of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EntryContent {
    /// Records of the vhost.
    Records(EntryRecords),
    /// No content: the first entry of a leader, or references that end without a record.
    Empty,
    /// A change of the members, in the encoding of the layer above.
    Membership(Bytes),
}

/// The records of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryRecords {
    /// Position of the first record.
    pub first: Lsn,
    /// Last position that the entry covers, perhaps beyond its last record.
    pub last: Lsn,
    /// Number of records, at least 1.
    pub count: u32,
    /// The encoded records. Their CRCs begin with the CRC of the log's id, the term and the index.
    pub bytes: Bytes,
}

/// Facts that the leader knows about the records of an entry before it is committed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct EntryFacts {
    /// Position and number of references of each record.
    pub(crate) records: Vec<(Lsn, u16)>,
    /// Records of which the entry ends a reference, once for each reference.
    pub(crate) released: Vec<Lsn>,
}

/// Fault of an entry that came over a link or was read.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum EntryFault {
    /// A number is outside its range.
    #[error("entry {index} has an impossible {field}")]
    Number {
        /// Index that the entry claims.
        index: EntryIndex,
        /// The field.
        field: &'static str,
    },
    /// A record is cut, or bytes are left behind the last one.
    #[error("the records of entry {index} are not as long as it says")]
    Length {
        /// Index of the entry.
        index: EntryIndex,
    },
    /// The CRC of a record does not match.
    #[error("a record of entry {index} is damaged, at octet {offset}")]
    Damaged {
        /// Index of the entry.
        index: EntryIndex,
        /// Offset of the record in the octets of the entry.
        offset: usize,
    },
    /// A record is not above the one before, or outside the positions of its entry.
    #[error("record {lsn} of entry {index} is out of order")]
    Order {
        /// Index of the entry.
        index: EntryIndex,
        /// Position of the record.
        lsn: Lsn,
    },
}

impl EntryContent {
    /// Kind of the content on the disk.
    pub(crate) fn kind(&self) -> EntryKind {
        match self {
            Self::Records(_) => EntryKind::Records,
            Self::Empty => EntryKind::Empty,
            Self::Membership(_) => EntryKind::Membership,
        }
    }

    /// The octets of the content.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        match self {
            Self::Records(records) => &records.bytes,
            Self::Empty => &[],
            Self::Membership(bytes) => bytes,
        }
    }
}

impl LogEntry {
    /// Octets of the content.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.content {
            EntryContent::Records(records) => records.bytes.len(),
            EntryContent::Membership(bytes) => bytes.len(),
            EntryContent::Empty => 0,
        }
    }

    /// The records of the entry, in order, as they were verified.
    pub fn records(&self) -> impl Iterator<Item = Result<Record<'_>, EntryFault>> {
        let (count, mut rest) = match &self.content {
            EntryContent::Records(records) => (records.count, &*records.bytes),
            EntryContent::Empty | EntryContent::Membership(_) => (0, &[][..]),
        };
        let index = self.index;
        (0..count).map(move |_| {
            let (header, payload, behind) =
                split_record(rest).ok_or(EntryFault::Length { index })?;
            rest = behind;
            Ok(Record::new(header, payload))
        })
    }
}

/// The first record of `bytes`, its payload, and what is behind it; `None` if it is cut.
fn split_record(bytes: &[u8]) -> Option<(RecordHeader, &[u8], &[u8])> {
    let header = RecordHeader::decode(bytes)?;
    let (record, behind) =
        bytes.split_at_checked(RECORD_HEADER_BYTES.checked_add(header.length as usize)?)?;
    Some((header, record.get(RECORD_HEADER_BYTES..)?, behind))
}

/// Checks an entry of the log `log_id`: the ranges of its numbers, and structure, order and CRC of its records.
///
/// # Errors
/// [`EntryFault`]: the first fault.
pub fn verify_entry(log_id: u64, entry: &LogEntry) -> Result<(), EntryFault> {
    let LogEntry { index, term, axis_us, content } = entry;
    let index = *index;
    let fault = |field| Err(EntryFault::Number { index, field });
    if !(1..=NUMBER_MAX).contains(&index.0) {
        return fault("index");
    }
    if term.0 > NUMBER_MAX {
        return fault("term");
    }
    if *axis_us > NUMBER_MAX {
        return fault("time");
    }
    match content {
        EntryContent::Empty => Ok(()),
        EntryContent::Membership(bytes) if bytes.len() > MEMBERSHIP_BYTES_MAX => fault("length"),
        EntryContent::Membership(_) => Ok(()),
        EntryContent::Records(records) => {
            let EntryRecords { first, last, count, bytes } = records;
            if first.0 == 0 || first > last || last.0 > NUMBER_MAX {
                return fault("position");
            }
            if *count == 0 || bytes.len() > ENTRY_BYTES_MAX {
                return fault("length");
            }
            verify_records(entry_seed(log_id, term.0, index.0), index, records)
        }
    }
}

/// Checks that the records are whole, ascend, and are all there is.
fn verify_records(seed: u32, index: EntryIndex, records: &EntryRecords) -> Result<(), EntryFault> {
    let EntryRecords { first, last, count, bytes } = records;
    let mut offset = 0;
    let mut before = None;
    for _ in 0..*count {
        let rest = bytes.get(offset..).unwrap_or_default();
        let (header, payload) = match read_record(seed, rest) {
            ReadRecord::Whole(header, payload) => (header, payload),
            ReadRecord::Damaged(_) => return Err(EntryFault::Damaged { index, offset }),
            ReadRecord::Cut => return Err(EntryFault::Length { index }),
        };
        let lsn = header.lsn;
        let follows = before.map_or(lsn == *first, |before| lsn > before) && lsn <= *last;
        if !follows || header.target >= lsn {
            return Err(EntryFault::Order { index, lsn });
        }
        before = Some(lsn);
        offset += RECORD_HEADER_BYTES + payload.len();
    }
    if offset == bytes.len() { Ok(()) } else { Err(EntryFault::Length { index }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Flags;
    use crate::write_batch::{NewRecord, WriteBatch};

    const LOG: u64 = 7;

    fn batch(lsns: &[u64]) -> WriteBatch {
        let mut batch = WriteBatch::default();
        for lsn in lsns {
            let record = NewRecord {
                lsn: Lsn(*lsn),
                target: Lsn(0),
                kind: 1,
                flags: Flags::NONE,
                references: 1,
                format_version: 1,
                is_joined: false,
            };
            batch.push(record, |bytes| bytes.extend([9; 20]), Some(crate::Body::new(vec![1; 7])));
        }
        batch
    }

    fn entry() -> LogEntry {
        let sealed = batch(&[4, 5, 8]).seal_as_entry(LOG, EntryIndex(3), Term(2), 55);
        sealed.unwrap().0
    }

    fn records(entry: &mut LogEntry) -> &mut EntryRecords {
        match &mut entry.content {
            EntryContent::Records(records) => records,
            EntryContent::Empty | EntryContent::Membership(_) => panic!("an entry with records"),
        }
    }

    #[test]
    fn entry_of_a_batch_is_whole() {
        let entry = entry();
        assert_eq!(verify_entry(LOG, &entry), Ok(()));
        let read: Vec<_> = entry.records().map(|record| record.unwrap().lsn.0).collect();
        assert_eq!(read, [4, 5, 8]);
    }

    #[test]
    fn entry_of_another_place_is_damaged() {
        let damaged = |index| Err(EntryFault::Damaged { index: EntryIndex(index), offset: 0 });
        assert_eq!(verify_entry(LOG + 1, &entry()), damaged(3));
        assert_eq!(verify_entry(LOG, &LogEntry { term: Term(3), ..entry() }), damaged(3));
        assert_eq!(verify_entry(LOG, &LogEntry { index: EntryIndex(4), ..entry() }), damaged(4));
    }

    #[test]
    fn entry_with_any_changed_octet_is_refused() {
        let whole = entry();
        let octets = whole.content.octets().to_vec();
        for at in 0..octets.len() {
            for bit in 0..8 {
                let mut octets = octets.clone();
                octets[at] ^= 1 << bit;
                let mut changed = whole.clone();
                records(&mut changed).bytes = octets.into();
                assert!(verify_entry(LOG, &changed).is_err(), "octet {at}");
                // Nothing panics on what was not verified.
                let _ = changed.records().count();
            }
            let mut cut = whole.clone();
            records(&mut cut).bytes = octets[..at].to_vec().into();
            assert!(verify_entry(LOG, &cut).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn entry_with_impossible_numbers_is_refused() {
        let changes: [fn(&mut LogEntry); 12] = [
            |entry| entry.index = EntryIndex(0),
            |entry| entry.index = EntryIndex(u64::MAX),
            |entry| entry.term = Term(u64::MAX),
            |entry| entry.axis_us = u64::MAX,
            |entry| records(entry).count = 0,
            |entry| records(entry).count = 2,
            |entry| records(entry).count = u32::MAX,
            |entry| records(entry).first = Lsn(0),
            |entry| records(entry).first = Lsn(3),
            |entry| records(entry).first = Lsn(9),
            |entry| records(entry).last = Lsn(7),
            |entry| records(entry).last = Lsn(u64::MAX),
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut changed = entry();
            change(&mut changed);
            assert!(verify_entry(LOG, &changed).is_err(), "change {at}");
        }
        let long = EntryContent::Membership(vec![0; MEMBERSHIP_BYTES_MAX + 1].into());
        assert!(verify_entry(LOG, &LogEntry { content: long, ..entry() }).is_err());
    }

    #[test]
    fn elided_batch_needs_no_entry() {
        let mut batch = batch(&[4, 5]);
        assert!(batch.release(Lsn(4)) && batch.release(Lsn(5)));
        let seal = |batch: &mut WriteBatch| batch.seal_as_entry(LOG, EntryIndex(3), Term(2), 55);
        assert_eq!((seal(&mut batch), batch.last()), (None, Lsn(5)));
        // A reference that ended without a record is told at the commit of an entry.
        batch.release(Lsn(2));
        let (entry, facts) = seal(&mut batch).unwrap();
        assert_eq!((entry.content, facts.released), (EntryContent::Empty, vec![Lsn(2)]));
    }
}

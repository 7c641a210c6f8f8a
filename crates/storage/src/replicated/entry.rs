//! An entry of a replicated log: a batch of records with its index, its term and its time.

use bytes::Bytes;

use crate::format::Lsn;
use crate::write_batch::WriteBatch;

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
    /// Nothing: the first entry of a leader, or references that end without a record.
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

/// Checks an entry of the log `log_id`: the ranges of its numbers, and structure, order and CRC of its records.
///
/// # Errors
/// [`EntryFault`]: the first fault.
pub fn verify_entry(log_id: u64, entry: &LogEntry) -> Result<(), EntryFault> {
    let _ = (log_id, entry);
    unimplemented!()
}

impl WriteBatch {
    /// Makes an entry of the records of the batch. `None` if all were elided and no reference ends: then no entry
    /// is needed. The batch stays as it is; [`WriteBatch::clear`] readies it for the next records.
    pub fn seal_as_entry(
        &mut self,
        log_id: u64,
        index: EntryIndex,
        term: Term,
        axis_us: u64,
    ) -> Option<(LogEntry, EntryFacts)> {
        let _ = (log_id, index, term, axis_us);
        unimplemented!()
    }
}

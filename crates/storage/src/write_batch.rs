//! One batch of records that waits to be written.
//!
//! A record whose last reference ends while its batch is filled is dropped, with the record that ended
//! it: a message that was acknowledged before its batch was full takes no byte on disk. The memory of
//! dropped records is given back when it is much, so that a message that passes through a hundred
//! queues before its batch is written is in memory once.

use crate::batch_encoder::{BatchEncoder, Body};
use crate::format::{Flags, Lsn, RecordHeader};
use crate::limits::{DROPPED_BYTES_MAX, IDLE_BATCH_BYTES};

/// A record to append.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord {
    /// Position of the record, above all earlier ones.
    pub lsn: Lsn,
    /// Position of the record that this one is about; 0 for none.
    pub target: Lsn,
    /// Kind of the record; the log does not interpret it.
    pub kind: u8,
    /// Effect of the record on others.
    pub flags: Flags,
    /// Number of references that keep the record.
    pub references: u16,
    /// Oldest version of the format whose builds know the record, at most [`FORMAT_VERSION`].
    ///
    /// [`FORMAT_VERSION`]: crate::FORMAT_VERSION
    pub format_version: u32,
    /// Joins the record to the one before: after a crash both are there or neither is.
    pub is_joined: bool,
}

/// Facts about a record in the batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchRecord {
    pub(crate) lsn: Lsn,
    pub(crate) references: u16,
    /// References that have not ended. A record that had some and has none left is dropped.
    references_left: u16,
    /// The record ends a reference of a record on disk, or of an earlier batch: it is written even when
    /// its own references have ended.
    is_required: bool,
}

impl BatchRecord {
    fn is_dropped(&self) -> bool {
        self.references > 0 && self.references_left == 0
    }
}

/// Records that are written and synced together.
#[derive(Default, Debug)]
pub struct WriteBatch {
    pub(crate) encoder: BatchEncoder,
    /// One for each record in `encoder`, in order of positions.
    records: Vec<BatchRecord>,
    /// Records of this or an earlier batch of which a reference has ended, once for each reference.
    released: Vec<Lsn>,
    /// Position of the last record that was pushed, written or dropped.
    last: Lsn,
    /// Number of dropped records that `encoder` still holds.
    dropped: usize,
    /// Bytes of the dropped records, without their bodies.
    dropped_bytes: usize,
    /// Highest version of the format that a record of the batch needs, written or dropped; 0 without one.
    format_version: u32,
}

impl WriteBatch {
    /// True if there is nothing to write and no reference to end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last == Lsn(0) && self.released.is_empty()
    }

    /// Position of the last record that was pushed; 0 if none was.
    #[must_use]
    pub fn last(&self) -> Lsn {
        self.last
    }

    pub(crate) fn push(
        &mut self,
        record: NewRecord,
        payload: impl FnOnce(&mut Vec<u8>),
        body: Option<Body>,
    ) {
        let NewRecord { lsn, target, kind, flags, references, format_version, is_joined: _ } =
            record;
        // Recovery skips a record that is out of order, so none may be written.
        assert!(lsn > self.last, "record {lsn} is pushed behind record {}", self.last);
        self.last = lsn;
        self.format_version = self.format_version.max(format_version);
        let releases = flags.has(Flags::RELEASES);
        let is_target_dropped = releases && self.release(target);
        // A record that ends many references may end some of records that are written.
        if is_target_dropped && references == 0 && !flags.has(Flags::ENDS_MANY) {
            return;
        }
        let header = RecordHeader { length: 0, lsn, target, reserved: 0, kind, flags, references };
        self.encoder.push(&header, payload, body);
        let is_required = releases && !is_target_dropped;
        let references_left = references;
        self.records.push(BatchRecord { lsn, references, references_left, is_required });
    }

    /// Ends one reference of the record at `target`. True if that record is in this batch and is
    /// dropped, so that no record has to end the reference on disk.
    pub(crate) fn release(&mut self, target: Lsn) -> bool {
        if let Ok(at) = self.records.binary_search_by_key(&target, |record| record.lsn)
            && let Some(record) = self.records.get_mut(at)
            && record.references_left > 0
        {
            record.references_left -= 1;
            if record.references_left == 0 {
                if record.is_required {
                    record.references = 0;
                    self.encoder.mark_spent(at);
                } else {
                    self.drop_record(at);
                }
                return true;
            }
        }
        self.released.push(target);
        false
    }

    /// Bytes of the records that will be written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.encoder.len() - self.dropped_bytes
    }

    /// Drops a record. Dropped records are removed when they take more room than the others: moving the
    /// others is cheaper than pushing them was.
    fn drop_record(&mut self, at: usize) {
        self.dropped += 1;
        self.encoder.drop_body(at);
        self.dropped_bytes += self.encoder.record_len(at);
        debug_assert!(self.dropped_bytes <= self.encoder.len(), "more is dropped than there is");
        if self.dropped_bytes > DROPPED_BYTES_MAX && self.dropped_bytes > self.bytes() {
            self.remove_dropped();
        }
    }

    /// Removes all records and keeps the buffers, up to a limit.
    pub fn clear(&mut self) {
        self.encoder.clear(IDLE_BATCH_BYTES);
        self.records.clear();
        self.records.shrink_to(IDLE_BATCH_BYTES / size_of::<BatchRecord>());
        self.released.clear();
        self.last = Lsn(0);
        self.dropped = 0;
        self.dropped_bytes = 0;
        self.format_version = 0;
    }

    /// Removes the dropped records from the buffers.
    pub(crate) fn remove_dropped(&mut self) {
        if self.dropped > 0 {
            let records = &self.records;
            self.encoder.retain(|at| records.get(at).is_some_and(|record| !record.is_dropped()));
            self.records.retain(|record| !record.is_dropped());
            self.dropped = 0;
            self.dropped_bytes = 0;
        }
        debug_assert_eq!(self.records.len(), self.encoder.count(), "each record has its facts");
    }

    /// The records to be written, after [`WriteBatch::remove_dropped`].
    pub(crate) fn records(&self) -> &[BatchRecord] {
        &self.records
    }

    /// Version of the format that the log must have before the batch is written; 0 if any suffices.
    pub(crate) fn format_version(&self) -> u32 {
        self.format_version
    }

    pub(crate) fn released(&self) -> &[Lsn] {
        &self.released
    }
}

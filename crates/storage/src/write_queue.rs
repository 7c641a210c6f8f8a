//! What waits to be written: batches, filled under the lock of whoever decides, written without it.
//!
//! A record whose last reference ends while its batch is filled is not written at all, and neither is
//! what ended it: a message that was acknowledged before its batch was full costs no octet on disk.
//! What it took in memory is given back when it is much, so that a message that goes through a hundred
//! queues before its batch begins is in memory once.
//!
//! A batch is full at [`BATCH_BYTES_MAX`]; the next record begins another one. A full batch is as good
//! as written: nothing that comes later changes it. So each batch is a state of its own, and the power
//! may go between any two of them.

use std::collections::VecDeque;

use crate::batch_encoder::{Batch, Body};
use crate::format::{Flags, Lsn, RecordHeader};
use crate::limits::{BATCH_BYTES_MAX, DROPPED_BYTES_MAX, IDLE_BATCH_BYTES, JOINED_BYTES_MAX};

/// A record to append.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord {
    /// Its position; above all before it.
    pub lsn: Lsn,
    /// The record it is about; 0 for none.
    pub target: Lsn,
    /// What it is.
    pub kind: u8,
    /// What it means to the log.
    pub flags: Flags,
    /// How many references keep it.
    pub references: u16,
    /// After a crash it is there if the record before it is, and only then.
    pub is_joined: bool,
}

/// What the log must know of a record that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) lsn: Lsn,
    pub(crate) references: u16,
    /// References that are left; without any a record that had some is dropped.
    left: u16,
    /// It ends a reference of a record that is on disk, or will be, and must tell that in any case.
    must_tell: bool,
}

impl Slot {
    fn is_dropped(&self) -> bool {
        self.references > 0 && self.left == 0
    }
}

/// Records that are written at once and synced at once.
#[derive(Default, Debug)]
pub struct WriteBatch {
    pub(crate) batch: Batch,
    slots: Vec<Slot>,
    /// References ended of records that were written before, or are to be written with this batch.
    released: Vec<Lsn>,
    /// The last position taken, whether it is written or not.
    last: Lsn,
    dropped: usize,
    /// Octets of the records that were dropped, without their bodies.
    dropped_bytes: usize,
}

impl WriteBatch {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last == Lsn(0) && self.released.is_empty()
    }

    /// The last position that was taken; 0 if none was.
    #[must_use]
    pub fn last(&self) -> Lsn {
        self.last
    }

    fn push(&mut self, record: NewRecord, payload: impl FnOnce(&mut Vec<u8>), body: Option<Body>) {
        let NewRecord { lsn, target, kind, flags, references, is_joined: _ } = record;
        self.last = lsn;
        let releases = flags.has(Flags::RELEASES);
        let is_dropped = releases && self.release(target);
        // What ends many may end references of records that are written all the same.
        if is_dropped && references == 0 && !flags.has(Flags::ENDS_MANY) {
            return;
        }
        let header = RecordHeader { length: 0, lsn, target, reserved: 0, kind, flags, references };
        self.batch.push(&header, payload, body);
        let must_tell = releases && !is_dropped;
        self.slots.push(Slot { lsn, references, left: references, must_tell });
    }

    /// Ends one reference of the record at `target`. True if that record waits here and is dropped,
    /// so that nothing needs to tell of it.
    fn release(&mut self, target: Lsn) -> bool {
        if let Ok(at) = self.slots.binary_search_by_key(&target, |slot| slot.lsn)
            && let Some(slot) = self.slots.get_mut(at)
            && slot.left > 0
        {
            slot.left -= 1;
            if slot.left == 0 {
                if slot.must_tell {
                    slot.references = 0;
                    self.batch.mark_spent(at);
                } else {
                    self.drop_record(at);
                }
                return true;
            }
        }
        self.released.push(target);
        false
    }

    /// Octets of records that are to be written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batch.len() - self.dropped_bytes
    }

    /// A record is not to be written. When those that are not take more room than those that are, all of
    /// them go: what is moved for that is less than what was pushed.
    fn drop_record(&mut self, at: usize) {
        self.dropped += 1;
        self.batch.forget_body(at);
        self.dropped_bytes += self.batch.record_len(at);
        if self.dropped_bytes > DROPPED_BYTES_MAX && self.dropped_bytes > self.bytes() {
            self.squeeze();
        }
    }

    /// Forgets everything and keeps its buffers.
    pub fn clear(&mut self) {
        self.batch.clear(IDLE_BATCH_BYTES);
        self.slots.clear();
        self.slots.shrink_to(IDLE_BATCH_BYTES / size_of::<Slot>());
        self.released.clear();
        self.last = Lsn(0);
        self.dropped = 0;
        self.dropped_bytes = 0;
    }

    /// Takes out what was dropped.
    pub(crate) fn squeeze(&mut self) {
        if self.dropped > 0 {
            let slots = &self.slots;
            self.batch.retain(|at| slots.get(at).is_some_and(|slot| !slot.is_dropped()));
            self.slots.retain(|slot| !slot.is_dropped());
            self.dropped = 0;
            self.dropped_bytes = 0;
        }
    }

    /// Of the records to be written, after `squeeze`.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(crate) fn released(&self) -> &[Lsn] {
        &self.released
    }
}

/// Records that wait to be written, in batches.
#[derive(Debug)]
pub struct WriteQueue {
    /// In order.
    full: VecDeque<WriteBatch>,
    full_bytes: usize,
    /// The one that is being filled.
    open: WriteBatch,
    batch_bytes_max: usize,
}

impl Default for WriteQueue {
    fn default() -> Self {
        Self::with_batches_of(BATCH_BYTES_MAX)
    }
}

impl WriteQueue {
    /// Nothing yet; a batch is full at so many octets of records.
    #[must_use]
    pub fn with_batches_of(batch_bytes_max: usize) -> Self {
        Self {
            full: VecDeque::new(),
            full_bytes: 0,
            open: WriteBatch::default(),
            batch_bytes_max: batch_bytes_max.min(BATCH_BYTES_MAX),
        }
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.open.is_empty()
    }

    /// Octets that wait to be written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.full_bytes + self.open.bytes()
    }

    /// The last position that was taken; 0 if none was.
    #[must_use]
    pub fn last(&self) -> Lsn {
        match self.full.back() {
            Some(full) if self.open.last == Lsn(0) => full.last,
            _ => self.open.last,
        }
    }

    /// Appends a record with what `payload` writes.
    pub fn push(&mut self, record: NewRecord, payload: impl FnOnce(&mut Vec<u8>)) {
        self.push_record(record, payload, None);
    }

    /// Appends a record with what `payload` writes and `body` behind it, which is not copied.
    pub fn push_with_body(
        &mut self,
        record: NewRecord,
        payload: impl FnOnce(&mut Vec<u8>),
        body: Body,
    ) {
        self.push_record(record, payload, Some(body));
    }

    fn push_record(
        &mut self,
        record: NewRecord,
        payload: impl FnOnce(&mut Vec<u8>),
        body: Option<Body>,
    ) {
        self.cut(record.is_joined);
        self.open.push(record, payload, body);
    }

    /// Ends one reference of the record at `target`; the next record tells of it, or one before did.
    pub fn release(&mut self, target: Lsn) {
        // What ends is left out of the batch with the record that tells of it, not of one before.
        self.cut(false);
        self.open.release(target);
    }

    /// Begins another batch if the one that is being filled is full.
    fn cut(&mut self, next_is_joined: bool) {
        let max = if next_is_joined { JOINED_BYTES_MAX } else { self.batch_bytes_max };
        if self.open.batch.len() < max {
            return;
        }
        self.open.squeeze();
        // Enough room again that the next look is as far away as what was moved is long.
        if self.open.batch.len() < max / 2 {
            return;
        }
        let full = std::mem::take(&mut self.open);
        self.full_bytes += full.batch.len();
        self.full.push_back(full);
    }

    /// Forgets everything and keeps its buffers.
    pub fn clear(&mut self) {
        self.full.clear();
        self.full_bytes = 0;
        self.open.clear();
    }

    /// Moves the first batch into `into`. True if there are more.
    ///
    /// # Panics
    /// When there is something in `into`: it would be lost.
    pub fn take_batch(&mut self, into: &mut WriteBatch) -> bool {
        assert!(into.is_empty(), "a batch would be lost");
        if let Some(first) = self.full.pop_front() {
            self.full_bytes -= first.batch.len();
            *into = first;
        } else {
            std::mem::swap(&mut self.open, into);
        }
        !self.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes a record of `len` octets about another.
    fn push(pending: &mut WriteQueue, (lsn, target): (u64, u64), references: u16, len: usize) {
        let flags = if target > 0 { Flags::RELEASES } else { Flags::NONE };
        let (lsn, target, is_joined) = (Lsn(lsn), Lsn(target), false);
        let record = NewRecord { lsn, target, kind: 1, flags, references, is_joined };
        pending.push(record, |octets| octets.resize(octets.len() + len, 7));
    }

    #[test]
    fn ended_records_free_their_bytes_before_the_write() {
        const LEN: usize = 300_000;
        let mut pending = WriteQueue::default();
        push(&mut pending, (1, 0), 1, LEN);
        // One that ends alone, and another of which one of two references ends.
        push(&mut pending, (2, 0), 1, 10);
        push(&mut pending, (3, 0), 2, 20);
        let mut before = 1;
        for lsn in 4..1000 {
            push(&mut pending, (lsn, before), 1, LEN);
            before = lsn;
            let octets = pending.open.batch.len();
            assert!(octets < 3 * LEN + DROPPED_BYTES_MAX, "{octets}");
        }
        pending.release(Lsn(2));
        pending.release(Lsn(3));
        assert_eq!(pending.open.released(), [Lsn(3)]);
        assert!(pending.bytes() < LEN + 1000);
        assert!(pending.full.is_empty());
        pending.open.squeeze();
        let left: Vec<u64> = pending.open.slots().iter().map(|slot| slot.lsn.0).collect();
        assert_eq!(left, [3, 999]);
        assert_eq!(pending.last(), Lsn(999));
    }
}

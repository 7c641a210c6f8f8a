//! Records that wait to be written, in batches. Filled under the lock of the vhost, written without it.
//!
//! A batch is full at [`BATCH_BYTES_MAX`]; the next record begins another one. Later records do not
//! change a full batch: each batch leaves a consistent state, and the power may fail between any two.

use std::collections::VecDeque;

use crate::batch_encoder::Body;
use crate::format::Lsn;
use crate::limits::{BATCH_BYTES_MAX, JOINED_BYTES_MAX};
use crate::write_batch::{NewRecord, WriteBatch};

/// Records that wait to be written, in batches.
#[derive(Debug)]
pub struct WriteQueue {
    /// Full batches, oldest first.
    full: VecDeque<WriteBatch>,
    full_bytes: usize,
    /// The batch that is being filled.
    open: WriteBatch,
    batch_bytes_max: usize,
}

impl Default for WriteQueue {
    fn default() -> Self {
        Self::with_batch_bytes_max(BATCH_BYTES_MAX)
    }
}

impl WriteQueue {
    /// An empty queue whose batches are full at `batch_bytes_max` bytes of records, at most at
    /// [`BATCH_BYTES_MAX`].
    #[must_use]
    pub fn with_batch_bytes_max(batch_bytes_max: usize) -> Self {
        Self {
            full: VecDeque::new(),
            full_bytes: 0,
            open: WriteBatch::default(),
            batch_bytes_max: batch_bytes_max.min(BATCH_BYTES_MAX),
        }
    }

    /// True if there is nothing to write and no reference to end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.open.is_empty()
    }

    /// Bytes of the records that wait.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.full_bytes + self.open.bytes()
    }

    /// Position of the last record that was pushed; 0 if none waits.
    #[must_use]
    pub fn last(&self) -> Lsn {
        match self.full.back() {
            Some(full) if self.open.last() == Lsn(0) => full.last(),
            _ => self.open.last(),
        }
    }

    /// Appends a record whose payload `payload` writes.
    ///
    /// # Panics
    /// If the position of the record is not above all earlier ones of its batch, or its payload is
    /// longer than `RECORD_BYTES_MAX`.
    pub fn push(&mut self, record: NewRecord, payload: impl FnOnce(&mut Vec<u8>)) {
        self.push_record(record, payload, None);
    }

    /// Appends a record whose payload is what `payload` writes, then `body`, which is not copied.
    ///
    /// # Panics
    /// As [`WriteQueue::push`].
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
        self.split_if_full(record.is_joined);
        self.open.push(record, payload, body);
    }

    /// Ends one reference of the record at `target`. The record that says so on disk is the next one, or
    /// was pushed before.
    pub fn release(&mut self, target: Lsn) {
        // Before the release: what ends is dropped from the batch of the record that ends it, not from
        // an earlier one.
        self.split_if_full(false);
        self.open.release(target);
    }

    /// Ends the open batch: no later record changes or drops one that waits now.
    pub fn end_batch(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let ended = std::mem::take(&mut self.open);
        self.full_bytes += ended.bytes();
        self.full.push_back(ended);
    }

    /// Begins another batch if the open one is full.
    fn split_if_full(&mut self, is_next_joined: bool) {
        let max = if is_next_joined { JOINED_BYTES_MAX } else { self.batch_bytes_max };
        if self.open.encoder.len() < max {
            return;
        }
        self.open.remove_dropped();
        // If at least half of the room is free again, filling it takes as long as the removal did.
        if self.open.encoder.len() < max / 2 {
            return;
        }
        let full = std::mem::take(&mut self.open);
        self.full_bytes += full.bytes();
        self.full.push_back(full);
    }

    /// Removes all records and keeps the buffers, up to a limit.
    pub fn clear(&mut self) {
        self.full.clear();
        self.full_bytes = 0;
        self.open.clear();
    }

    /// Moves the first batch into `into`. True if there are more.
    ///
    /// # Panics
    /// If `into` is not empty: its records would be lost.
    pub fn take_batch(&mut self, into: &mut WriteBatch) -> bool {
        assert!(into.is_empty(), "a batch would be lost");
        if let Some(first) = self.full.pop_front() {
            let left = self.full_bytes.checked_sub(first.bytes());
            self.full_bytes = left.expect("the bytes of each full batch are counted");
            *into = first;
        } else {
            std::mem::swap(&mut self.open, into);
        }
        debug_assert!(!self.full.is_empty() || self.full_bytes == 0, "bytes of no batch");
        !self.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Flags;
    use crate::limits::DROPPED_BYTES_MAX;

    /// Pushes a record of `len` bytes that ends a reference of `target`, if that is not 0.
    fn push(queue: &mut WriteQueue, lsn: u64, target: u64, references: u16, len: usize) {
        let flags = if target > 0 { Flags::RELEASES } else { Flags::NONE };
        let (lsn, target, is_joined) = (Lsn(lsn), Lsn(target), false);
        let record =
            NewRecord { lsn, target, kind: 1, flags, references, format_version: 1, is_joined };
        queue.push(record, |bytes| bytes.resize(bytes.len() + len, 7));
    }

    #[test]
    fn record_of_an_ended_batch_is_not_dropped() {
        let mut queue = WriteQueue::default();
        queue.end_batch();
        push(&mut queue, 1, 0, 1, 10);
        let bytes = queue.bytes();
        queue.end_batch();
        assert_eq!(queue.bytes(), bytes);
        push(&mut queue, 2, 1, 0, 10);
        let mut batch = WriteBatch::default();
        assert!(queue.take_batch(&mut batch), "the end of record 1 comes with another batch");
        assert_eq!((batch.records().len(), batch.last()), (1, Lsn(1)));
        batch.clear();
        assert!(!queue.take_batch(&mut batch));
        assert_eq!((batch.records().len(), batch.last()), (1, Lsn(2)));
    }

    #[test]
    fn ended_records_free_their_bytes_before_the_write() {
        const LEN: usize = 300_000;
        let mut queue = WriteQueue::default();
        push(&mut queue, 1, 0, 1, LEN);
        // One that ends alone, and another of which one of two references ends.
        push(&mut queue, 2, 0, 1, 10);
        push(&mut queue, 3, 0, 2, 20);
        let mut before = 1;
        for lsn in 4..1000 {
            push(&mut queue, lsn, before, 1, LEN);
            before = lsn;
            let bytes = queue.open.encoder.len();
            assert!(bytes < 3 * LEN + DROPPED_BYTES_MAX, "{bytes}");
        }
        queue.release(Lsn(2));
        queue.release(Lsn(3));
        assert_eq!(queue.open.released(), [Lsn(3)]);
        assert!(queue.bytes() < LEN + 1000);
        assert!(queue.full.is_empty());
        queue.open.remove_dropped();
        let left: Vec<u64> = queue.open.records().iter().map(|record| record.lsn.0).collect();
        assert_eq!(left, [3, 999]);
        assert_eq!(queue.last(), Lsn(999));
    }
}

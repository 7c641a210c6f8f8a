//! What waits to be written: the next batch, filled under the lock of whoever decides, written without
//! it.
//!
//! A record whose last reference ends while it still waits is not written at all, and neither is what
//! ended it: a message that was acknowledged before its batch began costs no octet on disk.

use crate::batch::Batch;
use crate::format::{Flags, Lsn, RecordHeader};
use crate::limits::IDLE_BATCH_BYTES;

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
    /// The Raft term it was proposed in; 0 without one.
    pub term: u32,
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

/// Records that wait to be written.
#[derive(Default, Debug)]
pub struct Pending {
    pub(crate) batch: Batch,
    slots: Vec<Slot>,
    /// References ended of records that were written before, or are to be written with this batch.
    released: Vec<Lsn>,
    /// The last position taken, whether it is written or not.
    last: Lsn,
    dropped: usize,
}

impl Pending {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last == Lsn(0) && self.released.is_empty()
    }

    /// Octets that wait.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batch.len()
    }

    /// The last position that was taken; 0 if none was.
    #[must_use]
    pub fn last(&self) -> Lsn {
        self.last
    }

    /// Appends a record with what `payload` writes.
    pub fn push(&mut self, record: NewRecord, payload: impl FnOnce(&mut Vec<u8>)) {
        let NewRecord { lsn, target, kind, flags, references, term } = record;
        self.last = lsn;
        let releases = flags.has(Flags::RELEASES);
        let is_dropped = releases && self.release(target);
        if is_dropped && references == 0 {
            return;
        }
        let header = RecordHeader { length: 0, lsn, target, term, kind, flags, references };
        self.batch.push(&header, payload);
        let must_tell = releases && !is_dropped;
        self.slots.push(Slot { lsn, references, left: references, must_tell });
    }

    /// Ends one reference of the record at `target`. True if that record waits here and is dropped,
    /// so that nothing needs to tell of it.
    pub fn release(&mut self, target: Lsn) -> bool {
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
                    self.dropped += 1;
                }
                return true;
            }
        }
        self.released.push(target);
        false
    }

    /// Forgets everything and keeps its buffers.
    pub fn clear(&mut self) {
        self.batch.clear(IDLE_BATCH_BYTES);
        self.slots.clear();
        self.released.clear();
        self.last = Lsn(0);
        self.dropped = 0;
    }

    /// Takes out what was dropped.
    pub(crate) fn squeeze(&mut self) {
        if self.dropped > 0 {
            let slots = &self.slots;
            self.batch.retain(|at| slots.get(at).is_some_and(|slot| !slot.is_dropped()));
            self.slots.retain(|slot| !slot.is_dropped());
            self.dropped = 0;
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

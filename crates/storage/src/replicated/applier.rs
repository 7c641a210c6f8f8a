//! Application of committed entries: the liveness of their records, and passing them on in order.

use std::sync::{Arc, Mutex, MutexGuard};

use super::entry::{EntryContent, EntryFacts, EntryFault, EntryIndex, LogEntry};
use crate::directory::Directory;
use crate::format::{Flags, Lsn};
use crate::log::{Shared, lock};
use crate::recovery::References;
use crate::segment_reader::Record;

/// A handle for the thread that applies committed entries.
#[derive(Debug)]
pub struct Applier<D: Directory> {
    shared: Arc<Mutex<Shared<D::File>>>,
}

impl<D: Directory> Clone for Applier<D> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<D: Directory> Applier<D> {
    pub(super) fn new(shared: &Arc<Mutex<Shared<D::File>>>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    /// Applies the next committed entry: passes its records to `each`, in order, and counts their references.
    /// Entries without records are applied as well. No lock is held while `each` runs.
    ///
    /// # Errors
    /// [`EntryFault`]: the entry was not verified. It is not applied, though records may have been passed on.
    ///
    /// # Panics
    /// If the entry is not the one behind the last that was applied, or is not committed.
    pub fn apply(
        &self,
        entry: &LogEntry,
        each: &mut dyn FnMut(Record<'_>, &mut References<'_>),
    ) -> Result<(), EntryFault> {
        drop(self.lock_for(entry.index));
        let mut facts = EntryFacts::default();
        for record in entry.records() {
            let record = record?;
            facts.records.push((record.lsn, record.references));
            if record.flags.has(Flags::RELEASES) {
                facts.released.push(record.target);
            }
            each(record, &mut References::later(&mut facts.released));
        }
        let last = match &entry.content {
            EntryContent::Records(records) => records.last,
            EntryContent::Empty | EntryContent::Membership(_) => Lsn(0),
        };
        self.count(entry.index, last, &facts);
        Ok(())
    }

    /// Notes that the leader, whose state has the effects of the entry already, has it committed: counts the
    /// references of its records. `facts` are those of [`WriteBatch::seal_as_entry`](crate::WriteBatch), or empty
    /// for an entry without records.
    ///
    /// # Panics
    /// As [`Applier::apply`].
    pub fn applied_by_leader(&self, index: EntryIndex, facts: &EntryFacts) {
        let last = facts.records.last().map_or(Lsn(0), |(last, _)| *last);
        self.count(index, last, facts);
    }

    /// Counts the references of an entry whose last position is `last`.
    fn count(&self, index: EntryIndex, last: Lsn, facts: &EntryFacts) {
        let mut shared = self.lock_for(index);
        // Records first: an entry may release its own records.
        for (lsn, references) in &facts.records {
            let is_in_file = shared.liveness.add(*lsn, *references);
            assert!(is_in_file, "position {lsn} is in no file");
        }
        for lsn in &facts.released {
            shared.liveness.release(*lsn);
        }
        let entries = shared.entries_mut();
        entries.applied = index;
        entries.applied_position = entries.applied_position.max(last);
    }

    /// Last entry that was applied.
    #[must_use]
    pub fn applied(&self) -> EntryIndex {
        lock(&self.shared).entries().applied
    }

    /// Position of the last record up to the last entry that was applied.
    #[must_use]
    pub fn applied_position(&self) -> Lsn {
        lock(&self.shared).entries().applied_position
    }

    /// The shared state, for the entry that is applied next.
    fn lock_for(&self, index: EntryIndex) -> MutexGuard<'_, Shared<D::File>> {
        let shared = lock(&self.shared);
        let entries = shared.entries();
        let (applied, commit) = (entries.applied, entries.commit);
        assert_eq!(index.0, applied.0 + 1, "entries are applied one behind the other");
        assert!(index <= commit, "entry {index} is applied, but {commit} is the last committed");
        shared
    }
}

//! Application of committed entries: the liveness of their records, and passing them on in order.

use std::sync::{Arc, Mutex};

use super::entry::{EntryFacts, EntryFault, EntryIndex, LogEntry};
use crate::directory::Directory;
use crate::format::Lsn;
use crate::log::Shared;
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
    /// Applies the next committed entry: passes its records to `each`, in order, and counts their references.
    /// Entries without records are applied as well.
    ///
    /// # Errors
    /// [`EntryFault`]: the entry was not verified. Nothing is applied.
    ///
    /// # Panics
    /// If the entry is not the one behind the last that was applied, or is not committed.
    pub fn apply(
        &self,
        entry: &LogEntry,
        each: &mut dyn FnMut(Record<'_>, &mut References<'_>),
    ) -> Result<(), EntryFault> {
        let _ = (&self.shared, entry, each);
        unimplemented!()
    }

    /// Notes that the leader, whose state has the effects of the entry already, has it committed: counts the
    /// references of its records. `facts` are those of [`WriteBatch::seal_as_entry`](crate::WriteBatch), or empty
    /// for an entry without records.
    ///
    /// # Panics
    /// As [`Applier::apply`].
    pub fn applied_by_leader(&self, index: EntryIndex, facts: &EntryFacts) {
        let _ = (index, facts);
        unimplemented!()
    }

    /// Last entry that was applied.
    #[must_use]
    pub fn applied(&self) -> EntryIndex {
        unimplemented!()
    }

    /// Position of the last record up to the last entry that was applied.
    #[must_use]
    pub fn applied_position(&self) -> Lsn {
        unimplemented!()
    }
}

//! The log of a member, as replication needs it.
//!
//! Beside the log on a disk there is one in memory, which knows what a crash leaves: simulations run thousands
//! of histories a minute with it.

mod memory;

use storage::{
    Directory, EntryError, EntryFault, EntryIndex, HardState, LogEntry, LogError, ReplicatedLog,
    Term, Written,
};

pub use memory::{MemoryLog, Omission};

/// The log of a member. [`ReplicatedLog`] documents the operations, their errors and panics.
pub trait EntryLog {
    /// The hard state as it was saved.
    fn hard_state(&self) -> &HardState;

    /// Saves the hard state, durably.
    ///
    /// # Errors
    /// [`LogError`].
    fn save_hard_state(&mut self, state: &HardState) -> Result<(), LogError>;

    /// Notes, durably, that the member has no part in its group any more, in no later process either.
    ///
    /// # Errors
    /// [`LogError`].
    fn disqualify(&mut self, why: &str) -> Result<(), LogError>;

    /// First entry that can be read.
    fn first_index(&self) -> EntryIndex;

    /// Last entry, 0 for none.
    fn last_index(&self) -> EntryIndex;

    /// Term of an entry, or of the one before the first.
    ///
    /// # Errors
    /// [`EntryError::Compacted`] or [`EntryError::Unavailable`].
    fn term_of(&self, index: EntryIndex) -> Result<Term, EntryError>;

    /// Entries from `from` on and before `to`: at least one, then as many as have `bytes_max` octets.
    ///
    /// # Errors
    /// [`EntryError`].
    fn entries(
        &self,
        from: EntryIndex,
        to: EntryIndex,
        bytes_max: usize,
    ) -> Result<Vec<LogEntry>, EntryError>;

    /// Appends entries, durably.
    ///
    /// # Errors
    /// [`LogError`].
    fn append(&mut self, entries: &[LogEntry]) -> Result<Written, LogError>;

    /// Cuts off the entries behind `index`, durably.
    ///
    /// # Errors
    /// [`LogError`].
    fn truncate_after(&mut self, index: EntryIndex) -> Result<(), LogError>;

    /// Notes that the entries up to `index` are committed.
    fn commit(&mut self, index: EntryIndex);

    /// Notes the first entry that a member still needs.
    fn set_needed_from(&mut self, index: EntryIndex);

    /// Checks an entry that came over a link.
    ///
    /// # Errors
    /// [`EntryFault`].
    fn verify(&self, entry: &LogEntry) -> Result<(), EntryFault>;
}

impl<D: Directory> EntryLog for ReplicatedLog<D> {
    fn hard_state(&self) -> &HardState {
        self.hard_state()
    }

    fn save_hard_state(&mut self, state: &HardState) -> Result<(), LogError> {
        self.save_hard_state(state)
    }

    fn disqualify(&mut self, why: &str) -> Result<(), LogError> {
        self.disqualify(why)
    }

    fn first_index(&self) -> EntryIndex {
        self.first_index()
    }

    fn last_index(&self) -> EntryIndex {
        self.last_index()
    }

    fn term_of(&self, index: EntryIndex) -> Result<Term, EntryError> {
        self.term_of(index)
    }

    fn entries(
        &self,
        from: EntryIndex,
        to: EntryIndex,
        bytes_max: usize,
    ) -> Result<Vec<LogEntry>, EntryError> {
        self.entries(from, to, bytes_max)
    }

    fn append(&mut self, entries: &[LogEntry]) -> Result<Written, LogError> {
        self.append(entries)
    }

    fn truncate_after(&mut self, index: EntryIndex) -> Result<(), LogError> {
        self.truncate_after(index)
    }

    fn commit(&mut self, index: EntryIndex) {
        self.commit(index);
    }

    fn set_needed_from(&mut self, index: EntryIndex) {
        self.set_needed_from(index);
    }

    fn verify(&self, entry: &LogEntry) -> Result<(), EntryFault> {
        self.verify(entry)
    }
}

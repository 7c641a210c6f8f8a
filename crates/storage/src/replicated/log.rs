//! The replicated log: opened and read up to what is committed, then written entry by entry.

use super::applier::Applier;
use super::entry::{EntryFault, EntryIndex, LogEntry, Term};
use super::hard_state::HardState;
use super::options::{EntryError, ReplicatedOptions};
use super::shipment::Shipment;
use crate::compaction::Compaction;
use crate::directory::Directory;
use crate::format::Lsn;
use crate::log::{LogError, Preparation, Prepared, Written};
use crate::recovery::{OpenError, OpenReport, ReadProgress, References};
use crate::segment_reader::Record;
use crate::snapshot::LogSnapshot;

/// A replicated log in a directory.
#[derive(Debug)]
pub struct ReplicatedLog<D: Directory> {
    directory: std::sync::Arc<D>,
}

impl<D: Directory> ReplicatedLog<D> {
    /// Opens the log in `directory`, and passes the records of every entry that is known to be committed to `each`,
    /// in order. Later entries stay in the log and are not passed. Calls `progress` after each file.
    ///
    /// Any damage in the report means that the member must be rebuilt: it neither votes nor leads.
    ///
    /// # Errors
    /// [`OpenError`]: the directory cannot be read or written, holds another log, or was written by a newer
    /// version. [`OpenError::DoesNotVote`]: the hard state is lost.
    pub fn open(
        directory: D,
        options: ReplicatedOptions,
        each: &mut dyn FnMut(Record<'_>, &mut References<'_>),
        progress: &mut dyn FnMut(ReadProgress),
    ) -> Result<(Self, OpenReport), OpenError> {
        let _ = (directory, options, each, progress);
        unimplemented!()
    }

    /// The hard state as it was saved. Its commit is at least the last entry that was passed on at the opening.
    #[must_use]
    pub fn hard_state(&self) -> &HardState {
        let _ = &self.directory;
        unimplemented!()
    }

    /// Saves the hard state, durably. An entry may be appended only once its term is saved.
    ///
    /// # Errors
    /// [`LogError`]; the log cannot be used any more.
    ///
    /// # Panics
    /// If the term falls, or there are more members than a slot has room for.
    pub fn save_hard_state(&mut self, state: &HardState) -> Result<(), LogError> {
        let _ = state;
        unimplemented!()
    }

    /// First entry that can be read. One more than the last entry if there is none.
    #[must_use]
    pub fn first_index(&self) -> EntryIndex {
        unimplemented!()
    }

    /// Last entry; 0 if there never was one.
    #[must_use]
    pub fn last_index(&self) -> EntryIndex {
        unimplemented!()
    }

    /// Position of the last record of the last entry.
    #[must_use]
    pub fn last_position(&self) -> Lsn {
        unimplemented!()
    }

    /// Term of an entry, or of the one before the first.
    ///
    /// # Errors
    /// [`EntryError::Compacted`] or [`EntryError::Unavailable`].
    pub fn term_of(&self, index: EntryIndex) -> Result<Term, EntryError> {
        let _ = index;
        unimplemented!()
    }

    /// The entries from `from` on and before `to`, at least one and then as many as have `bytes_max` bytes. Newer ones come from
    /// memory, older ones from the disk.
    ///
    /// # Errors
    /// [`EntryError`].
    pub fn entries(
        &self,
        from: EntryIndex,
        to: EntryIndex,
        bytes_max: usize,
    ) -> Result<Vec<LogEntry>, EntryError> {
        let _ = (from, to, bytes_max);
        unimplemented!()
    }

    /// Appends entries in one write and one sync. When this returns, they are durable.
    ///
    /// # Errors
    /// [`LogError`]. [`LogError::Full`]: nothing was written, and the same entries can be written when there is
    /// room. [`LogError::Entry`]: nothing was written, because an entry does not follow the last position.
    /// Otherwise the log cannot be used any more.
    ///
    /// # Panics
    /// If the first index does not follow the last entry, or a term is above that of the hard state.
    pub fn append(&mut self, entries: &[LogEntry]) -> Result<Written, LogError> {
        let _ = entries;
        unimplemented!()
    }

    /// Cuts off the entries behind `index`, durably.
    ///
    /// # Errors
    /// As [`ReplicatedLog::append`].
    ///
    /// # Panics
    /// If an entry behind `index` is committed.
    pub fn truncate_after(&mut self, index: EntryIndex) -> Result<(), LogError> {
        let _ = index;
        unimplemented!()
    }

    /// Notes that the entries up to `index` are committed: they may be applied, and are never cut off. A lower index
    /// than before has no effect.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn commit(&mut self, index: EntryIndex) {
        let _ = index;
        unimplemented!()
    }

    /// Last entry that is known to be committed.
    #[must_use]
    pub fn committed(&self) -> EntryIndex {
        unimplemented!()
    }

    /// Notes the first entry that a member of the group still needs. Compactions keep entries from there on, up to
    /// the retention bound. Until it is noted, all are needed.
    pub fn set_needed_from(&mut self, index: EntryIndex) {
        let _ = index;
        unimplemented!()
    }

    /// A handle for the thread that applies committed entries.
    #[must_use]
    pub fn applier(&self) -> Applier<D> {
        unimplemented!()
    }

    /// Checks an entry that came over a link.
    ///
    /// # Errors
    /// [`EntryFault`]: the first fault.
    pub fn verify(&self, entry: &LogEntry) -> Result<(), EntryFault> {
        let _ = entry;
        unimplemented!()
    }

    /// Seals the active segment, so that a shipment may reach the last entry. Returns that entry.
    ///
    /// # Errors
    /// As [`ReplicatedLog::append`].
    pub fn seal(&mut self) -> Result<EntryIndex, LogError> {
        unimplemented!()
    }

    /// The sealed files whose entries are all applied. `None` if they do not reach `at_least`, or not what
    /// compactions have considered: seal the log, wait until its end is applied, and ask again.
    #[must_use]
    pub fn sealed_up_to(&self, at_least: EntryIndex) -> Option<Shipment<D>> {
        let _ = at_least;
        unimplemented!()
    }

    /// The most worthwhile compaction now, if there is one. Only one may run at a time.
    #[must_use]
    pub fn compaction(&self) -> Option<Compaction<D>> {
        unimplemented!()
    }

    /// The files of the log up to the last entry that was applied, for a backup.
    ///
    /// # Errors
    /// [`EntryError`]: the end of that entry cannot be read.
    pub fn snapshot(&self) -> Result<LogSnapshot<D>, EntryError> {
        unimplemented!()
    }

    /// As [`Log::prepare_next_segment`](crate::Log).
    #[must_use]
    pub fn prepare_next_segment(&mut self) -> Option<Preparation<D>> {
        unimplemented!()
    }

    /// As [`Log::install_next_segment`](crate::Log).
    ///
    /// # Panics
    /// If no segment was asked for.
    pub fn install_next_segment(&mut self, prepared: Option<Prepared<D>>) {
        let _ = prepared;
        unimplemented!()
    }

    /// Closes the log and records its end in the manifest.
    ///
    /// # Errors
    /// [`LogError`]; no entry is lost then.
    pub fn close(self) -> Result<(), LogError> {
        unimplemented!()
    }
}

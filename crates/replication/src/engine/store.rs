//! The log as the engine reads it.
//!
//! The engine reads whole entries only to send them. What it asks of committed entries, their terms and whether they
//! change the members, is answered from memory, so that no fault of the disk meets the engine where it would
//! end the process.

use std::cell::RefCell;
use std::collections::BTreeSet;

use raft::eraftpb::{ConfState, Entry, EntryType, HardState as RaftHardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};
use storage::{EntryContent, EntryError, EntryIndex, LogEntry};

use super::convert::to_engine;
use crate::entry_log::EntryLog;
use crate::limits::COMMITTED_PER_READY;

/// The log of a member with what the engine must know of it.
#[derive(Debug)]
pub(super) struct Store<L> {
    pub(super) log: L,
    /// Entries that change the members and are not applied.
    memberships: BTreeSet<u64>,
    /// Members for which entries are missing.
    needs_snapshot: RefCell<BTreeSet<u64>>,
    /// Fault of the first entry that could not be read.
    fault: RefCell<Option<EntryError>>,
    /// State with which the engine begins.
    initial: RefCell<Option<RaftState>>,
}

impl<L: EntryLog> Store<L> {
    /// `committed` is the newest entry that is known to be; `memberships` are those behind the last that was applied.
    pub(super) fn new(log: L, committed: u64, memberships: BTreeSet<u64>) -> Self {
        let state = log.hard_state();
        let hard_state = RaftHardState {
            term: state.term.0,
            vote: state.vote,
            commit: committed,
            ..RaftHardState::default()
        };
        let members = ConfState {
            voters: state.voters.clone(),
            learners: state.learners.clone(),
            ..ConfState::default()
        };
        let initial = RefCell::new(Some(RaftState::new(hard_state, members)));
        let (needs_snapshot, fault) = Default::default();
        Self { log, memberships, needs_snapshot, fault, initial }
    }

    /// Notes entries that were appended; those behind them were cut off.
    pub(super) fn appended(&mut self, entries: &[LogEntry]) {
        let Some(first) = entries.first() else {
            return;
        };
        drop(self.memberships.split_off(&first.index.0));
        let changes = entries.iter().filter(|e| matches!(e.content, EntryContent::Membership(_)));
        self.memberships.extend(changes.map(|entry| entry.index.0));
    }

    /// True if an entry that is not applied changes the members.
    pub(super) fn changes_members(&self, index: u64) -> bool {
        self.memberships.contains(&index)
    }

    /// Notes that the entries up to `index` are applied.
    pub(super) fn applied(&mut self, index: u64) {
        self.memberships = self.memberships.split_off(&(index + 1));
    }

    /// Members for which entries were missing since the last call.
    pub(super) fn take_needs_snapshot(&self) -> BTreeSet<u64> {
        self.needs_snapshot.take()
    }

    /// The fault of an entry that could not be read.
    pub(super) fn take_fault(&self) -> Option<EntryError> {
        self.fault.take()
    }

    /// True if entries were missing or could not be read since the last call of the two above.
    pub(super) fn has_news(&self) -> bool {
        !self.needs_snapshot.borrow().is_empty() || self.fault.borrow().is_some()
    }

    /// Entries without their content, of which the engine looks at nothing else.
    fn outlines(&self, low: u64, high: u64) -> raft::Result<Vec<Entry>> {
        let outline = |index| {
            let term = self.term(index)?;
            let mut entry = Entry { index, term, ..Entry::default() };
            if self.memberships.contains(&index) {
                entry.set_entry_type(EntryType::EntryConfChange);
            }
            Ok(entry)
        };
        (low..high).map(outline).collect()
    }
}

impl<L: EntryLog> Storage for Store<L> {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(self.initial.take().expect("the engine begins once"))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low < self.log.first_index().0 {
            return Err(StorageError::Compacted.into());
        }
        let max_size = max_size.into();
        if !context.can_async() {
            let most = max_size.map_or(high - low, |_| COMMITTED_PER_READY);
            return self.outlines(low, high.min(low.saturating_add(most)));
        }
        let bytes_max =
            max_size.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
        match self.log.entries(EntryIndex(low), EntryIndex(high), bytes_max) {
            Ok(entries) => Ok(entries.iter().map(to_engine).collect()),
            Err(EntryError::Compacted { .. }) => Err(StorageError::Compacted.into()),
            Err(fault) => {
                // The member is told, and becomes quarantined; until then the engine sends nothing.
                self.fault.borrow_mut().get_or_insert(fault);
                Err(StorageError::LogTemporarilyUnavailable.into())
            }
        }
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        self.log.term_of(EntryIndex(index)).map(|term| term.0).map_err(|error| match error {
            EntryError::Compacted { .. } => StorageError::Compacted.into(),
            EntryError::Unavailable { .. }
            | EntryError::Damaged { .. }
            | EntryError::Fault(_)
            | EntryError::Io { .. } => StorageError::Unavailable.into(),
        })
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.log.first_index().0)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.log.last_index().0)
    }

    /// Files are shipped beside the engine (guard 2): the engine never has a snapshot.
    fn snapshot(&self, _: u64, to: u64) -> raft::Result<Snapshot> {
        self.needs_snapshot.borrow_mut().insert(to);
        Err(StorageError::SnapshotTemporarilyUnavailable.into())
    }
}

//! The log of a member: the real one, on a simulated disk, with what sabotages do to it.

use replica::GroupLog;
use simdisk::Disk;
use storage::{
    EntryError, EntryFault, EntryIndex, HardState, LogEntry, LogError, ReplicatedLog, Term, Written,
};

use replication::EntryLog;

use crate::faults::sabotage::Sabotage;

/// The log of a member.
#[derive(Debug)]
pub(crate) struct SimLog {
    pub(crate) log: ReplicatedLog<Disk>,
    /// The hard state as a member that starts reads it.
    read: Option<HardState>,
    sabotage: Option<Sabotage>,
}

impl SimLog {
    pub(crate) fn new(log: ReplicatedLog<Disk>, sabotage: Option<Sabotage>) -> Self {
        let forgotten = || HardState { vote: 0, ..log.hard_state().clone() };
        let read = (sabotage == Some(Sabotage::VoteForgotten)).then(forgotten);
        Self { log, read, sabotage }
    }
}

impl EntryLog for SimLog {
    fn hard_state(&self) -> &HardState {
        self.read.as_ref().unwrap_or_else(|| self.log.hard_state())
    }

    fn save_hard_state(&mut self, state: &HardState) -> Result<(), LogError> {
        if let Some(read) = &mut self.read {
            // The log itself refuses a second vote in one term.
            let saved = self.log.hard_state();
            *read = state.clone();
            if saved.term == state.term && saved.vote != 0 && saved.vote != state.vote {
                return Ok(());
            }
        }
        self.log.save_hard_state(state)
    }

    fn disqualify(&mut self, why: &str) -> Result<(), LogError> {
        self.log.disqualify(why)
    }

    fn first_index(&self) -> EntryIndex {
        self.log.first_index()
    }

    fn last_index(&self) -> EntryIndex {
        self.log.last_index()
    }

    fn term_of(&self, index: EntryIndex) -> Result<Term, EntryError> {
        self.log.term_of(index)
    }

    fn entries(
        &self,
        from: EntryIndex,
        to: EntryIndex,
        bytes_max: usize,
    ) -> Result<Vec<LogEntry>, EntryError> {
        self.log.entries(from, to, bytes_max)
    }

    fn append(&mut self, entries: &[LogEntry]) -> Result<Written, LogError> {
        if self.sabotage == Some(Sabotage::TruncationIgnored) {
            let last = self.log.last_index();
            let new: Vec<LogEntry> =
                entries.iter().filter(|entry| entry.index > last).cloned().collect();
            return self.log.append(&new);
        }
        self.log.append(entries)
    }

    fn truncate_after(&mut self, index: EntryIndex) -> Result<(), LogError> {
        if self.sabotage == Some(Sabotage::TruncationIgnored) {
            return Ok(());
        }
        self.log.truncate_after(index)
    }

    fn commit(&mut self, index: EntryIndex) {
        self.log.commit(index);
    }

    fn set_needed_from(&mut self, index: EntryIndex) {
        self.log.set_needed_from(index);
    }

    fn verify(&self, entry: &LogEntry) -> Result<(), EntryFault> {
        self.log.verify(entry)
    }
}

impl GroupLog for SimLog {
    type Directory = Disk;

    fn replicated(&self) -> &ReplicatedLog<Disk> {
        &self.log
    }

    fn replicated_mut(&mut self) -> &mut ReplicatedLog<Disk> {
        &mut self.log
    }
}

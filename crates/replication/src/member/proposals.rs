//! Proposals of a leader that are not committed, and the positions that become durable with them.

use std::collections::VecDeque;

use storage::{EntryFacts, EntryIndex, Lsn};

/// A proposed entry.
#[derive(Debug)]
struct Proposal {
    index: u64,
    facts: EntryFacts,
    bytes: usize,
}

/// Proposals of the present term.
#[derive(Debug, Default)]
pub(super) struct Proposals {
    waiting: VecDeque<Proposal>,
    /// Positions, each with the entry with which it becomes durable, both ascending.
    positions: VecDeque<(Lsn, u64)>,
    /// Octets of all proposals.
    bytes: usize,
    /// Position that is durable and not told.
    durable: Option<Lsn>,
}

impl Proposals {
    /// Octets that are not committed.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes a proposed entry whose last record is at `position`, 0 for none.
    pub(super) fn push(
        &mut self,
        index: EntryIndex,
        position: Lsn,
        facts: EntryFacts,
        bytes: usize,
    ) {
        self.waiting.push_back(Proposal { index: index.0, facts, bytes });
        self.bytes += bytes;
        if position > Lsn(0) {
            self.position(position, index.0);
        }
    }

    /// Notes that `position` is durable once the entry `index` is committed.
    pub(super) fn position(&mut self, position: Lsn, index: u64) {
        match self.positions.back_mut() {
            Some(newest) if newest.1 == index => newest.0 = position,
            _ => self.positions.push_back((position, index)),
        }
    }

    /// The facts of a committed entry, if it was proposed here.
    pub(super) fn committed(&mut self, index: u64) -> Option<EntryFacts> {
        while let Some((position, _)) = self.positions.pop_front_if(|(_, at)| *at <= index) {
            self.durable = Some(position);
        }
        let proposal = self.waiting.pop_front_if(|proposal| proposal.index <= index)?;
        assert_eq!(proposal.index, index, "committed entries come one by one");
        self.bytes -= proposal.bytes;
        Some(proposal.facts)
    }

    /// The newest durable position that was not told. `committed` is the newest entry that is.
    pub(super) fn take_durable(&mut self, committed: u64) -> Option<Lsn> {
        while let Some((position, _)) = self.positions.pop_front_if(|(_, at)| *at <= committed) {
            self.durable = Some(position);
        }
        self.durable.take()
    }

    /// True if a position is not told yet.
    pub(super) fn has_untold(&self) -> bool {
        self.durable.is_some() || !self.positions.is_empty()
    }

    /// Forgets all: leadership is lost, and nobody knows what becomes of them.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elided_positions_are_durable_with_the_entry_before() {
        let mut proposals = Proposals::default();
        proposals.push(EntryIndex(5), Lsn(10), EntryFacts::default(), 100);
        proposals.position(Lsn(14), 5);
        proposals.push(EntryIndex(6), Lsn(20), EntryFacts::default(), 50);
        assert_eq!(proposals.take_durable(4), None);
        assert!(proposals.committed(5).is_some());
        assert_eq!((proposals.take_durable(5), proposals.bytes()), (Some(Lsn(14)), 50));
        assert_eq!(proposals.take_durable(5), None);
        assert!(proposals.committed(6).is_some());
        proposals.position(Lsn(25), 6);
        assert_eq!((proposals.take_durable(6), proposals.bytes()), (Some(Lsn(25)), 0));
    }

    #[test]
    fn entries_of_others_have_no_facts() {
        let mut proposals = Proposals::default();
        proposals.push(EntryIndex(5), Lsn(10), EntryFacts::default(), 100);
        assert_eq!(proposals.committed(4), None);
        proposals.clear();
        assert_eq!(proposals.committed(5), None);
    }
}

//! Proposals of a leader that are not committed, and whether it waits to be told that they are.

use std::collections::VecDeque;

use storage::{EntryFacts, EntryIndex};

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
    /// Octets of all proposals.
    bytes: usize,
    /// True if something was proposed since the leader was last told what is durable with nothing waiting.
    is_untold: bool,
}

impl Proposals {
    /// Octets that are not committed.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes a proposed entry.
    pub(super) fn push(&mut self, index: EntryIndex, facts: EntryFacts, bytes: usize) {
        self.waiting.push_back(Proposal { index: index.0, facts, bytes });
        self.bytes += bytes;
        self.is_untold = true;
    }

    /// Notes a proposal of which nothing is left: it is durable with the newest entry, once that is told, or told again.
    pub(super) fn elided(&mut self) {
        self.is_untold = true;
    }

    /// The facts of a committed entry, if it was proposed here.
    pub(super) fn committed(&mut self, index: u64) -> Option<EntryFacts> {
        let proposal = self.waiting.pop_front_if(|proposal| proposal.index <= index)?;
        assert_eq!(proposal.index, index, "committed entries come one by one");
        self.bytes -= proposal.bytes;
        Some(proposal.facts)
    }

    /// The newest entry that is durable, `committed`, if a proposal may wait to be told of it.
    pub(super) fn take_durable(&mut self, committed: u64) -> Option<EntryIndex> {
        let was_untold = std::mem::replace(&mut self.is_untold, !self.waiting.is_empty());
        was_untold.then_some(EntryIndex(committed))
    }

    /// True if a proposal was not told to be durable yet.
    pub(super) fn has_untold(&self) -> bool {
        self.is_untold
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
    fn proposals_are_durable_with_their_entry_and_elided_ones_with_the_entry_before() {
        let mut proposals = Proposals::default();
        assert_eq!(proposals.take_durable(4), None);
        proposals.push(EntryIndex(5), EntryFacts::default(), 100);
        proposals.push(EntryIndex(6), EntryFacts::default(), 50);
        assert_eq!(proposals.take_durable(4), Some(EntryIndex(4)));
        assert!(proposals.committed(5).is_some());
        assert_eq!((proposals.take_durable(5), proposals.bytes()), (Some(EntryIndex(5)), 50));
        assert!(proposals.committed(6).is_some() && proposals.has_untold());
        assert_eq!((proposals.take_durable(6), proposals.bytes()), (Some(EntryIndex(6)), 0));
        assert_eq!((proposals.take_durable(6), proposals.has_untold()), (None, false));
        proposals.elided();
        assert_eq!(proposals.take_durable(6), Some(EntryIndex(6)));
    }

    #[test]
    fn entries_of_others_have_no_facts() {
        let mut proposals = Proposals::default();
        proposals.push(EntryIndex(5), EntryFacts::default(), 100);
        assert_eq!(proposals.committed(4), None);
        proposals.clear();
        assert_eq!(proposals.committed(5), None);
    }
}

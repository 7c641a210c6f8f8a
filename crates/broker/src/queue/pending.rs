//! Messages that died under the at-least-once strategy and have nowhere to go yet (spec 3.8).
//!
//! They are neither ready nor unacknowledged, count against the queue's limits, and are offered again
//! in the order in which they died whenever the topology or a target changes.

use std::collections::VecDeque;

use super::entry::Entry;
use super::totals::CountedBytes;
use super::totals::{PersistentMessages, Totals};
use crate::death_history::DeathReason;
use crate::ids::EntryId;

/// Dead messages that wait, oldest death first.
#[derive(Debug)]
pub(crate) struct PendingDeadLetters {
    waiting: VecDeque<(Entry, DeathReason)>,
    /// How many of them are still to be offered in the present round.
    to_retry: usize,
    totals: Totals,
}

impl PendingDeadLetters {
    pub(crate) fn new(counted: CountedBytes) -> Self {
        Self { waiting: VecDeque::new(), to_retry: 0, totals: Totals::new(counted) }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.totals.bytes()
    }

    pub(crate) fn persistent(&self) -> PersistentMessages {
        self.totals.persistent()
    }

    pub(crate) fn push(&mut self, entry: Entry, reason: DeathReason) {
        self.totals.add(&entry.message, entry.lsn);
        self.waiting.push_back((entry, reason));
    }

    /// Begins a round in which each of them is offered once.
    pub(crate) fn start_retry(&mut self) {
        self.to_retry = self.waiting.len();
    }

    /// Ends the round. Whether it was not over.
    pub(crate) fn stop_retry(&mut self) -> bool {
        std::mem::take(&mut self.to_retry) > 0
    }

    /// Whether the round is not over.
    pub(crate) fn is_retrying(&self) -> bool {
        self.to_retry > 0
    }

    /// Takes the next one to offer in this round.
    pub(crate) fn next_retry(&mut self) -> Option<(Entry, DeathReason)> {
        self.to_retry = self.to_retry.checked_sub(1)?;
        let (entry, reason) = self.waiting.pop_front()?;
        self.totals.subtract(&entry.message, entry.lsn);
        Some((entry, reason))
    }

    /// Takes one out, while the log is read.
    pub(crate) fn take(&mut self, id: EntryId) -> Option<Entry> {
        let at = self.waiting.iter().position(|(entry, _)| entry.id == id)?;
        let (entry, _) = self.waiting.remove(at)?;
        self.totals.subtract(&entry.message, entry.lsn);
        Some(entry)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.waiting.iter().map(|(entry, _)| entry)
    }

    /// Those behind the first so many, in the order in which they are offered.
    pub(crate) fn skip(&self, count: usize) -> impl Iterator<Item = &Entry> {
        self.waiting.range(count.min(self.waiting.len())..).map(|(entry, _)| entry)
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.to_retry = 0;
        self.totals.clear();
    }
}

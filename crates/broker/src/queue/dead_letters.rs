//! Messages of a queue that died and have not been moved.
//!
//! Most are moved in the same call. Under the at-least-once strategy, the queue keeps those that cannot be
//! routed: they are neither ready nor unacknowledged, count against the queue's limits, and are offered again in
//! the order in which they died whenever the topology or a target changes.

use std::collections::VecDeque;

use super::entry::Entry;
use super::totals::{CountedBytes, PersistentMessages, Totals};
use crate::death_history::DeathReason;
use crate::ids::EntryId;

/// The dead messages of a queue.
#[derive(Debug)]
pub(crate) struct DeadLetters {
    /// Messages that could not be moved, under the at-least-once strategy.
    pub(crate) pending: PendingDeadLetters,
    /// Messages on the vhost's list of the dying.
    dying: u64,
    /// A dead letter of another queue found this queue full.
    has_refused: bool,
}

impl DeadLetters {
    pub(super) fn new(counted: CountedBytes) -> Self {
        Self { pending: PendingDeadLetters::new(counted), dying: 0, has_refused: false }
    }

    /// Messages on the vhost's list of the dying.
    pub(crate) fn dying(&self) -> u64 {
        self.dying
    }

    /// A message of the queue is on the list now.
    pub(crate) fn begin_death(&mut self) {
        self.dying += 1;
    }

    /// So many messages of the queue are no longer on the list; panics if there were fewer.
    pub(crate) fn end_deaths(&mut self, count: u64) {
        self.dying -= count;
    }

    /// A dead letter found the queue full: its own queue has to know when there is room.
    pub(crate) fn refuse(&mut self) {
        self.has_refused = true;
    }

    /// True if a dead letter found the queue full since the last call.
    pub(crate) fn take_refused(&mut self) -> bool {
        std::mem::take(&mut self.has_refused)
    }
}

/// Dead messages that wait, oldest death first.
#[derive(Debug)]
pub(crate) struct PendingDeadLetters {
    waiting: VecDeque<(Entry, DeathReason)>,
    /// Messages still to be offered in the present round.
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

    /// Begins a round in which each message is offered once.
    pub(crate) fn start_retry(&mut self) {
        self.to_retry = self.waiting.len();
    }

    /// Ends the round. True if messages were left to offer.
    pub(crate) fn stop_retry(&mut self) -> bool {
        std::mem::take(&mut self.to_retry) > 0
    }

    /// True if messages are left to offer in the round.
    pub(crate) fn is_retrying(&self) -> bool {
        self.to_retry > 0
    }

    /// Takes the next message to offer in this round.
    pub(crate) fn next_retry(&mut self) -> Option<(Entry, DeathReason)> {
        self.to_retry = self.to_retry.checked_sub(1)?;
        let next = self.waiting.pop_front();
        let (entry, reason) = next.expect("a round offers no more messages than there are");
        self.totals.subtract(&entry.message, entry.lsn);
        Some((entry, reason))
    }

    /// Takes a message out, while the log is read.
    pub(crate) fn take(&mut self, id: EntryId) -> Option<Entry> {
        let at = self.waiting.iter().position(|(entry, _)| entry.id == id)?;
        let (entry, _) = self.waiting.remove(at)?;
        self.totals.subtract(&entry.message, entry.lsn);
        Some(entry)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.waiting.iter().map(|(entry, _)| entry)
    }

    /// The messages without the first `count`, in the order in which they are offered.
    pub(crate) fn skip(&self, count: usize) -> impl Iterator<Item = &Entry> {
        self.waiting.range(count.min(self.waiting.len())..).map(|(entry, _)| entry)
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.to_retry = 0;
        self.totals.clear();
    }
}

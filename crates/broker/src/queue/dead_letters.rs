//! Messages of a queue that died and have not been moved.
//!
//! Most are moved in the same call. Under the at-least-once strategy, the queue keeps those that cannot be
//! routed, and with the delivery limit action `keep` those that reached the limit: they are neither ready nor
//! unacknowledged, count against the queue's limits, and are offered again in the order in which they died whenever
//! the topology or a target changes.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::death_history::DeathReason;
use crate::entry::Entry;
use crate::entry::totals::{CountedBytes, PersistentMessages, Totals};
use crate::ids::EntryId;

/// The dead messages of a queue.
#[derive(Debug)]
pub(crate) struct DeadLetters {
    counted: CountedBytes,
    /// Messages that could not be moved, and that the queue keeps; none in a queue that never had one.
    pending: Option<Box<PendingDeadLetters>>,
    /// Messages on the vhost's list of the dying.
    dying: u64,
    /// A dead letter of another queue found this queue full.
    has_refused: bool,
}

/// The messages that a queue keeps which never had to keep one.
static NONE_PENDING: PendingDeadLetters = PendingDeadLetters::new(CountedBytes::Body);

impl DeadLetters {
    pub(super) fn new(counted: CountedBytes) -> Self {
        Self { counted, pending: None, dying: 0, has_refused: false }
    }

    /// The messages that the queue keeps.
    pub(crate) fn pending(&self) -> &PendingDeadLetters {
        self.pending.as_deref().unwrap_or(&NONE_PENDING)
    }

    /// The messages that the queue keeps, unless it never had one.
    pub(crate) fn pending_mut(&mut self) -> Option<&mut PendingDeadLetters> {
        self.pending.as_deref_mut()
    }

    /// Takes a message out of those that the queue keeps.
    pub(crate) fn take(&mut self, id: EntryId) -> Option<Entry> {
        self.pending.as_mut()?.take(id)
    }

    /// Keeps a message that could not be moved.
    pub(crate) fn keep(&mut self, entry: Entry, reason: DeathReason) {
        let counted = self.counted;
        let new = || Box::new(PendingDeadLetters::new(counted));
        self.pending.get_or_insert_with(new).push(entry, reason);
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

/// Dead messages that wait, oldest death first. Each has a number, which grows with every death and every vain
/// offer, so that a position among them stays valid while messages leave.
#[derive(Debug)]
pub(crate) struct PendingDeadLetters {
    waiting: BTreeMap<u64, (Entry, DeathReason)>,
    last_number: u64,
    /// The number of the last message to offer in the present round.
    retry_up_to: u64,
    /// The number at which a message was found last: messages leave in about their order.
    last_found: u64,
    /// Messages of these that reached the delivery limit.
    over_limit: usize,
    totals: Totals,
}

impl PendingDeadLetters {
    const fn new(counted: CountedBytes) -> Self {
        Self {
            waiting: BTreeMap::new(),
            last_number: 0,
            retry_up_to: 0,
            last_found: 0,
            over_limit: 0,
            totals: Totals::new(counted),
        }
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

    fn push(&mut self, entry: Entry, reason: DeathReason) {
        self.totals.add(&entry.message, entry.lsn);
        self.over_limit += usize::from(reason == DeathReason::DeliveryLimit);
        self.last_number += 1;
        self.waiting.insert(self.last_number, (entry, reason));
    }

    /// Begins a round in which each message is offered once.
    pub(crate) fn start_retry(&mut self) {
        self.retry_up_to = self.last_number;
    }

    /// Ends the round. True if messages were left to offer.
    pub(crate) fn stop_retry(&mut self) -> bool {
        let was_retrying = self.is_retrying();
        self.retry_up_to = 0;
        was_retrying
    }

    /// True if messages are left to offer in the round.
    pub(crate) fn is_retrying(&self) -> bool {
        self.waiting.first_key_value().is_some_and(|(number, _)| *number <= self.retry_up_to)
    }

    /// Takes the next message to offer in this round.
    pub(crate) fn next_retry(&mut self) -> Option<(Entry, DeathReason)> {
        let (first, _) = self.waiting.first_key_value()?;
        if *first > self.retry_up_to {
            return None;
        }
        self.remove(*first)
    }

    fn remove(&mut self, number: u64) -> Option<(Entry, DeathReason)> {
        let (entry, reason) = self.waiting.remove(&number)?;
        self.over_limit -= usize::from(reason == DeathReason::DeliveryLimit);
        self.totals.subtract(&entry.message, entry.lsn);
        Some((entry, reason))
    }

    /// True if all messages reached the delivery limit.
    pub(crate) fn are_over_limit(&self) -> bool {
        self.over_limit == self.waiting.len()
    }

    /// Takes the first message, if it reached the delivery limit.
    pub(crate) fn evict(&mut self) -> Option<Entry> {
        let (number, (_, reason)) = self.waiting.first_key_value()?;
        if *reason != DeathReason::DeliveryLimit {
            return None;
        }
        self.remove(*number).map(|(entry, _)| entry)
    }

    /// The reason of a message's death; none if the message is not here.
    pub(crate) fn reason(&mut self, id: EntryId) -> Option<DeathReason> {
        let number = self.find(id)?;
        self.waiting.get(&number).map(|(_, reason)| *reason)
    }

    /// Takes a message out: while the log is read, or because a redrive moves the message.
    pub(crate) fn take(&mut self, id: EntryId) -> Option<Entry> {
        let number = self.find(id)?;
        self.remove(number).map(|(entry, _)| entry)
    }

    /// The number of a message, looked for from the place of the last one.
    fn find(&mut self, id: EntryId) -> Option<u64> {
        let is_wanted = |(_, (entry, _)): &(&u64, &(Entry, DeathReason))| entry.id == id;
        let behind = self.waiting.range(self.last_found..).find(is_wanted);
        let found = behind.or_else(|| self.waiting.range(..self.last_found).find(is_wanted));
        let number = found.map(|(number, _)| *number)?;
        self.last_found = number;
        Some(number)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.waiting.values().map(|(entry, _)| entry)
    }

    /// The messages behind the one with this number, with their numbers, in the order in which they are offered.
    pub(crate) fn after(&self, number: u64) -> impl Iterator<Item = (u64, &Entry)> {
        let behind = (Bound::Excluded(number), Bound::Unbounded);
        self.waiting.range(behind).map(|(number, (entry, _))| (*number, entry))
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.retry_up_to = 0;
        self.over_limit = 0;
        self.totals.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::Lsn;
    use crate::message::{Content, Envelope, Message, MessageMeta};
    use crate::time::Time;

    fn entry(seq: u64) -> Entry {
        let envelope = Arc::new(Envelope::new("".into(), "k".into()));
        let content = Content::Assembled { properties: vec![0, 0].into(), body: "b".into() };
        let message = Message::new(envelope, MessageMeta::default(), content, None);
        Entry::new(EntryId { seq, level: 0 }, message, Lsn(seq), Time::default())
    }

    fn seqs(pending: &PendingDeadLetters, after: u64) -> Vec<u64> {
        pending.after(after).map(|(_, entry)| entry.id.seq).collect()
    }

    #[test]
    fn messages_leave_in_the_middle_of_a_round_of_offers() {
        let mut pending = PendingDeadLetters::new(CountedBytes::Body);
        (1..=5).for_each(|seq| pending.push(entry(seq), DeathReason::Expired));
        pending.start_retry();
        // One finds its target, one does not and is behind the others now.
        assert_eq!(pending.next_retry().unwrap().0.id.seq, 1);
        let (vain, reason) = pending.next_retry().unwrap();
        pending.push(vain, reason);
        for seq in [5, 3] {
            let id = EntryId { seq, level: 0 };
            assert_eq!(pending.reason(id), Some(DeathReason::Expired));
            assert_eq!(pending.take(id).unwrap().id, id);
            assert!(pending.take(id).is_none());
        }
        assert_eq!((seqs(&pending, 0), pending.is_retrying()), (vec![4, 2], true));
        assert_eq!(pending.next_retry().unwrap().0.id.seq, 4);
        assert!(pending.next_retry().is_none() && !pending.is_retrying());
        // Positions before the vain offer are before it still.
        assert_eq!((seqs(&pending, 5), seqs(&pending, 6)), (vec![2], vec![]));
        assert_eq!((pending.len(), pending.bytes()), (1, entry(2).message.body().len() as u64));
    }
}

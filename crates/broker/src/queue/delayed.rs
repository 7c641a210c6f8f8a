//! Messages that wait for a time: returned ones before they are delivered again, and published ones with a
//! delivery time, in a queue or in a delayed exchange.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::entry::{Entry, ExpiryKey};
use super::totals::{CountedBytes, PersistentMessages, Totals};
use crate::ids::EntryId;
use crate::time::Time;

/// Delayed messages by the time at which they are ready.
#[derive(Default, Debug)]
pub(crate) struct Delayed {
    entries: BTreeMap<(Time, u64), Entry>,
    /// The time at which each message is ready, in order of arrival.
    ready_at: BTreeMap<u64, Time>,
    totals: Totals,
}

impl Delayed {
    pub(crate) const fn new(counted: CountedBytes) -> Self {
        Self { entries: BTreeMap::new(), ready_at: BTreeMap::new(), totals: Totals::new(counted) }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.totals.bytes()
    }

    pub(crate) fn persistent(&self) -> PersistentMessages {
        self.totals.persistent()
    }

    pub(crate) fn insert(&mut self, ready_at: Time, entry: Entry) {
        self.totals.add(&entry.message, entry.lsn);
        let known = self.ready_at.insert(entry.id.seq, ready_at);
        assert!(known.is_none(), "a message waits once");
        self.entries.insert((ready_at, entry.id.seq), entry);
    }

    /// The time at which the next message is ready.
    pub(crate) fn next_ready_at(&self) -> Option<Time> {
        self.entries.first_key_value().map(|((ready_at, _), _)| *ready_at)
    }

    /// The place of the message that is ready first.
    pub(crate) fn first_place(&self) -> Option<(Time, u64)> {
        self.entries.first_key_value().map(|(place, _)| *place)
    }

    /// Messages that are ready behind the place `from` and before `to`, which is not less; the last one first.
    pub(crate) fn between(
        &self,
        from: (Time, u64),
        to: (Time, u64),
    ) -> impl Iterator<Item = ((Time, u64), &Entry)> {
        self.entries.range(from..to).rev().map(|(at, entry)| (*at, entry))
    }

    /// Messages that are ready before that time and number, the last one first.
    pub(crate) fn before(&self, at: (Time, u64)) -> impl Iterator<Item = ((Time, u64), &Entry)> {
        self.entries.range(..at).rev().map(|(at, entry)| (*at, entry))
    }

    /// The time at which the last message is ready.
    pub(crate) fn last_ready_at(&self) -> Option<Time> {
        self.entries.last_key_value().map(|((ready_at, _), _)| *ready_at)
    }

    /// Takes the next message that is ready at `now`, with the time since which it is.
    pub(crate) fn pop_ready(&mut self, now: Time) -> Option<(Time, Entry)> {
        let (ready_at, seq) = *self.entries.first_key_value()?.0;
        if ready_at > now {
            return None;
        }
        self.take(EntryId { seq, level: 0 }).map(|entry| (ready_at, entry))
    }

    pub(crate) fn take(&mut self, id: EntryId) -> Option<Entry> {
        let ready_at = self.ready_at.remove(&id.seq)?;
        let entry = self.entries.remove(&(ready_at, id.seq)).expect("both maps have the message");
        self.totals.subtract(&entry.message, entry.lsn);
        Some(entry)
    }

    /// The message with this id, and the time and number of its place.
    pub(crate) fn get(&self, id: EntryId) -> Option<((Time, u64), &Entry)> {
        let at = (*self.ready_at.get(&id.seq)?, id.seq);
        let entry = self.entries.get(&at).expect("both maps have the message");
        Some((at, entry))
    }

    pub(crate) fn contains(&self, id: EntryId) -> bool {
        self.ready_at.contains_key(&id.seq)
    }

    /// The message that arrived first.
    pub(crate) fn oldest(&self) -> Option<ExpiryKey> {
        let (seq, ready_at) = self.ready_at.first_key_value()?;
        let entry = self.entries.get(&(*ready_at, *seq)).expect("both maps have the message");
        Some(entry.expiry_key())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = ExpiryKey> {
        self.entries.values().map(Entry::expiry_key)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Messages that are ready after that time and number, in that order.
    pub(crate) fn after(&self, at: (Time, u64)) -> impl Iterator<Item = ((Time, u64), &Entry)> {
        let behind = (Bound::Excluded(at), Bound::Unbounded);
        self.entries.range(behind).map(|(at, entry)| (*at, entry))
    }

    /// Marks the durable messages that are ready at `now` as possibly delivered before a crash.
    pub(super) fn mark_due_as_seen(&mut self, now: Time) {
        for (_, entry) in self.entries.range_mut(..=(now, u64::MAX)) {
            if entry.is_durable() {
                entry.message = entry.message.maybe_seen();
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.ready_at.clear();
        self.totals.clear();
    }
}

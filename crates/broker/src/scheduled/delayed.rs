//! Messages that wait for a time: returned ones before they are delivered again, and published ones with a
//! delivery time, in a queue or in a delayed exchange.

use std::collections::btree_map::Entry as MapEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};

use crate::entry::totals::{CountedBytes, PersistentMessages, Totals};
use crate::entry::{Entry, ExpiryKey};
use crate::ids::EntryId;
use crate::message::MessageSizes;
use crate::time::Time;

/// A message that waits for a time. Where many wait, the message itself has left the processor's caches: its sizes beside it
/// decide what leaves.
#[derive(Debug)]
pub(crate) struct DelayedMessage {
    pub(crate) ready_at: Time,
    pub(crate) sizes: MessageSizes,
    pub(crate) entry: Entry,
}

impl DelayedMessage {
    /// The time at which the message is ready, and its number.
    pub(crate) fn place(&self) -> (Time, u64) {
        (self.ready_at, self.entry.id.seq)
    }
}

/// Delayed messages by the time at which they are ready.
///
/// A message arrives at the end of the map by number, and at any place in the order of times, which is a tree of places
/// alone: where a million messages wait, the processor's caches have hardly any of it, and small elements make few nodes.
#[derive(Default, Debug)]
pub(crate) struct Delayed {
    /// The messages in order of arrival.
    entries: BTreeMap<u64, DelayedMessage>,
    /// The time and number of each message.
    places: BTreeSet<(Time, u64)>,
    totals: Totals,
}

impl Delayed {
    pub(crate) const fn new(counted: CountedBytes) -> Self {
        Self { entries: BTreeMap::new(), places: BTreeSet::new(), totals: Totals::new(counted) }
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
        let sizes = entry.message.sizes();
        self.totals.add_sizes(sizes, entry.lsn);
        let seq = entry.id.seq;
        let known = self.entries.insert(seq, DelayedMessage { ready_at, sizes, entry });
        assert!(known.is_none(), "a message waits once");
        self.places.insert((ready_at, seq));
    }

    /// The time at which the next message is ready.
    pub(crate) fn next_ready_at(&self) -> Option<Time> {
        self.places.first().map(|(ready_at, _)| *ready_at)
    }

    /// The place of the message that is ready first.
    pub(crate) fn first_place(&self) -> Option<(Time, u64)> {
        self.places.first().copied()
    }

    /// Up to `count` places of these, the last one first.
    pub(crate) fn last_places(&self, places: Range<(Time, u64)>, count: usize) -> Vec<(Time, u64)> {
        self.places.range(places).rev().take(count).copied().collect()
    }

    /// True if at least `count` messages are ready before that time and number.
    pub(crate) fn has_before(&self, at: (Time, u64), count: usize) -> bool {
        self.places.range(..at).rev().take(count).count() == count
    }

    /// The time at which the last message is ready.
    pub(crate) fn last_ready_at(&self) -> Option<Time> {
        self.places.last().map(|(ready_at, _)| *ready_at)
    }

    /// Takes the next message that is ready at `now`, with the time since which it is.
    pub(crate) fn pop_ready(&mut self, now: Time) -> Option<(Time, Entry)> {
        let (ready_at, seq) = *self.places.first()?;
        if ready_at > now {
            return None;
        }
        self.take(EntryId { seq, level: 0 }).map(|entry| (ready_at, entry))
    }

    /// The message at a place.
    fn at_place(&self, at: (Time, u64)) -> ((Time, u64), &Entry) {
        let message = self.entries.get(&at.1).expect("a place is that of a message");
        (at, &message.entry)
    }

    pub(crate) fn take(&mut self, id: EntryId) -> Option<Entry> {
        let message = self.entries.remove(&id.seq)?;
        let had_place = self.places.remove(&(message.ready_at, id.seq));
        assert!(had_place, "a message that waits has a place");
        self.subtract(&message);
        Some(message.entry)
    }

    fn subtract(&mut self, message: &DelayedMessage) {
        let bytes = self.totals.counted().of_sizes(message.sizes);
        self.totals.subtract_bytes(bytes, message.entry.lsn);
    }

    /// Takes the messages at these places, one after the other, down to the first that `takes` refuses. The places are
    /// next to each other, the last one first.
    pub(crate) fn take_at(
        &mut self,
        places: &[(Time, u64)],
        takes: &mut dyn FnMut(MessageSizes) -> bool,
    ) -> Vec<DelayedMessage> {
        let mut taken = Vec::with_capacity(places.len());
        for (_, seq) in places {
            let MapEntry::Occupied(known) = self.entries.entry(*seq) else {
                panic!("a place is that of a message");
            };
            if !takes(known.get().sizes) {
                break;
            }
            taken.push(known.remove());
        }
        taken.iter().for_each(|message| self.subtract(message));
        if let Some(first) = taken.len().checked_sub(1) {
            let removed = self.places.extract_if(places[first]..=places[0], |_| true).count();
            assert_eq!(removed, taken.len(), "the places are next to each other");
        }
        taken
    }

    /// The message with this id, and the time and number of its place.
    pub(crate) fn get(&self, id: EntryId) -> Option<((Time, u64), &Entry)> {
        let message = self.entries.get(&id.seq)?;
        Some(((message.ready_at, id.seq), &message.entry))
    }

    pub(crate) fn contains(&self, id: EntryId) -> bool {
        self.entries.contains_key(&id.seq)
    }

    /// The message that arrived first.
    pub(crate) fn oldest(&self) -> Option<ExpiryKey> {
        self.entries.first_key_value().map(|(_, message)| message.entry.expiry_key())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = ExpiryKey> {
        self.entries().map(Entry::expiry_key)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().map(|message| &message.entry)
    }

    /// Messages that are ready after that time and number, in that order.
    pub(crate) fn after(&self, at: (Time, u64)) -> impl Iterator<Item = ((Time, u64), &Entry)> {
        let behind = (Bound::Excluded(at), Bound::Unbounded);
        self.places.range(behind).map(|at| self.at_place(*at))
    }

    /// Marks the durable messages that are ready at `now` as possibly delivered before a crash.
    pub(crate) fn mark_due_as_seen(&mut self, now: Time) {
        for (_, seq) in self.places.range(..=(now, u64::MAX)) {
            if let Some(DelayedMessage { entry, .. }) = self.entries.get_mut(seq)
                && entry.is_durable()
            {
                entry.message = entry.message.maybe_seen();
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.places.clear();
        self.totals.clear();
    }
}

//! The messages of a queue that are ready for delivery, in the order of delivery.
//!
//! Messages that were never delivered are in one deque per priority level, in order of arrival. Returned
//! messages are kept separately: in a classic queue at their original place among the others, in a quorum
//! queue before all others in the order of return. Any message can be taken at any place, which exact expiry
//! needs. The middle of a long level is in pages, from which messages are read back before they are needed
//! (`level`, `paged`); a message that is read back alone is kept with the returned ones, at its original
//! place.

use std::collections::{BTreeMap, BTreeSet};

use super::level::{Fresh, Level};
use crate::collections::Rare;
use crate::entry::meter::{Meter, QueueMemory};
use crate::entry::totals::{CountedBytes, PersistentMessages, Totals};
use crate::entry::{Entry, ExpiryKey};
use crate::ids::{EntryId, Lsn, PageId};
use crate::message::Message;
use crate::page::Paging;
use crate::time::Time;

/// The place of returned messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReturnTo {
    /// The place that the message had before.
    OriginalPlace,
    /// Before all messages that were never delivered, in the order of return.
    Front,
}

/// The position of a message in the order of delivery, as one number: higher levels first, then by sequence
/// number. Messages returned to the front have numbers below all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place(pub(super) u64);

impl Place {
    const SEQ_BITS: u32 = 56;

    /// The position before every message.
    pub(super) const START: Self = Self(0);

    /// The original place of a message.
    pub(super) fn of(id: EntryId) -> Self {
        Self((u64::from(u8::MAX - id.level) << Self::SEQ_BITS) | id.seq)
    }

    /// The level and sequence number of the message with this original place. Messages returned to the front
    /// seem to have the highest possible level.
    pub(super) fn level_and_seq(self) -> (u8, u64) {
        let level = u8::MAX - u8::try_from(self.0 >> Self::SEQ_BITS).expect("a level has 8 bits");
        (level, self.0 & ((1 << Self::SEQ_BITS) - 1))
    }

    /// The place of the message returned to the front with this number.
    fn in_front(number: u64) -> Self {
        Self(number)
    }

    /// True for places at the front; no level of a queue that returns to the front is as high as 255.
    fn is_in_front(self) -> bool {
        self.0 >> Self::SEQ_BITS == 0
    }
}

/// The ready messages of a queue.
#[derive(Debug)]
pub(crate) struct Ready {
    return_to: ReturnTo,
    pub(super) paging: Paging,
    meter: Meter,
    /// Messages that were never delivered, highest level first; levels stay once used.
    pub(super) levels: Vec<Level>,
    /// One bit per level with messages that were never delivered.
    occupied: [u64; 4],
    pub(super) returned: BTreeMap<Place, Entry>,
    /// The places of returned messages by sequence number, which is their order of arrival.
    pub(super) returned_places: BTreeMap<u64, Place>,
    returns: u64,
    last_seq: u64,
    /// Messages up to this sequence number may have been delivered before a restart.
    pub(super) delivered_before: u64,
    /// Messages up to this sequence number may have left before an unplanned failover, without a record of that.
    left_before: u64,
    /// Number of ready messages, in memory and in pages.
    pub(super) len: usize,
    pub(super) totals: Totals,
    /// Number of pages with messages.
    pub(super) page_count: usize,
    /// Pages whose messages can be requested, by their earliest deadline.
    pub(super) page_deadlines: Rare<BTreeSet<(Time, u8, PageId)>>,
    /// Pages of which messages have been requested and not read yet.
    pub(super) being_read: Rare<BTreeSet<(Time, PageId)>>,
}

/// The first of the messages that were never delivered.
enum First {
    /// The message is in memory.
    Here(ExpiryKey),
    /// The message is in a page, at this place or behind it.
    Away(EntryId),
}

impl First {
    fn id(&self) -> EntryId {
        match self {
            Self::Here(front) => front.id,
            Self::Away(id) => *id,
        }
    }

    fn here(self) -> Option<ExpiryKey> {
        match self {
            Self::Here(front) => Some(front),
            Self::Away(_) => None,
        }
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        self.meter.subtract(self.memory());
    }
}

impl Ready {
    pub(crate) fn new(return_to: ReturnTo, counted: CountedBytes, memory: QueueMemory) -> Self {
        let QueueMemory { paging, meter } = memory;
        Self {
            return_to,
            paging,
            meter,
            levels: Vec::new(),
            occupied: [0; 4],
            returned: BTreeMap::new(),
            returned_places: BTreeMap::new(),
            returns: 0,
            last_seq: 0,
            delivered_before: 0,
            left_before: 0,
            len: 0,
            totals: Totals::new(counted),
            page_count: 0,
            page_deadlines: Rare::default(),
            being_read: Rare::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes that count against `max-length-bytes`.
    pub(crate) fn bytes(&self) -> u64 {
        self.totals.bytes()
    }

    /// Messages that survive a restart, in memory and in pages.
    pub(crate) fn persistent(&self) -> PersistentMessages {
        self.totals.persistent()
    }

    /// The place of returned messages.
    pub(super) fn returns_to(&self) -> ReturnTo {
        self.return_to
    }

    /// Bytes that `message` would add to `bytes`.
    pub(crate) fn bytes_of(&self, message: &Message) -> u64 {
        self.counted().of(message)
    }

    pub(super) fn counted(&self) -> CountedBytes {
        self.totals.counted()
    }

    /// Assigns the id of the next message that arrives at `level`.
    pub(crate) fn assign(&mut self, level: u8) -> EntryId {
        self.last_seq += 1;
        EntryId { seq: self.last_seq, level }
    }

    /// Notes a sequence number that was assigned before.
    pub(crate) fn note_seq(&mut self, seq: u64) {
        self.last_seq = self.last_seq.max(seq);
    }

    /// Continues after `seq`, with which the leader of the vhost counts on, if all messages have lower numbers.
    pub(super) fn continue_after(&mut self, seq: u64) {
        if self.has_pages() {
            return;
        }
        let fresh = self.levels.iter().filter_map(Level::last_in_memory);
        let returned = self.returned_places.last_key_value().map(|(seq, _)| *seq);
        if fresh.chain(returned).all(|last| last < seq) {
            self.last_seq = seq;
        }
    }

    /// The last assigned sequence number.
    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Adds a message that was never delivered; `id` is the newest assigned.
    pub(crate) fn push(&mut self, id: EntryId, message: Message, lsn: Lsn, arrived: Time) {
        self.note_seq(id.seq);
        self.len += 1;
        self.totals.add(&message, lsn);
        let level = self.level_or_new(id.level);
        let fresh = Fresh { message, lsn, arrived };
        self.metered(level, |level| level.push(id.seq, fresh));
    }

    fn level_or_new(&mut self, number: u8) -> usize {
        let at = self.levels.partition_point(|level| level.number > number);
        if self.levels.get(at).is_none_or(|level| level.number != number) {
            self.levels.insert(at, Level::new(number));
        }
        at
    }

    /// The index of the level with this number.
    pub(super) fn level_at(&self, number: u8) -> Option<usize> {
        self.levels.binary_search_by(|level| number.cmp(&level.number)).ok()
    }

    /// Changes a level, and updates the totals over all levels.
    pub(super) fn metered<T>(&mut self, at: usize, change: impl FnOnce(&mut Level) -> T) -> T {
        let level = &mut self.levels[at];
        let before = level.memory();
        let result = change(level);
        let after = level.memory();
        if after >= before {
            self.meter.add(after - before);
        } else {
            self.meter.subtract(before - after);
        }
        let (word, bit) = (usize::from(level.number / 64), 1 << (level.number % 64));
        if level.is_empty() {
            self.occupied[word] &= !bit;
        } else {
            self.occupied[word] |= bit;
        }
        result
    }

    fn memory(&self) -> u64 {
        self.levels.iter().map(Level::memory).sum()
    }

    /// The options and the meter that the queue shares with others.
    pub(super) fn queue_memory(&self) -> QueueMemory {
        QueueMemory { paging: self.paging, meter: self.meter.clone() }
    }

    /// Memory of the waiting messages of all queues of the vhost, in bytes.
    pub(super) fn resident_bytes(&self) -> u64 {
        self.meter.bytes()
    }

    /// Takes back a delivered message, to the place `to`.
    pub(crate) fn give_back(&mut self, entry: Entry, to: ReturnTo) {
        self.len += 1;
        self.totals.add(&entry.message, entry.lsn);
        let place = match to {
            ReturnTo::OriginalPlace => Place::of(entry.id),
            ReturnTo::Front => {
                self.returns += 1;
                Place::in_front(self.returns)
            }
        };
        self.returned_places.insert(entry.id.seq, place);
        self.returned.insert(place, entry);
    }

    /// The next message to deliver, if it is in memory.
    pub(crate) fn front(&self) -> Option<ExpiryKey> {
        match (self.returned.first_key_value(), self.first_fresh()) {
            (Some((place, entry)), Some(fresh)) if *place <= Place::of(fresh.id()) => {
                Some(entry.expiry_key())
            }
            (Some((_, entry)), None) => Some(entry.expiry_key()),
            (_, fresh) => fresh?.here(),
        }
    }

    /// The contents of the next message to deliver, if it is in memory.
    pub(crate) fn front_message(&self) -> Option<&Message> {
        let id = self.front()?.id;
        match self.returned_places.get(&id.seq) {
            Some(place) => self.returned.get(place).map(|entry| &entry.message),
            None => self.levels[self.level_at(id.level)?].get(id.seq).map(|fresh| &fresh.message),
        }
    }

    pub(crate) fn pop_front(&mut self) -> Option<Entry> {
        let id = self.front()?.id;
        self.take(id)
    }

    /// Removes and returns the message `id`, at any place in memory.
    pub(crate) fn take(&mut self, id: EntryId) -> Option<Entry> {
        let entry = match self.returned_places.remove(&id.seq) {
            Some(place) => {
                self.returned.remove(&place).expect("a returned message is at its place")
            }
            None => self.take_fresh(id)?,
        };
        self.len -= 1;
        self.totals.subtract(&entry.message, entry.lsn);
        Some(entry)
    }

    fn take_fresh(&mut self, id: EntryId) -> Option<Entry> {
        let at = self.level_at(id.level)?;
        let Fresh { message, lsn, arrived } = self.metered(at, |level| level.remove(id.seq))?;
        Some(self.entry(id, message, lsn, arrived))
    }

    /// The entry of a message that was not delivered since the last restart.
    pub(super) fn entry(&self, id: EntryId, message: Message, lsn: Lsn, arrived: Time) -> Entry {
        let fresh = Entry::new(id, message, lsn, arrived);
        let acquired_count = fresh.acquired_count.max(u32::from(self.was_delivered_before(id)));
        Entry { acquired_count, ..fresh }
    }

    /// True if the message may have been delivered before the last restart.
    pub(crate) fn was_delivered_before(&self, id: EntryId) -> bool {
        id.seq <= self.delivered_before
    }

    /// True if the message may have left before the last failover, without a record of that: its dead letter may have
    /// been delivered.
    pub(crate) fn had_left_before(&self, id: EntryId) -> bool {
        id.seq <= self.left_before
    }

    /// Assumes that any message may have left before a failover, without a record of that.
    pub(crate) fn mark_left(&mut self) {
        self.left_before = self.last_seq;
    }

    /// Marks messages up to `seq` as possibly delivered before a restart.
    pub(crate) fn mark_delivered(&mut self, seq: u64) {
        self.delivered_before = seq;
    }

    /// True if a message is in memory.
    pub(crate) fn contains(&self, id: EntryId) -> bool {
        self.returned_places.contains_key(&id.seq)
            || self.level_at(id.level).is_some_and(|at| self.levels[at].contains(id.seq))
    }

    /// Facts about a message in memory that expiry needs.
    pub(crate) fn get(&self, id: EntryId) -> Option<ExpiryKey> {
        if let Some(place) = self.returned_places.get(&id.seq) {
            return self.returned.get(place).map(Entry::expiry_key);
        }
        let fresh = self.levels[self.level_at(id.level)?].get(id.seq)?;
        Some(fresh.front(id))
    }

    /// Removes the oldest message of the lowest priority, for `drop-head`.
    ///
    /// COMPAT: drop-head and priorities: RabbitMQ evicts what would be delivered next, which is the message
    /// of the highest priority.
    pub(crate) fn evict(&mut self) -> Option<Entry> {
        let fresh = self.lowest_fresh();
        let in_place = self.lowest_in_place();
        let order = |id: EntryId| (id.level, id.seq);
        let lowest = match (&fresh, in_place) {
            (Some(fresh), Some(in_place)) => Some(order(fresh.id()).min(order(in_place))),
            (fresh, in_place) => fresh.as_ref().map(First::id).or(in_place).map(order),
        };
        let returned = self.first_in_front();
        let goes = |returned: &EntryId| lowest.is_none_or(|(level, _)| returned.level <= level);
        let id = match (returned.filter(goes), in_place) {
            (Some(returned), _) => returned,
            (None, Some(in_place)) if lowest == Some(order(in_place)) => in_place,
            (None, _) => fresh?.here()?.id,
        };
        self.take(id)
    }

    fn is_in_front(&self, place: Place) -> bool {
        self.return_to == ReturnTo::Front && place.is_in_front()
    }

    /// The first message that was returned to the front.
    fn first_in_front(&self) -> Option<EntryId> {
        let (place, entry) = self.returned.first_key_value()?;
        self.is_in_front(*place).then_some(entry.id)
    }

    /// The oldest message of the lowest level among the returned ones at their original places.
    fn lowest_in_place(&self) -> Option<EntryId> {
        let (place, entry) = self.returned.last_key_value()?;
        if self.is_in_front(*place) { None } else { self.first_returned(entry.id.level) }
    }

    /// The oldest of every group of messages that stand in order of arrival: what a TTL that all
    /// messages share can expire next.
    pub(crate) fn oldest(&self) -> impl Iterator<Item = ExpiryKey> {
        let returned = self.returned_places.first_key_value();
        let returned =
            returned.and_then(|(_, place)| self.returned.get(place)).map(Entry::expiry_key);
        self.fresh_fronts().chain(returned)
    }

    /// The expiry keys at the head of each priority level and of the messages returned to the front: the
    /// candidates of RabbitMQ's head-of-queue rule.
    pub(crate) fn heads(&self) -> impl Iterator<Item = ExpiryKey> {
        let heads = self.fresh_fronts().filter(|fresh| {
            let first = self.first_returned(fresh.id.level);
            first.is_none_or(|returned| returned.seq > fresh.id.seq)
        });
        heads.chain(self.returned_heads())
    }

    /// The returned messages that stand at the head of their level, or of the queue.
    fn returned_heads(&self) -> impl Iterator<Item = ExpiryKey> {
        let mut next = self.returned.first_key_value();
        std::iter::from_fn(move || {
            let (place, entry) = next?;
            let level = if self.is_in_front(*place) { u8::MAX } else { entry.id.level };
            let last = Place::of(EntryId { seq: u64::MAX >> 8, level });
            next = self.returned.range(last..).next();
            Some((*place, entry.expiry_key()))
        })
        .filter(|(place, front)| {
            self.is_in_front(*place)
                || self.fresh_front(front.id.level).is_none_or(|fresh| front.id.seq < fresh.id.seq)
        })
        .map(|(_, front)| front)
    }

    /// The first returned message of a level.
    fn first_returned(&self, level: u8) -> Option<EntryId> {
        let from = Place::of(EntryId { seq: 0, level });
        let first = self.returned.range(from..).next().map(|(_, entry)| entry.id);
        first.filter(|id| id.level == level)
    }

    /// Every message in memory, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ExpiryKey> {
        self.fresh()
            .map(|(id, fresh)| fresh.front(id))
            .chain(self.returned.values().map(Entry::expiry_key))
    }

    /// Every durable message in memory with its record, in no particular order.
    pub(crate) fn durable(&self) -> impl Iterator<Item = (EntryId, Lsn)> {
        let fresh = self.fresh().map(|(id, fresh)| (id, fresh.lsn));
        let all = fresh.chain(self.returned.values().map(|entry| (entry.id, entry.lsn)));
        all.filter(|(_, lsn)| *lsn != Lsn(0))
    }

    /// Every message in memory as `take` would return it, in no particular order; for consistency checks.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        let fresh = self.fresh().map(|(id, fresh)| {
            let Fresh { message, lsn, arrived } = fresh.clone();
            self.entry(id, message, lsn, arrived)
        });
        fresh.chain(self.returned.values().cloned())
    }

    fn fresh(&self) -> impl Iterator<Item = (EntryId, &Fresh)> {
        self.levels.iter().flat_map(|level| {
            let id = |seq| EntryId { seq, level: level.number };
            level.iter().map(move |(seq, fresh)| (id(seq), fresh))
        })
    }

    /// The expiry keys of the first message of every level whose first message is in memory.
    fn fresh_fronts(&self) -> impl Iterator<Item = ExpiryKey> {
        self.levels.iter().filter_map(Level::first_front)
    }

    fn first_fresh(&self) -> Option<First> {
        let word = self.occupied.iter().rposition(|bits| *bits != 0)?;
        self.first_of(word * 64 + 63 - self.occupied[word].leading_zeros() as usize)
    }

    fn lowest_fresh(&self) -> Option<First> {
        let word = self.occupied.iter().position(|bits| *bits != 0)?;
        self.first_of(word * 64 + self.occupied[word].trailing_zeros() as usize)
    }

    fn first_of(&self, level: usize) -> Option<First> {
        let level = &self.levels[self.level_at(u8::try_from(level).ok()?)?];
        let away = || Some(First::Away(EntryId { seq: level.first_seq()?, level: level.number }));
        level.first_front().map(First::Here).or_else(away)
    }

    fn fresh_front(&self, level: u8) -> Option<ExpiryKey> {
        self.levels[self.level_at(level)?].first_front()
    }
}

impl Level {
    fn first_front(&self) -> Option<ExpiryKey> {
        let (seq, fresh) = self.front()?;
        Some(fresh.front(EntryId { seq, level: self.number }))
    }
}

impl Fresh {
    pub(super) fn front(&self, id: EntryId) -> ExpiryKey {
        ExpiryKey { id, arrived: self.arrived, expiration_ms: self.message.meta().expiration_ms }
    }
}

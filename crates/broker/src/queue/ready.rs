//! The messages of a queue that wait for a consumer, in the order they will be delivered.
//!
//! Messages that were never delivered stand in one deque per priority level, in order of arrival.
//! Messages that came back stand apart: in a classic queue at their original place among the others,
//! in a quorum queue before all of them in the order they came back (spec 7.2). Anything can be
//! taken out anywhere, which is what exact expiry needs. Deadlines are not known here.

use std::collections::BTreeMap;

use crate::ids::{EntryId, Lsn};
use crate::message::Message;
use crate::ordered::Ordered;
use crate::time::Time;

/// One message in one queue.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its identity in the queue.
    pub id: EntryId,
    /// The message.
    pub message: Message,
    /// The record that brought it here; 0 if it does not outlive a restart.
    pub lsn: Lsn,
    /// When it arrived in this queue; its deadline counts from here, whatever happens to it.
    pub arrived: Time,
    /// How often it was handed out.
    pub acquired_count: u32,
    /// How many of these times count against the delivery limit.
    pub delivery_count: u32,
}

impl Entry {
    /// A message that arrives.
    pub(crate) fn new(id: EntryId, message: Message, lsn: Lsn, arrived: Time) -> Self {
        Self { id, message, lsn, arrived, acquired_count: 0, delivery_count: 0 }
    }

    /// Whether it outlives a restart.
    pub(crate) fn is_durable(&self) -> bool {
        self.lsn != Lsn(0)
    }

    /// What expiry needs to know of it.
    pub(crate) fn front(&self) -> Front {
        let expiration_ms = self.message.facts().expiration_ms;
        Front { id: self.id, arrived: self.arrived, expiration_ms }
    }
}

/// A message that was never delivered; its counts are zero and its id is its place.
#[derive(Clone, Debug)]
struct Fresh {
    message: Message,
    lsn: Lsn,
    arrived: Time,
}

/// Where returned messages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReturnTo {
    /// Back to where they stood.
    OriginalPlace,
    /// Before everything that was never delivered, in the order of return.
    Front,
}

/// What of a message counts as its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CountedBytes {
    /// The body alone.
    Body,
    /// The body and the encoded properties.
    BodyAndProperties,
}

impl CountedBytes {
    pub(crate) fn of(self, message: &Message) -> u64 {
        let properties = match self {
            Self::Body => 0,
            Self::BodyAndProperties => message.properties().len(),
        };
        (message.body().len() + properties) as u64
    }
}

/// What expiry needs to know of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Front {
    pub(crate) id: EntryId,
    pub(crate) arrived: Time,
    pub(crate) expiration_ms: Option<u64>,
}

/// The order in which messages are delivered, as one number: higher levels first, then by sequence.
/// Messages returned to the front have a number below all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Place(u64);

impl Place {
    const SEQ_BITS: u32 = 56;

    fn of(id: EntryId) -> Self {
        Self((u64::from(u8::MAX - id.level) << Self::SEQ_BITS) | id.seq)
    }
}

/// The messages that wait.
#[derive(Debug)]
pub(crate) struct Ready {
    return_to: ReturnTo,
    counted: CountedBytes,
    /// Fresh messages, highest level first; levels stay once used.
    levels: Vec<(u8, Ordered<u64, Fresh>)>,
    /// A bit per level that holds fresh messages.
    occupied: [u64; 4],
    returned: BTreeMap<Place, Entry>,
    /// The places of returned messages by sequence, which is their order of arrival.
    returned_places: BTreeMap<u64, Place>,
    returns: u64,
    last_seq: u64,
    len: usize,
    bytes: u64,
}

impl Ready {
    pub(crate) fn new(return_to: ReturnTo, counted: CountedBytes) -> Self {
        Self {
            return_to,
            counted,
            levels: Vec::new(),
            occupied: [0; 4],
            returned: BTreeMap::new(),
            returned_places: BTreeMap::new(),
            returns: 0,
            last_seq: 0,
            len: 0,
            bytes: 0,
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
        self.bytes
    }

    /// What `message` would add to `bytes`.
    pub(crate) fn bytes_of(&self, message: &Message) -> u64 {
        self.counted.of(message)
    }

    /// The identity of the next message that arrives at `level`.
    pub(crate) fn assign(&mut self, level: u8) -> EntryId {
        self.last_seq += 1;
        EntryId { seq: self.last_seq, level }
    }

    /// Adds a message that was never delivered; `id` is the newest assigned.
    pub(crate) fn push(&mut self, id: EntryId, message: Message, lsn: Lsn, arrived: Time) {
        self.last_seq = self.last_seq.max(id.seq);
        self.len += 1;
        self.bytes += self.counted.of(&message);
        let at = self.levels.partition_point(|(level, _)| *level > id.level);
        if self.levels.get(at).is_none_or(|(level, _)| *level != id.level) {
            self.levels.insert(at, (id.level, Ordered::default()));
        }
        self.levels[at].1.push_back(id.seq, Fresh { message, lsn, arrived });
        self.occupied[usize::from(id.level / 64)] |= 1 << (id.level % 64);
    }

    /// Takes back a message that was handed out.
    pub(crate) fn give_back(&mut self, entry: Entry) {
        self.len += 1;
        self.bytes += self.counted.of(&entry.message);
        let place = match self.return_to {
            ReturnTo::OriginalPlace => Place::of(entry.id),
            ReturnTo::Front => {
                self.returns += 1;
                Place(self.returns)
            }
        };
        self.returned_places.insert(entry.id.seq, place);
        self.returned.insert(place, entry);
    }

    /// What will be delivered next.
    pub(crate) fn front(&self) -> Option<Front> {
        match (self.returned.first_key_value(), self.first_fresh()) {
            (Some((place, entry)), Some(fresh)) if *place < Place::of(fresh.id) => {
                Some(entry.front())
            }
            (Some((_, entry)), None) => Some(entry.front()),
            (_, fresh) => fresh,
        }
    }

    pub(crate) fn pop_front(&mut self) -> Option<Entry> {
        let id = self.front()?.id;
        self.take(id)
    }

    /// Takes `id` out, wherever it stands.
    pub(crate) fn take(&mut self, id: EntryId) -> Option<Entry> {
        let entry = match self.returned_places.remove(&id.seq) {
            Some(place) => self.returned.remove(&place)?,
            None => self.take_fresh(id)?,
        };
        self.len -= 1;
        self.bytes -= self.counted.of(&entry.message);
        Some(entry)
    }

    fn take_fresh(&mut self, id: EntryId) -> Option<Entry> {
        let at = self.levels.binary_search_by(|(level, _)| id.level.cmp(level)).ok()?;
        let level = &mut self.levels[at].1;
        let Fresh { message, lsn, arrived } = level.remove(id.seq)?;
        if level.is_empty() {
            self.occupied[usize::from(id.level / 64)] &= !(1 << (id.level % 64));
        }
        Some(Entry::new(id, message, lsn, arrived))
    }

    /// Messages up to `seq` may have been handed out before: they come back to their places as
    /// returned ones do.
    pub(crate) fn mark_delivered(&mut self, seq: u64) {
        let mut handed_out = Vec::new();
        for (level, entries) in &self.levels {
            let seqs = entries.iter().map(|(seq, _)| seq).take_while(|at| *at <= seq);
            handed_out.extend(seqs.map(|seq| EntryId { seq, level: *level }));
        }
        handed_out.sort_unstable();
        for id in handed_out {
            if let Some(entry) = self.take(id) {
                self.give_back(Entry { acquired_count: 1, ..entry });
            }
        }
    }

    pub(crate) fn contains(&self, id: EntryId) -> bool {
        self.returned_places.contains_key(&id.seq)
            || self
                .levels
                .binary_search_by(|(level, _)| id.level.cmp(level))
                .is_ok_and(|at| self.levels[at].1.contains_key(id.seq))
    }

    /// Takes the oldest message of the lowest priority out, for `drop-head`.
    ///
    /// COMPAT: drop-head and priorities: RabbitMQ evicts what would be delivered next, which is the
    /// message of the highest priority.
    pub(crate) fn evict(&mut self) -> Option<Entry> {
        let fresh = self.lowest_fresh();
        let returned = match self.return_to {
            ReturnTo::OriginalPlace => self.lowest_returned(),
            ReturnTo::Front => self.returned.first_key_value().map(|(_, entry)| entry.id),
        };
        let id = match (fresh, returned) {
            (Some(fresh), Some(returned)) => {
                let returned_goes = match self.return_to {
                    ReturnTo::OriginalPlace => {
                        (returned.level, returned.seq) < (fresh.level, fresh.seq)
                    }
                    ReturnTo::Front => returned.level <= fresh.level,
                };
                if returned_goes { returned } else { fresh }
            }
            (fresh, returned) => fresh.or(returned)?,
        };
        self.take(id)
    }

    /// The oldest returned message of the lowest level.
    fn lowest_returned(&self) -> Option<EntryId> {
        self.first_returned(self.returned.last_key_value()?.1.id.level)
    }

    /// The oldest of every group of messages that stand in order of arrival: what a TTL that all
    /// messages share can expire next.
    pub(crate) fn oldest(&self) -> impl Iterator<Item = Front> {
        let returned = self.returned_places.first_key_value();
        let returned = returned.and_then(|(_, place)| self.returned.get(place)).map(Entry::front);
        self.fresh_fronts().chain(returned)
    }

    /// What stands at the head of every priority level, and of the messages that were returned to the
    /// front: what may expire under RabbitMQ's head-of-queue rule.
    pub(crate) fn heads(&self) -> impl Iterator<Item = Front> {
        let heads = self.fresh_fronts().filter(|fresh| match self.return_to {
            ReturnTo::Front => true,
            ReturnTo::OriginalPlace => {
                let first = self.first_returned(fresh.id.level);
                first.is_none_or(|returned| returned.seq > fresh.id.seq)
            }
        });
        heads.chain(self.returned_heads())
    }

    /// The returned messages that stand at the head of their level, or of the queue.
    fn returned_heads(&self) -> impl Iterator<Item = Front> {
        let mut next = self.returned.first_key_value();
        std::iter::from_fn(move || {
            let (_, entry) = next?;
            next = match self.return_to {
                ReturnTo::Front => None,
                ReturnTo::OriginalPlace => {
                    let last = EntryId { seq: u64::MAX >> 8, level: entry.id.level };
                    self.returned.range(Place::of(last)..).next()
                }
            };
            Some(entry.front())
        })
        .filter(|front| {
            self.return_to == ReturnTo::Front
                || self
                    .fresh_front(usize::from(front.id.level))
                    .is_none_or(|fresh| front.id.seq < fresh.id.seq)
        })
    }

    /// The returned message of a level that stands first there.
    fn first_returned(&self, level: u8) -> Option<EntryId> {
        let from = Place::of(EntryId { seq: 0, level });
        let first = self.returned.range(from..).next().map(|(_, entry)| entry.id);
        first.filter(|id| id.level == level)
    }

    /// Every message, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Front> {
        let fresh = self.levels.iter().flat_map(|(level, entries)| {
            entries.iter().map(|(seq, fresh)| fresh.front(EntryId { seq, level: *level }))
        });
        fresh.chain(self.returned.values().map(Entry::front))
    }

    /// Every message that outlives a restart with the record that brought it, in no particular order.
    pub(crate) fn durable(&self) -> impl Iterator<Item = (EntryId, Lsn)> {
        let fresh = self.levels.iter().flat_map(|(level, entries)| {
            entries.iter().map(|(seq, fresh)| (EntryId { seq, level: *level }, fresh.lsn))
        });
        let all = fresh.chain(self.returned.values().map(|entry| (entry.id, entry.lsn)));
        all.filter(|(_, lsn)| *lsn != Lsn(0))
    }

    /// Every message as it would be taken, in no particular order; for checks.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        let fresh = self.levels.iter().flat_map(|(level, entries)| {
            entries.iter().map(|(seq, Fresh { message, lsn, arrived })| {
                Entry::new(EntryId { seq, level: *level }, message.clone(), *lsn, *arrived)
            })
        });
        fresh.chain(self.returned.values().cloned())
    }

    fn fresh_fronts(&self) -> impl Iterator<Item = Front> {
        self.levels.iter().filter_map(|(level, entries)| {
            let (seq, fresh) = entries.front()?;
            Some(fresh.front(EntryId { seq, level: *level }))
        })
    }

    fn first_fresh(&self) -> Option<Front> {
        let word = self.occupied.iter().rposition(|bits| *bits != 0)?;
        let level = word * 64 + 63 - self.occupied[word].leading_zeros() as usize;
        self.fresh_front(level)
    }

    fn lowest_fresh(&self) -> Option<EntryId> {
        let word = self.occupied.iter().position(|bits| *bits != 0)?;
        let level = word * 64 + self.occupied[word].trailing_zeros() as usize;
        self.fresh_front(level).map(|front| front.id)
    }

    fn fresh_front(&self, level: usize) -> Option<Front> {
        let level = u8::try_from(level).ok()?;
        let at = self.levels.binary_search_by(|(l, _)| level.cmp(l)).ok()?;
        let (seq, fresh) = self.levels[at].1.front()?;
        Some(fresh.front(EntryId { seq, level }))
    }
}

impl Fresh {
    fn front(&self, id: EntryId) -> Front {
        Front { id, arrived: self.arrived, expiration_ms: self.message.facts().expiration_ms }
    }
}

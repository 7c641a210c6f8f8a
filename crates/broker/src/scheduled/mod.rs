//! Messages that wait for their delivery time, in a queue or in a delayed exchange, by time and by schedule id.
//!
//! Where many messages wait, most of them are in pages on disk; those with the next delivery times are in memory.

pub(crate) mod delayed;
mod page;
pub(crate) mod pages;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::entry::Entry;
use crate::entry::meter::{MeterShare, QueueMemory};
use crate::entry::totals::{CountedBytes, PersistentMessages};
use crate::ids::{EntryId, Lsn, PageId};
use crate::limits::{
    HEAD_PAGES, PAGED_DUE_AHEAD_MS, PAGED_PER_ARRIVED, SCHEDULED_HEAD_PAGES, SCHEDULED_LONG_MS,
    SCHEDULED_LONG_SHARE, SCHEDULES_PER_ID_MAX,
};
use crate::page::{EndedMessages, PageSelection, PagedMessage, Pages, Paging};
use crate::publish_properties::delivery_time::scheduled_message;
use crate::publish_properties::schedule_headers::schedule_id_of;
use crate::schedule::{ScheduleId, ScheduleSelector};
use crate::scheduled::delayed::{Delayed, DelayedMessage};
use crate::scheduled::page::TimePlace;
use crate::scheduled::pages::{PagedPlace, RemovedMessage, ScheduledPages};
use crate::time::Time;

/// Scheduled messages of one queue or delayed exchange.
#[derive(Debug)]
pub(crate) struct Scheduled {
    /// The messages in memory.
    waiting: Delayed,
    pages: ScheduledPages,
    /// The messages with a schedule id.
    named: BTreeSet<(ScheduleId, u64)>,
    memory: Option<ScheduledMemory>,
    /// The place down to which the last pages were cut: the next page begins there, so that the pages cut one after
    /// the other have no delivery times in common.
    cut_down_to: Option<TimePlace>,
    /// Memory of the messages that began to wait since the last page was cut, in bytes.
    arrived_bytes: u64,
    /// The first message has to leave the queue and is in a page.
    wants_first: bool,
    /// Messages that get an earlier delivery time when the log is durable, by number.
    moves: BTreeMap<u64, Move>,
}

/// An earlier delivery time for a message. A message that is delivered at this time before its record is on disk would
/// wait again after a crash, and come a second time without a mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    /// The record of the new time.
    pub(crate) lsn: Lsn,
    pub(crate) ready_at: Time,
    /// The delivery time on the wall clock, if the message names it.
    pub(crate) scheduled_for_ms: Option<u64>,
    /// The message is to be delivered at once: no operation finds it any more.
    pub(crate) is_leaving: bool,
}

/// The facts about a message that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownMessage {
    pub(crate) id: EntryId,
    /// The record of the message; 0 if the message is transient.
    pub(crate) lsn: Lsn,
    pub(crate) ready_at: Time,
}

/// The places of messages that may go to a page.
#[derive(Clone, Copy, Debug)]
struct Late {
    /// Messages behind this place.
    beyond: TimePlace,
    /// Messages before this place, which are overdue.
    before: TimePlace,
    /// True if messages that do not fill a page stay in memory.
    only_full_pages: bool,
}

impl Late {
    /// Messages that do not leave soon, where memory is scarce.
    fn not_soon(now: Time) -> Self {
        let soon = now.plus_ms(2 * PAGED_DUE_AHEAD_MS);
        Self { beyond: (soon, u64::MAX), before: (now, u64::MAX), only_full_pages: false }
    }

    /// Messages that wait for long.
    fn long(now: Time) -> Self {
        let long = now.plus_ms(SCHEDULED_LONG_MS);
        Self { beyond: (long, u64::MAX), before: (Time::default(), 0), only_full_pages: true }
    }
}

/// The share of the scheduled messages in the memory of their vhost.
#[derive(Debug)]
struct ScheduledMemory {
    of_vhost: QueueMemory,
    share: MeterShare,
}

/// A message that is known by its place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScheduledAt<'a> {
    /// In memory.
    Here(TimePlace, &'a Entry),
    /// In a page.
    Paged(PagedPlace),
}

impl ScheduledAt<'_> {
    /// The delivery time and the number.
    pub(crate) fn place(&self) -> TimePlace {
        match self {
            Self::Here(place, _) => *place,
            Self::Paged(paged) => paged.at,
        }
    }
}

impl Scheduled {
    /// Without `memory`, all messages stay in memory.
    pub(crate) const fn new(counted: CountedBytes) -> Self {
        Self {
            waiting: Delayed::new(counted),
            pages: ScheduledPages::new(counted),
            named: BTreeSet::new(),
            memory: None,
            cut_down_to: None,
            arrived_bytes: 0,
            wants_first: false,
            moves: BTreeMap::new(),
        }
    }

    /// Counts the messages in the memory of the vhost.
    pub(crate) fn with_memory(self, of_vhost: QueueMemory) -> Self {
        let share = of_vhost.meter.share(0);
        Self { memory: Some(ScheduledMemory { of_vhost, share }), ..self }
    }
}

/// Counts and times.
impl Scheduled {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.pages.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The messages in pages and their bytes.
    pub(crate) fn paged_out(&self) -> (u64, u64) {
        (self.pages.len() as u64, self.pages.bytes())
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.waiting.bytes() + self.pages.bytes()
    }

    pub(crate) fn persistent(&self) -> PersistentMessages {
        self.waiting.persistent() + self.pages.persistent()
    }

    /// The earliest delivery time.
    pub(crate) fn next_ready_at(&self) -> Option<Time> {
        let paged = self.pages.first().map(|(at, _)| at);
        self.waiting.next_ready_at().into_iter().chain(paged).min()
    }

    /// The time of the next event: a message in memory is ready, or messages must be read.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        let Some(first_paged) = self.pages.first() else { return self.waiting.next_ready_at() };
        let ready = self.waiting.first_place().filter(|place| *place < first_paged);
        ready.map(|(at, _)| at).into_iter().chain(self.pages.next_read()).min()
    }

    pub(crate) fn contains(&self, id: EntryId) -> bool {
        self.waiting.contains(id) || self.pages.contains(id.seq)
    }

    /// The messages in memory.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.waiting.entries()
    }
}

/// Messages enter and leave.
impl Scheduled {
    /// Lets a message wait until `ready_at`.
    pub(crate) fn insert(&mut self, ready_at: Time, entry: Entry) {
        if let Some(id) = schedule_id_of(&entry.message) {
            self.named.insert((id, entry.id.seq));
        }
        self.arrived_bytes += entry.message.memory_bytes();
        self.insert_known(ready_at, entry);
    }

    /// Lets a message wait in memory whose name is known.
    fn insert_known(&mut self, ready_at: Time, entry: Entry) {
        if let Some(memory) = &mut self.memory {
            memory.share.grow(entry.message.memory_bytes());
        }
        self.waiting.insert(ready_at, entry);
    }

    /// Takes the next message that is ready at `now`, with the time since which it is, unless an earlier one is still
    /// on disk.
    pub(crate) fn pop_ready(&mut self, now: Time) -> Option<(Time, Entry)> {
        let (ready_at, seq) = self.first_in_memory().filter(|(at, _)| *at <= now)?;
        let entry = self.take_at_hand(EntryId { seq, level: 0 })?;
        Some((ready_at, entry))
    }

    /// Takes the message with the earliest delivery time, unless that is still on disk; then it is read.
    pub(crate) fn pop_first(&mut self) -> Option<Entry> {
        let Some((_, seq)) = self.first_in_memory() else {
            self.wants_first = self.pages.len() > 0;
            return None;
        };
        self.take_at_hand(EntryId { seq, level: 0 })
    }

    /// The place of the first message, if that is in memory.
    fn first_in_memory(&self) -> Option<TimePlace> {
        let first = self.waiting.first_place()?;
        self.pages.first().is_none_or(|paged| first < paged).then_some(first)
    }

    /// Takes a message that is in memory.
    pub(crate) fn take_at_hand(&mut self, id: EntryId) -> Option<Entry> {
        let entry = self.take_known(id)?;
        self.moves.remove(&id.seq);
        if !self.named.is_empty()
            && let Some(id) = schedule_id_of(&entry.message)
        {
            self.forget_name(id, entry.id.seq);
        }
        Some(entry)
    }

    /// Takes a message that is in memory, without forgetting its name.
    fn take_known(&mut self, id: EntryId) -> Option<Entry> {
        let entry = self.waiting.take(id)?;
        if let Some(memory) = &mut self.memory {
            memory.share.shrink(entry.message.memory_bytes());
        }
        Some(entry)
    }

    /// Takes a message that need not be read.
    pub(crate) fn remove(&mut self, id: EntryId) -> Option<RemovedMessage> {
        if let Some(Entry { id, lsn, .. }) = self.take_at_hand(id) {
            return Some(RemovedMessage { id, lsn, empty_page: None });
        }
        let name = self.pages.name(id.seq).cloned();
        let taken = self.pages.take(id.seq)?;
        self.moves.remove(&id.seq);
        if let Some(name) = name {
            self.forget_name(name, id.seq);
        }
        Some(taken)
    }

    fn forget_name(&mut self, name: ScheduleId, seq: u64) {
        let was_known = self.named.remove(&(name, seq));
        assert!(was_known, "the name of a waiting message is known");
    }

    /// Lets a message wait until another time, which it names if `scheduled_for_ms` is given. Returns the id and the
    /// record of the message; none if no such message waits.
    pub(crate) fn reschedule(
        &mut self,
        id: EntryId,
        ready_at: Time,
        scheduled_for_ms: Option<u64>,
    ) -> Option<(EntryId, Lsn)> {
        self.moves.remove(&id.seq);
        let Some(entry) = self.take_known(id) else {
            return self.pages.reschedule(id.seq, ready_at, scheduled_for_ms);
        };
        let rescheduled = (entry.id, entry.lsn);
        let entry = match scheduled_for_ms {
            Some(scheduled_for_ms) => {
                Entry { message: scheduled_message(&entry.message, scheduled_for_ms), ..entry }
            }
            None => entry,
        };
        self.insert_known(ready_at, entry);
        Some(rescheduled)
    }

    /// Lets a message get an earlier delivery time when the record of that time is durable.
    pub(crate) fn begin_move(&mut self, id: EntryId, to: Move) {
        assert!(self.contains(id), "only a message that waits gets another time");
        self.moves.insert(id.seq, to);
    }

    /// Gives a message the earlier delivery time whose record `lsn` is durable. False if the message has left, or was
    /// given another time since. No operation finds a message that leaves at once, until it is taken.
    pub(crate) fn finish_move(&mut self, id: EntryId, lsn: Lsn) -> bool {
        let Some(to) = self.moves.get(&id.seq).copied().filter(|to| to.lsn == lsn) else {
            return false;
        };
        let is_here = self.reschedule(id, to.ready_at, to.scheduled_for_ms).is_some();
        if is_here && to.is_leaving {
            self.moves.insert(id.seq, to);
        }
        is_here
    }

    /// The facts about a message.
    pub(crate) fn known(&self, id: EntryId) -> Option<KnownMessage> {
        match self.waiting.get(id) {
            Some(((ready_at, _), entry)) => {
                Some(KnownMessage { id: entry.id, lsn: entry.lsn, ready_at })
            }
            None => {
                let (place, lsn) = self.pages.place(id.seq)?;
                Some(KnownMessage { id: place.id, lsn, ready_at: place.at.0 })
            }
        }
    }

    fn is_leaving(&self, seq: u64) -> bool {
        self.moves.get(&seq).is_some_and(|to| to.is_leaving)
    }

    /// Marks the durable messages whose delivery time has come as possibly delivered before a crash.
    pub(crate) fn mark_due_as_seen(&mut self, now: Time) {
        self.waiting.mark_due_as_seen(now);
        self.pages.mark_due_as_seen(now);
    }

    /// Removes all messages. Returns the pages with what was in them.
    pub(crate) fn clear(&mut self) -> Vec<(PageId, EndedMessages)> {
        if let Some(memory) = &mut self.memory {
            memory.share = memory.of_vhost.meter.share(0);
        }
        self.waiting.clear();
        self.named.clear();
        self.moves.clear();
        (self.cut_down_to, self.wants_first) = (None, false);
        self.pages.clear()
    }

    /// Removes all messages; calls `ended` with the record of each durable one.
    pub(crate) fn end_all(&mut self, pages: &mut dyn Pages, ended: &mut dyn FnMut(Lsn)) {
        let durable = self.entries().filter(|entry| entry.is_durable());
        durable.for_each(|entry| ended(entry.lsn));
        self.end_pages(pages, ended);
        self.clear();
    }

    /// Removes all messages in pages; calls `ended` with the record of each durable one.
    pub(crate) fn end_pages(&mut self, pages: &mut dyn Pages, ended: &mut dyn FnMut(Lsn)) {
        for (page, left) in self.pages.clear() {
            let records = left.records(|| Ok::<_, std::convert::Infallible>(pages.meta(page)));
            let Ok(records) = records;
            records.into_iter().for_each(&mut *ended);
            pages.remove(page);
        }
    }
}

/// Messages go to pages and come back.
impl Scheduled {
    /// Writes messages with late delivery times to a page with this id, if many wait in memory and either the vhost has
    /// much there, others are in pages already, or these wait for long. The arrivals pay for the page: no slice of
    /// arrivals takes much longer than others, because many messages wait when the vhost begins to have much in memory.
    pub(crate) fn cut_page(&mut self, id: PageId, now: Time) -> Option<Vec<PagedMessage>> {
        let QueueMemory { paging, meter } = &self.memory.as_ref()?.of_vhost;
        let (paging, resident) = (*paging, meter.bytes());
        let kept = HEAD_PAGES * paging.page_messages;
        let most = SCHEDULED_HEAD_PAGES * paging.page_messages;
        let is_much = resident > paging.resident_bytes_max
            || self.pages.len() > 0 && self.waiting.len() > most;
        let has_long = resident > paging.resident_bytes_max / SCHEDULED_LONG_SHARE
            && self.waiting.len() > most;
        let is_paid = self.arrived_bytes >= paging.page_bytes / PAGED_PER_ARRIVED;
        if !is_paid || self.waiting.len() < kept + paging.page_messages {
            return None;
        }
        let late = match (is_much, has_long) {
            (true, _) => Late::not_soon(now),
            (false, true) => Late::long(now),
            (false, false) => return None,
        };
        self.arrived_bytes = 0;
        let found = self.cut_below(self.cut_down_to, late, paging, kept);
        let mut entries = found.or_else(|| self.cut_below(None, late, paging, kept))?;
        self.cut_down_to = entries.last().map(DelayedMessage::place);
        entries.reverse();
        Some(self.pages.write(id, entries, !self.named.is_empty()))
    }

    /// Takes the last late messages below `limit` that fill a page, if so many messages as `kept` remain in front of
    /// them. The last one comes first.
    fn cut_below(
        &mut self,
        limit: Option<TimePlace>,
        late: Late,
        paging: Paging,
        kept: usize,
    ) -> Option<Vec<DelayedMessage>> {
        let limit = limit.unwrap_or((Time::MAX, u64::MAX));
        let behind = late.beyond.min(limit)..limit;
        let overdue = (Time::default(), 0)..limit.min(late.before);
        let last = |places| self.waiting.last_places(places, paging.page_messages);
        let places = [behind, overdue].into_iter().map(last).find(|places| !places.is_empty())?;
        let is_left = late.only_full_pages && places.len() < paging.page_messages;
        if is_left || !self.waiting.has_before(*places.last()?, kept) {
            return None;
        }
        let mut taken = 0;
        let entries = self.waiting.take_at(&places, &mut |sizes| {
            let memory = taken + sizes.memory_bytes();
            let fits = taken == 0 || memory <= paging.page_bytes;
            taken = if fits { memory } else { taken };
            fits
        });
        if let Some(memory) = &mut self.memory {
            memory.share.shrink(taken);
        }
        Some(entries)
    }

    /// Messages of a page that must be read now.
    pub(crate) fn ask(&mut self, now: Time) -> Option<(PageId, PageSelection)> {
        let first = self.waiting.first_place();
        let (page, wanted) = self.pages.ask(now, first, self.wants_first)?;
        self.wants_first = false;
        Some((page, PageSelection::Listed(wanted)))
    }

    /// Takes in the messages read from a page; returns the page if it is empty now.
    pub(crate) fn read_back(
        &mut self,
        page: PageId,
        messages: Vec<PagedMessage>,
    ) -> Option<PageId> {
        let (entries, empty_page) = self.pages.read_back(page, messages);
        for (ready_at, entry) in entries {
            self.insert_known(ready_at, entry);
        }
        empty_page
    }

    /// True if messages are being read.
    pub(crate) fn is_being_read(&self) -> bool {
        self.pages.is_being_read()
    }

    /// True if messages are in this page.
    pub(crate) fn has_page(&self, id: PageId) -> bool {
        self.pages.has_page(id)
    }

    /// The pages with what is in them; for checks.
    pub(crate) fn members(&self) -> impl Iterator<Item = (PageId, BTreeSet<EntryId>)> {
        self.pages.members()
    }

    /// Takes a message out of memory or its page, during recovery.
    pub(crate) fn take(&mut self, id: EntryId, pages: &mut dyn Pages) -> Option<Entry> {
        if let Some(entry) = self.take_at_hand(id) {
            return Some(entry);
        }
        let (page, wanted) = self.pages.ask_for(id.seq)?;
        let read = pages.read(page, PageSelection::Listed(wanted));
        if let Some(page) = self.read_back(page, read.messages) {
            pages.remove(page);
        }
        self.take_at_hand(id)
    }
}

/// Messages in the order of their delivery times, for lists.
impl Scheduled {
    /// The messages with this name that are not about to be delivered, in order of arrival.
    pub(crate) fn named(&self, id: &ScheduleId) -> impl Iterator<Item = EntryId> {
        let name = self.named.range(all_of(id)).filter(|(_, seq)| !self.is_leaving(*seq));
        name.map(|(_, seq)| EntryId { seq: *seq, level: 0 })
    }

    /// The name of a message.
    pub(crate) fn name_of(&self, at: ScheduledAt<'_>) -> Option<ScheduleId> {
        match at {
            ScheduledAt::Here(_, entry) => schedule_id_of(&entry.message),
            ScheduledAt::Paged(paged) => self.pages.name(paged.at.1).cloned(),
        }
    }

    /// The messages that `selector` selects and that are not about to be delivered, in order of arrival.
    pub(crate) fn select(&self, selector: &ScheduleSelector) -> Vec<EntryId> {
        match selector {
            ScheduleSelector::Id(id) => self.named(id).collect(),
            ScheduleSelector::Handle(handle) => {
                let id = EntryId { seq: *handle, level: 0 };
                let is_found = self.contains(id) && !self.is_leaving(*handle);
                is_found.then_some(id).into_iter().collect()
            }
        }
    }

    /// Up to [`SCHEDULES_PER_ID_MAX`] messages that `selector` selects, by delivery time.
    pub(crate) fn places(&self, selector: &ScheduleSelector) -> Vec<ScheduledAt<'_>> {
        let selected = self.select(selector).into_iter().take(SCHEDULES_PER_ID_MAX);
        let place = |id: EntryId| match self.waiting.get(id) {
            Some((at, entry)) => Some(ScheduledAt::Here(at, entry)),
            None => self.pages.place(id.seq).map(|(place, _)| ScheduledAt::Paged(place)),
        };
        let mut found: Vec<_> = selected.filter_map(place).collect();
        found.sort_unstable_by_key(ScheduledAt::place);
        found
    }

    /// Messages behind a place, in order.
    pub(crate) fn after(&self, passed: TimePlace) -> impl Iterator<Item = ScheduledAt<'_>> {
        let mut here = self.waiting.after(passed).peekable();
        let mut paged = self.pages.after(passed).peekable();
        std::iter::from_fn(move || {
            let first_paged = paged.peek().map(|paged| paged.at);
            let is_first =
                |(at, _): &(TimePlace, &Entry)| first_paged.is_none_or(|paged| *at < paged);
            match here.next_if(is_first) {
                Some((at, entry)) => Some(ScheduledAt::Here(at, entry)),
                None => paged.next().map(ScheduledAt::Paged),
            }
        })
    }
}

fn all_of(id: &ScheduleId) -> RangeInclusive<(ScheduleId, u64)> {
    (id.clone(), 0)..=(id.clone(), u64::MAX)
}

//! The scheduled messages of one queue or delayed exchange that are on disk.
//!
//! A message comes back to memory shortly before its delivery time. Cancelling or rescheduling a message needs only
//! the facts in memory; a rescheduled message stays in its page and waits for its new time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Bound;
use std::sync::Arc;

use crate::entry::Entry;
use crate::entry::page_index::PageIndex;
use crate::entry::totals::{CountedBytes, PersistentMessages, Totals};
use crate::ids::{EntryId, Lsn, PageId};
use crate::limits::{PAGED_DUE_AHEAD_MS, PAGED_DUE_MAX, PAGED_DUE_MIN};
use crate::page::{EndedMessages, PagedMessage};
use crate::publish_properties::delivery_time::scheduled_message;
use crate::publish_properties::schedule_headers::schedule_id_of;
use crate::schedule::ScheduleId;
use crate::scheduled::delayed::DelayedMessage;
use crate::scheduled::page::{ScheduledPage, Slot, SlotState, TimePlace};
use crate::time::Time;

/// A message in a page that waits for another time than its page says.
#[derive(Clone, Copy, Debug)]
struct Rescheduled {
    /// The delivery time on the wall clock, if the message names it.
    scheduled_for_ms: Option<u64>,
    is_being_read: bool,
}

/// A message that was taken out of a page without being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemovedMessage {
    pub(crate) id: EntryId,
    pub(crate) lsn: Lsn,
    /// The page, if no message is left there.
    pub(crate) empty_page: Option<PageId>,
}

/// A message in a page, as lists show it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PagedPlace {
    pub(crate) at: TimePlace,
    pub(crate) id: EntryId,
    pub(crate) page: PageId,
    pub(crate) is_durable: bool,
    /// The delivery time that the message has to name instead of the one that it names in its page.
    pub(crate) scheduled_for_ms: Option<u64>,
}

impl Slot {
    fn paged_in(&self, page: PageId) -> PagedPlace {
        let id = self.id;
        PagedPlace {
            at: self.place(),
            id,
            page,
            is_durable: self.lsn != Lsn(0),
            scheduled_for_ms: None,
        }
    }
}

/// Scheduled messages in pages.
#[derive(Debug)]
pub(super) struct ScheduledPages {
    /// The pages by index; free places are used again.
    pages: Vec<Option<(PageId, ScheduledPage)>>,
    free: Vec<u32>,
    indices: BTreeMap<PageId, u32>,
    index: PageIndex,
    /// The first place in each page that is not being read.
    unread: BTreeSet<(TimePlace, u32)>,
    /// The first place in each page that is being read.
    being_read: BTreeSet<(TimePlace, u32)>,
    rescheduled: BTreeMap<TimePlace, Rescheduled>,
    rescheduled_at: BTreeMap<u64, Time>,
    names: BTreeMap<u64, ScheduleId>,
    len: usize,
    totals: Totals,
    /// Durable messages with delivery times up to this moment may have been delivered before a crash.
    seen_until: Option<Time>,
}

impl ScheduledPages {
    pub(super) const fn new(counted: CountedBytes) -> Self {
        Self {
            pages: Vec::new(),
            free: Vec::new(),
            indices: BTreeMap::new(),
            index: PageIndex::new(),
            unread: BTreeSet::new(),
            being_read: BTreeSet::new(),
            rescheduled: BTreeMap::new(),
            rescheduled_at: BTreeMap::new(),
            names: BTreeMap::new(),
            len: 0,
            totals: Totals::new(counted),
            seen_until: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> u64 {
        self.totals.bytes()
    }

    pub(super) fn persistent(&self) -> PersistentMessages {
        self.totals.persistent()
    }

    /// Writes messages, in the order of their places, to a page. `has_names` tells whether any may have a schedule id.
    pub(super) fn write(
        &mut self,
        id: PageId,
        entries: Vec<DelayedMessage>,
        has_names: bool,
    ) -> Vec<PagedMessage> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.pages.push(None);
            u32::try_from(self.pages.len() - 1).expect("pages have thousands of messages each")
        });
        for DelayedMessage { entry, sizes, .. } in &entries {
            self.index.insert(entry.id.seq, index);
            self.totals.add_sizes(*sizes, entry.lsn);
            if has_names && let Some(name) = schedule_id_of(&entry.message) {
                self.names.insert(entry.id.seq, name);
            }
        }
        self.len += entries.len();
        let (page, messages) = ScheduledPage::new(entries, self.totals.counted());
        self.pages[index as usize] = Some((id, page));
        self.indices.insert(id, index);
        self.list(index);
        messages
    }

    /// The first place of all messages in pages.
    pub(super) fn first(&self) -> Option<TimePlace> {
        let of_pages = [self.unread.first(), self.being_read.first()];
        let of_pages = of_pages.into_iter().flatten().map(|(place, _)| *place);
        of_pages.chain(self.rescheduled.keys().next().copied()).min()
    }

    /// The first place, and its page, that can be read: no messages of the page are being read.
    fn first_unread(&self) -> Option<(TimePlace, u32)> {
        let of_page = self.unread.first().copied();
        let rescheduled = self.rescheduled.iter().filter(|(_, message)| !message.is_being_read);
        let rescheduled = rescheduled.map(|((at, seq), _)| ((*at, *seq), self.page_of(*seq)));
        let mut readable = rescheduled.filter(|(_, index)| !self.page_at(*index).1.is_being_read);
        of_page.into_iter().chain(readable.next()).min()
    }

    /// The first place that is being read.
    fn first_being_read(&self) -> Option<TimePlace> {
        let of_page = self.being_read.first().map(|(place, _)| *place);
        let mut rescheduled = self.rescheduled.iter().filter(|(_, message)| message.is_being_read);
        of_page.into_iter().chain(rescheduled.next().map(|(place, _)| *place)).min()
    }

    pub(super) fn is_being_read(&self) -> bool {
        self.first_being_read().is_some()
    }

    /// The time at which messages must be read.
    pub(super) fn next_read(&self) -> Option<Time> {
        let (place, _) = self.first_unread()?;
        // The end of a read is an opportunity for the next one.
        let waits_for_read = self.first_being_read().is_some_and(|earlier| earlier < place);
        (!waits_for_read).then(|| place.0.minus_ms(PAGED_DUE_AHEAD_MS))
    }

    /// Messages of a page that must be read now, because their delivery times are near, or with `wants_first` because
    /// the first message has to leave. An overdue page waits for earlier messages: for reads, and for those in memory,
    /// of which `first_in_memory` is the first.
    pub(super) fn ask(
        &mut self,
        now: Time,
        first_in_memory: Option<TimePlace>,
        wants_first: bool,
    ) -> Option<(PageId, Vec<u64>)> {
        let (place, index) = self.first_unread()?;
        let earlier = self.first_being_read().into_iter().chain(first_in_memory).min();
        let is_next = earlier.is_none_or(|earlier| place < earlier);
        let is_near = place.0 <= now.plus_ms(PAGED_DUE_AHEAD_MS) && (place.0 > now || is_next);
        if !(is_near || wants_first && is_next) {
            return None;
        }
        let until = now.plus_ms(2 * PAGED_DUE_AHEAD_MS);
        Some(self.begin_read(index, until, if wants_first { PAGED_DUE_MIN } else { 0 }))
    }

    fn begin_read(&mut self, index: u32, until: Time, least: usize) -> (PageId, Vec<u64>) {
        let (id, page) = self.page_at(index);
        let id = *id;
        let mut wanted = page.due(until, least, PAGED_DUE_MAX);
        let rescheduled = self.rescheduled.range(..=(until, u64::MAX));
        let of_page = rescheduled.filter(|((_, seq), _)| self.page_of(*seq) == index);
        let of_page: Vec<TimePlace> = of_page.map(|(place, _)| *place).collect();
        for place in of_page {
            let message = self.rescheduled.get_mut(&place).expect("the place was found");
            message.is_being_read = true;
            wanted.push(place.1);
        }
        wanted.sort_unstable();
        self.change(index, |page| page.is_being_read = true);
        (id, wanted)
    }

    /// The page of a message, and the numbers of the messages there to read with it: those with the next delivery
    /// times are needed next.
    pub(super) fn ask_for(&mut self, seq: u64) -> Option<(PageId, Vec<u64>)> {
        let index = self.index.get(seq)?;
        let (id, mut wanted) = self.begin_read(index, Time::default(), PAGED_DUE_MIN);
        if let Err(at) = wanted.binary_search(&seq) {
            wanted.insert(at, seq);
        }
        Some((id, wanted))
    }

    /// Takes in the messages read from a page; returns them with their delivery times, and the page if it is empty
    /// now.
    pub(super) fn read_back(
        &mut self,
        id: PageId,
        messages: Vec<PagedMessage>,
    ) -> (Vec<(Time, Entry)>, Option<PageId>) {
        let Some(index) = self.indices.get(&id).copied() else { return (Vec::new(), None) };
        self.change(index, |page| page.is_being_read = false);
        let mut entries = Vec::with_capacity(messages.len());
        for PagedMessage { meta, message } in messages {
            let rescheduled_at = self.rescheduled_at.get(&meta.seq).copied();
            let rescheduled = rescheduled_at
                .map(|at| *self.rescheduled.get(&(at, meta.seq)).expect("both maps have it"));
            let Some(slot) = self.leave(index, meta.seq) else { continue };
            let ready_at = rescheduled_at.unwrap_or(slot.ready_at);
            let message = match rescheduled.and_then(|message| message.scheduled_for_ms) {
                Some(scheduled_for_ms) => scheduled_message(&message, scheduled_for_ms),
                None => message,
            };
            let is_seen = self.seen_until.is_some_and(|until| ready_at <= until);
            let message =
                if is_seen && slot.lsn != Lsn(0) { message.maybe_seen() } else { message };
            entries.push((ready_at, Entry::new(slot.id, message, slot.lsn, meta.arrived)));
        }
        (entries, self.remove_if_empty(index))
    }

    /// Takes a message that need not be read.
    pub(super) fn take(&mut self, seq: u64) -> Option<RemovedMessage> {
        let index = self.index.get(seq)?;
        let slot = self.leave(index, seq)?;
        let empty_page = self.remove_if_empty(index);
        Some(RemovedMessage { id: slot.id, lsn: slot.lsn, empty_page })
    }

    /// The name of a message.
    pub(super) fn name(&self, seq: u64) -> Option<&ScheduleId> {
        self.names.get(&seq)
    }

    pub(super) fn contains(&self, seq: u64) -> bool {
        self.index.get(seq).is_some()
    }

    /// Lets a message wait until another time. Returns its id and its record.
    pub(super) fn reschedule(
        &mut self,
        seq: u64,
        ready_at: Time,
        scheduled_for_ms: Option<u64>,
    ) -> Option<(EntryId, Lsn)> {
        let index = self.index.get(seq)?;
        let mut slot = None;
        self.change(index, |page| slot = page.set_state(seq, SlotState::Rescheduled));
        let slot = slot.expect("the index knows the page of the message");
        let before = self.rescheduled_at.insert(seq, ready_at);
        let before = before.map(|before| {
            self.rescheduled.remove(&(before, seq)).expect("both maps have the message")
        });
        let is_being_read = before.is_some_and(|before| before.is_being_read);
        let message = Rescheduled { scheduled_for_ms, is_being_read };
        self.rescheduled.insert((ready_at, seq), message);
        Some((slot.id, slot.lsn))
    }

    /// The place of a message, and its record.
    pub(super) fn place(&self, seq: u64) -> Option<(PagedPlace, Lsn)> {
        let index = self.index.get(seq)?;
        let (id, page) = self.page_at(index);
        let slot = page.get(seq).expect("the index knows the page of the message");
        let place = slot.paged_in(*id);
        let Some(ready_at) = self.rescheduled_at.get(&seq).copied() else {
            return Some((place, slot.lsn));
        };
        let message = self.rescheduled.get(&(ready_at, seq)).expect("both maps have the message");
        let scheduled_for_ms = message.scheduled_for_ms;
        Some((PagedPlace { at: (ready_at, seq), scheduled_for_ms, ..place }, slot.lsn))
    }

    /// The messages behind a place, in order.
    pub(super) fn after(&self, passed: TimePlace) -> impl Iterator<Item = PagedPlace> {
        let mut pages: Vec<_> =
            self.pages.iter().flatten().map(|(id, page)| (*id, page.after(passed))).collect();
        let mut heads = BinaryHeap::new();
        let mut next_of = move |number: usize, heads: &mut BinaryHeap<_>| {
            let (page, slots): &mut (PageId, _) = &mut pages[number];
            if let Some(slot) = Iterator::next(slots) {
                heads.push(Reverse((slot.place(), number, slot.paged_in(*page))));
            }
        };
        (0..self.indices.len()).for_each(|number| next_of(number, &mut heads));
        let behind = (Bound::Excluded(passed), Bound::Unbounded);
        let mut rescheduled = self.rescheduled.range(behind).map(|(place, _)| *place).peekable();
        std::iter::from_fn(move || {
            let head = heads.peek().map(|Reverse((place, ..))| *place);
            if let Some((_, seq)) = rescheduled.next_if(|at| head.is_none_or(|head| *at < head)) {
                return self.place(seq).map(|(place, _)| place);
            }
            let Reverse((_, number, paged)) = heads.pop()?;
            next_of(number, &mut heads);
            Some(paged)
        })
    }

    /// True if messages are in this page.
    pub(super) fn has_page(&self, id: PageId) -> bool {
        self.indices.contains_key(&id)
    }

    /// Marks the durable messages with delivery times up to `now` as possibly delivered before a crash.
    pub(super) fn mark_due_as_seen(&mut self, now: Time) {
        self.seen_until = Some(now);
    }

    /// The pages with what is in them; for checks.
    pub(super) fn members(&self) -> impl Iterator<Item = (PageId, BTreeSet<EntryId>)> {
        let ids = |page: &ScheduledPage| page.slots().map(|slot| slot.id).collect();
        self.pages.iter().flatten().map(move |(id, page)| (*id, ids(page)))
    }

    /// Removes all messages; names the pages with what was in them.
    pub(super) fn clear(&mut self) -> Vec<(PageId, EndedMessages)> {
        let Self { pages, .. } = std::mem::replace(self, Self::new(self.totals.counted()));
        let ended = |page: ScheduledPage| EndedMessages::Records(Arc::new(page));
        pages.into_iter().flatten().map(|(id, page)| (id, ended(page))).collect()
    }

    fn page_at(&self, index: u32) -> &(PageId, ScheduledPage) {
        let page = self.pages.get(index as usize).and_then(Option::as_ref);
        page.expect("pages with messages are known")
    }

    fn page_of(&self, seq: u64) -> u32 {
        self.index.get(seq).expect("a rescheduled message is in a page")
    }

    /// Changes a page, and lists the page by its new first place.
    fn change(&mut self, index: u32, change: impl FnOnce(&mut ScheduledPage)) {
        self.unlist(index);
        let page = self.pages[index as usize].as_mut().expect("pages with messages are known");
        change(&mut page.1);
        self.list(index);
    }

    fn list(&mut self, index: u32) {
        let (_, page) = self.page_at(index);
        if let Some(first) = page.first() {
            let is_being_read = page.is_being_read;
            let list = if is_being_read { &mut self.being_read } else { &mut self.unread };
            list.insert((first, index));
        }
    }

    fn unlist(&mut self, index: u32) {
        let (_, page) = self.page_at(index);
        if let Some(first) = page.first() {
            self.unread.remove(&(first, index));
            self.being_read.remove(&(first, index));
        }
    }

    /// Lets a message leave its page.
    fn leave(&mut self, index: u32, seq: u64) -> Option<Slot> {
        let mut slot = None;
        self.change(index, |page| slot = page.set_state(seq, SlotState::Left));
        let slot = slot?;
        self.len -= 1;
        self.totals.subtract_bytes(slot.bytes, slot.lsn);
        self.index.remove(seq);
        self.names.remove(&seq);
        if let Some(at) = self.rescheduled_at.remove(&seq) {
            self.rescheduled.remove(&(at, seq)).expect("both maps have the message");
        }
        Some(slot)
    }

    fn remove_if_empty(&mut self, index: u32) -> Option<PageId> {
        let (id, page) = self.page_at(index);
        if page.len() > 0 {
            return None;
        }
        let id = *id;
        self.pages[index as usize] = None;
        self.free.push(index);
        self.indices.remove(&id);
        Some(id)
    }
}

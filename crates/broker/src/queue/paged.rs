//! Paging of a queue: writing pages, reading them back, and the facts about the pages that are not read.

use super::level::{Level, Page};
use super::ready::{Place, Ready};
use super::{Queue, QueueCounters};
use crate::entry::Entry;
use crate::entry::totals::CountedBytes;
use crate::ids::{EntryId, Lsn, PageId};
use crate::limits::{PAGED_DUE_AHEAD_MS, TAIL_PAGE_ARRIVALS};
use crate::message::Message;
use crate::page::{PageMembers, PageRead, PageSelection, PagedMessage, PagedMeta, Pages};
use crate::setting::ExpiryOrder;
use crate::time::Time;

/// A page of a queue, with its level.
pub(crate) type LevelPage = (u8, PageId);

impl Queue {
    /// Writes messages of a level to a page, if the level is long and either the vhost has much in memory or
    /// the level has pages already.
    pub(crate) fn page_out(&mut self, level: u8, id: PageId) -> Option<Vec<PagedMessage>> {
        if !self.waiting.ready.is_to_be_paged(level) {
            return None;
        }
        let messages = self.waiting.ready.page_out(level, id)?;
        if self.settings.expiry_order == ExpiryOrder::Deadline {
            let with_deadline = messages.iter().filter(|message| message.meta.deadline.is_some());
            self.expiry.left_for_page(with_deadline.count(), &self.waiting);
        }
        Some(messages)
    }

    /// Ready and scheduled messages on disk and their bytes, counted as the queue type counts them.
    pub fn paged_out(&self) -> (u64, u64) {
        let pages = self.waiting.ready.levels.iter().flat_map(Level::pages);
        pages.fold(self.waiting.scheduled().paged_out(), |(count, bytes), page| {
            (count + page.held.count() as u64, bytes + page.bytes)
        })
    }

    pub(crate) fn has_pages(&self) -> bool {
        self.waiting.ready.has_pages()
    }

    /// True if messages of the queue are being read.
    pub(crate) fn is_being_read(&self) -> bool {
        self.waiting.ready.is_being_read() || self.waiting.scheduled().is_being_read()
    }

    /// The next page to read as a whole.
    pub(crate) fn await_page(&mut self) -> Option<LevelPage> {
        self.waiting.ready.await_page()
    }

    /// The next page of which messages have to be read because they expire soon.
    pub(crate) fn ask_due(&mut self, now: Time) -> Option<(LevelPage, PageSelection)> {
        match self.settings.expiry_order {
            ExpiryOrder::Head => None,
            ExpiryOrder::Deadline => {
                self.expiry.skip_stale(now, &self.waiting);
                let first = self.expiry.first_listed().map(|(deadline, _)| deadline);
                self.waiting.ready.ask_due(now, first)
            }
        }
    }

    /// Takes in the messages read from a page; returns the page if it is empty now.
    pub(crate) fn read_back(&mut self, at: LevelPage, read: PageRead) -> Option<PageId> {
        let (level, _) = at;
        let with_deadline = read.messages.iter().map(|message| message.meta);
        let with_deadline = with_deadline.filter(|meta| meta.deadline.is_some());
        let ids: Vec<EntryId> =
            with_deadline.map(|meta| EntryId { seq: meta.seq, level }).collect();
        let page = self.waiting.ready.read_back(at, read);
        for id in ids {
            if let Some(front) = self.waiting.ready.get(id) {
                self.expiry.list(&front, &self.settings);
            }
        }
        page
    }

    /// Takes a message, as it was read, out of its page; also returns the page if it is empty now.
    pub(crate) fn take_from_page(&mut self, read: &Entry) -> Option<(Entry, Option<PageId>)> {
        self.waiting.ready.take_from_page(read)
    }

    /// The pages with what is in them; for checks.
    pub(crate) fn paged(&self) -> impl Iterator<Item = (u8, PageId, &PageMembers)> {
        self.waiting.ready.paged()
    }

    // ---- during recovery ----

    /// Takes a message from memory or from its page.
    pub(crate) fn take(&mut self, id: EntryId, pages: &mut dyn Pages) -> Option<Entry> {
        let entry = self.take_at_hand(id).or_else(|| self.dead_letters.take(id));
        let entry = entry.or_else(|| self.take_scheduled(id, pages));
        entry.or_else(|| self.waiting.ready.take_paged(id, pages))
    }

    /// Takes a message that waits for its delivery time from memory or from its page.
    pub(crate) fn take_scheduled(&mut self, id: EntryId, pages: &mut dyn Pages) -> Option<Entry> {
        self.waiting.scheduled_mut()?.take(id, pages)
    }

    /// Removes a message from memory or from its page; false if it is not here.
    pub(crate) fn forget(&mut self, id: EntryId, pages: &mut dyn Pages) -> bool {
        if self.take_at_hand(id).is_some() || self.dead_letters.take(id).is_some() {
            return true;
        }
        let Some(removed) = self.remove_scheduled(id) else {
            return self.waiting.ready.forget(id, pages);
        };
        removed.empty_page.into_iter().for_each(|page| pages.remove(page));
        true
    }

    /// Removes all waiting messages; calls `ended` with the record of each durable one.
    pub(crate) fn end_all(&mut self, pages: &mut dyn Pages, ended: &mut dyn FnMut(Lsn)) {
        self.durable_waiting().for_each(|(_, lsn)| ended(lsn));
        self.waiting.ready.clear_pages(pages, &mut |meta: PagedMeta| {
            if meta.lsn != Lsn(0) {
                ended(meta.lsn);
            }
        });
        if let Some(scheduled) = self.waiting.scheduled_mut() {
            scheduled.end_pages(pages, ended);
        }
        self.purge();
    }

    /// Takes note that messages up to this number may have been delivered. Their numbers are used, even if the log has no
    /// record of them, because they were acknowledged before their batch was written.
    pub(crate) fn restore_delivered(&mut self, up_to: u64) {
        self.waiting.ready.note_seq(up_to);
        self.delivery.restore_note(up_to);
    }

    /// Assumes that any message that was ready until `now` may have been delivered, because the log has lost its
    /// notes of deliveries. True if a note must be written.
    pub(crate) fn deliveries_forgotten(&mut self, now: Time) -> bool {
        self.waiting.mark_due_as_seen(now);
        let newest = self.waiting.ready.last_seq();
        self.delivery.forget_note(newest)
    }

    /// Assumes, because the leader of the vhost is lost, what the log does not say: any message of a classic queue that is
    /// ready, or becomes due until `until`, may have been delivered. From a queue whose deliveries wait for the log, only
    /// messages may have left, and not been delivered, without a record. True if a note must be written.
    pub(crate) fn leader_lost(&mut self, until: Time) -> bool {
        if self.kind().delivers_after_commit() {
            self.waiting.ready.mark_left();
            return false;
        }
        self.deliveries_forgotten(until)
    }

    /// Completes recovery: marks delivered messages and renews the lease.
    pub(crate) fn came_back(&mut self, now: Time, pages: &mut dyn Pages) {
        self.waiting.ready.mark_delivered(self.delivery.delivered_up_to());
        self.waiting.ready.look_again(pages);
        while let Some((level, page)) = self.await_page() {
            let read = pages.read(page, PageSelection::Whole);
            if let Some(page) = self.read_back((level, page), read) {
                pages.remove(page);
            }
        }
        self.counters = QueueCounters::entered(self.message_count());
        self.expiry.renew_lease(now);
    }
}

impl Ready {
    pub(crate) fn has_pages(&self) -> bool {
        self.page_count > 0
    }

    /// True if the next message to deliver is in a page.
    pub(crate) fn is_away(&self) -> bool {
        self.has_pages() && !self.is_empty() && self.front().is_none()
    }

    /// True if messages are being read.
    pub(crate) fn is_being_read(&self) -> bool {
        self.first_being_read().is_some()
            || self.has_pages() && self.levels.iter().any(Level::awaits_page)
    }

    /// True if a long level should be written to pages: because the queues of the vhost have much in memory
    /// or, checked at intervals, because the level has pages and a long tail behind them.
    pub(crate) fn is_to_be_paged(&self, level: u8) -> bool {
        let has_long_tail = || {
            let level = self.level_at(level).and_then(|at| self.levels.get(at));
            level.is_some_and(|level| level.has_long_tail(self.paging))
        };
        self.resident_bytes() > self.paging.resident_bytes_max
            || self.has_pages()
                && self.last_seq().is_multiple_of(TAIL_PAGE_ARRIVALS)
                && has_long_tail()
    }

    /// Writes messages of a level to a page with this id.
    pub(crate) fn page_out(&mut self, level: u8, id: PageId) -> Option<Vec<PagedMessage>> {
        let (at, paging, counted) = (self.level_at(level)?, self.paging, self.counted());
        let messages = self.metered(at, |level| {
            level.page_out(id, paging, |seq, fresh| {
                meta(seq, fresh.lsn, fresh.arrived, &fresh.message, counted)
            })
        })?;
        self.page_count += 1;
        self.relist((level, id), |_| {});
        Some(messages)
    }

    /// The next page to read as a whole, so that no head becomes empty; the page is awaited from then on.
    pub(crate) fn await_page(&mut self) -> Option<LevelPage> {
        if !self.has_pages() {
            return None;
        }
        let paging = self.paging;
        let wanted = |level: &Level| Some((level.number, level.wanted_page(paging)?));
        let next = self.levels.iter().find_map(wanted)?;
        self.relist(next, |page| page.is_awaited = true);
        Some(next)
    }

    /// The next page of which messages must be read, because they expire soon. An overdue page is returned
    /// only if it delays messages in memory, of which `first` is the earliest deadline.
    pub(crate) fn ask_due(
        &mut self,
        now: Time,
        first: Option<Time>,
    ) -> Option<(LevelPage, PageSelection)> {
        let (deadline, level, id) = *self.page_deadlines.get()?.first()?;
        let soon = now.plus_ms(PAGED_DUE_AHEAD_MS);
        let holds_up = deadline > now || first.is_none_or(|first| deadline <= first);
        if deadline > soon || !holds_up {
            return None;
        }
        self.relist((level, id), |page| page.is_asked = true);
        let others = self.first_to_read();
        let others = others.into_iter().chain(self.first_being_read_but(id));
        let likely = now.plus_ms(2 * PAGED_DUE_AHEAD_MS);
        let certain = others.min().map_or(likely, |others| others.min(likely));
        let page = self.page_mut((level, id))?;
        Some(((level, id), PageSelection::Due { certain, likely, held: page.held.clone() }))
    }

    /// The time at which a page must be read, because a message in it expires soon. None while the page waits for messages in
    /// memory, of which `first` is the earliest deadline, and these for a page that is being read: the end of the read is an
    /// opportunity for the next one.
    pub(crate) fn next_ask(&self, first: Option<Time>) -> Option<Time> {
        let deadline = self.first_to_read()?;
        let waits_for_read = |first: Time| self.first_being_read().is_some_and(|read| read < first);
        let waits = first.is_some_and(|first| first < deadline && waits_for_read(first));
        (!waits).then(|| deadline.minus_ms(PAGED_DUE_AHEAD_MS))
    }

    /// The earliest expiration deadline in the pages that are not being read.
    fn first_to_read(&self) -> Option<Time> {
        self.page_deadlines.get()?.first().map(|(deadline, ..)| *deadline)
    }

    /// The earliest expiration deadline in the pages that are being read.
    pub(crate) fn first_being_read(&self) -> Option<Time> {
        self.being_read.get()?.first().map(|(deadline, _)| *deadline)
    }

    fn first_being_read_but(&self, id: PageId) -> Option<Time> {
        let mut all = self.being_read.get()?.iter();
        all.find(|(_, other)| *other != id).map(|(deadline, _)| *deadline)
    }

    /// The earliest expiration deadline in any page.
    pub(crate) fn first_paged_deadline(&self) -> Option<Time> {
        self.first_to_read().into_iter().chain(self.first_being_read()).min()
    }

    /// Takes in the messages read from a page; returns the page if it is empty now.
    pub(crate) fn read_back(&mut self, at: LevelPage, read: PageRead) -> Option<PageId> {
        let PageRead { wanted, messages, next_deadline } = read;
        let (level, id) = at;
        let place = self.level_at(level).filter(|place| self.levels[*place].knows_page(id))?;
        if wanted == PageSelection::Whole {
            self.unlist(at);
            let has_arrived = self.metered(place, |level| level.arrived(id, messages));
            self.page_count -= usize::from(has_arrived);
            if !has_arrived {
                // It came before the pages in front of it: it may be asked for again.
                self.relist(at, |page| page.is_awaited = false);
            }
            return has_arrived.then_some(id);
        }
        for PagedMessage { meta, message } in messages {
            if self.levels[place].leaves_page(id, meta.seq, Some(meta)) {
                let entry = EntryId { seq: meta.seq, level };
                let entry = self.entry(entry, message, meta.lsn, meta.arrived);
                let place = Place::of(entry.id);
                self.returned_places.insert(entry.id.seq, place);
                self.returned.insert(place, entry);
            }
        }
        if let PageSelection::Due { .. } = wanted {
            self.relist(at, |page| {
                page.is_asked = false;
                page.next_deadline = next_deadline;
            });
        }
        self.remove_if_empty(at)
    }

    /// Takes a message, as it was read, out of its page; also returns the page if it is empty now.
    pub(crate) fn take_from_page(&mut self, read: &Entry) -> Option<(Entry, Option<PageId>)> {
        let EntryId { seq, level } = read.id;
        let page = self.page_of(read.id)?;
        let at = self.level_at(level)?;
        let Entry { lsn, arrived, ref message, .. } = *read;
        let meta = meta(seq, lsn, arrived, message, self.counted());
        if !self.levels[at].leaves_page(page, seq, Some(meta)) {
            return None;
        }
        self.len -= 1;
        self.totals.subtract_bytes(meta.bytes, lsn);
        let entry = self.entry(read.id, message.clone(), lsn, arrived);
        Some((entry, self.remove_if_empty((level, page))))
    }

    /// The page that holds a message.
    pub(crate) fn page_of(&self, id: EntryId) -> Option<PageId> {
        let at = self.level_at(id.level)?;
        self.levels[at].page_of(id.seq).map(|page| page.id)
    }

    fn remove_if_empty(&mut self, (level, id): LevelPage) -> Option<PageId> {
        let page = self.page_mut((level, id))?;
        if page.held.count() > 0 {
            return None;
        }
        // Bytes of messages that left during recovery with unknown size are still counted.
        let unseen_bytes = std::mem::take(&mut page.bytes);
        self.totals.replace_persistent_bytes(unseen_bytes, 0);
        self.unlist((level, id));
        let at = self.level_at(level)?;
        self.metered(at, |level| level.remove_page(id));
        self.page_count -= 1;
        Some(id)
    }

    /// Removes everything, and names the pages with what was in them.
    pub(crate) fn clear(&mut self) -> Vec<(PageId, PageMembers)> {
        let mut pages = Vec::new();
        for at in 0..self.levels.len() {
            pages.extend(self.metered(at, Level::clear));
        }
        self.returned.clear();
        self.returned_places.clear();
        self.page_deadlines.clear();
        self.being_read.clear();
        self.totals.clear();
        (self.len, self.page_count) = (0, 0);
        pages
    }

    /// Changes the facts about a page, and lists the page by its new deadline.
    fn relist(&mut self, at: LevelPage, change: impl FnOnce(&mut Page)) {
        self.unlist(at);
        let (level, id) = at;
        let Some(page) = self.page_mut(at) else { return };
        change(page);
        let is_being_read = page.is_awaited || page.is_asked;
        if let Some(deadline) = page.next_deadline {
            if is_being_read {
                self.being_read.or_default().insert((deadline, id));
            } else {
                self.page_deadlines.or_default().insert((deadline, level, id));
            }
        }
    }

    fn page_mut(&mut self, (level, id): LevelPage) -> Option<&mut Page> {
        let at = self.level_at(level)?;
        self.levels[at].page_mut(id)
    }

    fn unlist(&mut self, at: LevelPage) {
        let (level, id) = at;
        if let Some(deadline) = self.page_mut(at).and_then(|page| page.next_deadline) {
            if let Some(being_read) = self.being_read.get_mut() {
                being_read.remove(&(deadline, id));
            }
            if let Some(deadlines) = self.page_deadlines.get_mut() {
                deadlines.remove(&(deadline, level, id));
            }
        }
    }

    // ---- during recovery ----

    /// Removes a message, which is not in memory, from its page; false if it is in none.
    pub(crate) fn forget(&mut self, id: EntryId, pages: &mut dyn Pages) -> bool {
        let Some(at) = self.level_at(id.level) else { return false };
        let Some(page) = self.levels[at].page_of(id.seq).map(|page| page.id) else { return false };
        if !self.levels[at].leaves_page(page, id.seq, None) {
            return false;
        }
        self.len -= 1;
        self.totals.subtract_persistent_of_unknown_size();
        if let Some(page) = self.remove_if_empty((id.level, page)) {
            pages.remove(page);
        }
        true
    }

    /// Takes a message out of its page.
    pub(crate) fn take_paged(&mut self, id: EntryId, pages: &mut dyn Pages) -> Option<Entry> {
        let at = self.level_at(id.level)?;
        let page = self.levels[at].page_of(id.seq)?.id;
        let read = pages.read(page, PageSelection::Only(id.seq));
        if let Some(page) = self.read_back((id.level, page), read) {
            pages.remove(page);
        }
        self.take(id)
    }

    /// Corrects the facts about pages from which messages of unknown size left.
    pub(crate) fn look_again(&mut self, pages: &mut dyn Pages) {
        for at in 0..self.levels.len() {
            let level = self.levels[at].number;
            let unsure = self.levels[at].pages().filter(|page| page.left_unseen);
            let unsure: Vec<PageId> = unsure.map(|page| page.id).collect();
            for id in unsure {
                let meta = pages.meta(id);
                self.unlist((level, id));
                let (before, after) = self.levels[at].look_again(id, &meta);
                // Every message from the log outlives a restart.
                self.totals.replace_persistent_bytes(before, after);
                self.relist((level, id), |_| {});
            }
        }
    }

    /// Removes everything in pages, and hands out what was known of it.
    pub(crate) fn clear_pages(&mut self, pages: &mut dyn Pages, each: &mut dyn FnMut(PagedMeta)) {
        for (id, held) in self.clear() {
            let meta = pages.meta(id).into_iter();
            meta.filter(|meta| held.contains(meta.seq)).for_each(&mut *each);
            pages.remove(id);
        }
    }

    /// The pages with what is in them; for checks.
    pub(crate) fn paged(&self) -> impl Iterator<Item = (u8, PageId, &PageMembers)> {
        self.levels
            .iter()
            .flat_map(|level| level.paged().map(move |(id, held)| (level.number, id, held)))
    }
}

/// Facts about a message in a page.
fn meta(seq: u64, lsn: Lsn, arrived: Time, message: &Message, counted: CountedBytes) -> PagedMeta {
    let expiration_ms = message.meta().expiration_ms;
    let deadline = expiration_ms.map(|millis| arrived.plus_ms(millis));
    PagedMeta { seq, lsn, arrived, deadline, bytes: counted.of(message) }
}

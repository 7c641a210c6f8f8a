//! Browsing of the waiting messages of a queue, in the order of delivery, from any position.

use std::iter::Peekable;
use std::ops::Bound;

use super::level::{Fresh, Level, Page, Piece};
use super::ready::{Place, Ready};
use super::{Entry, Queue};
use crate::browse::{BrowseCursor, BrowsedMessage, CursorPosition};
use crate::ids::{EntryId, PageId};
use crate::page::PagedMessage;
use crate::publish_properties::delivery_time::scheduled_message;
use crate::scheduled::ScheduledAt;
use crate::scheduled::pages::PagedPlace;
use crate::time::Time;

/// Pages that were read for browsing, with their messages.
pub(crate) type ReadPages<'a> = &'a [(PageId, Vec<PagedMessage>)];

/// The result of one browsing step.
#[derive(Debug)]
pub(crate) enum Found {
    /// A message; boxed, because the other variant is small.
    Message(Box<BrowsedMessage>),
    /// A page of ready messages that must be read before browsing can continue.
    Page(u8, PageId),
    /// A page of scheduled messages that must be read before browsing can continue.
    ScheduledPage(PageId),
}

impl Found {
    fn message(message: BrowsedMessage) -> Self {
        Self::Message(Box::new(message))
    }
}

/// The next of the messages in order of arrival.
pub(super) enum Next<'a> {
    /// A message in memory.
    Here(EntryId, &'a Fresh),
    /// A message of the page that was read.
    Read(EntryId, PageId, &'a PagedMessage),
    /// A page that was not read.
    Away(u8, &'a Page),
}

impl Next<'_> {
    /// The place of the message, or the first possible place in the page.
    fn place(&self) -> Place {
        match self {
            Self::Here(id, _) | Self::Read(id, ..) => Place::of(*id),
            Self::Away(level, page) => {
                Place::of(EntryId { seq: Piece::Page(page).first_seq(), level: *level })
            }
        }
    }
}

impl Queue {
    /// The ready messages after a place, up to the first page that was not read.
    pub(crate) fn browse_ready<'a>(
        &'a self,
        passed: u64,
        read: ReadPages<'a>,
    ) -> impl Iterator<Item = Found> + 'a {
        let ready = &self.waiting.ready;
        let after = Place(passed);
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        let mut returned = ready.returned.range(behind).peekable();
        let mut fresh = ready.fresh_after(after, read).peekable();
        let mut is_over = false;
        std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            let found = self.next_ready(&mut returned, &mut fresh)?;
            is_over = matches!(found, Found::Page(..));
            Some(found)
        })
    }

    fn next_ready<'a>(
        &self,
        returned: &mut Peekable<impl Iterator<Item = (&'a Place, &'a Entry)>>,
        fresh: &mut Peekable<impl Iterator<Item = Next<'a>>>,
    ) -> Option<Found> {
        let limit = fresh.peek().map(Next::place);
        let is_first = |(place, _): &(&Place, &Entry)| limit.is_none_or(|limit| **place <= limit);
        if let Some((place, entry)) = returned.next_if(is_first) {
            return Some(self.found(entry.clone(), *place));
        }
        Some(match fresh.next()? {
            Next::Here(id, Fresh { message, lsn, arrived }) => {
                let entry = self.waiting.ready.entry(id, message.clone(), *lsn, *arrived);
                Found::message(self.browsed_fresh(entry, CursorPosition::Ready(Place::of(id).0)))
            }
            Next::Read(id, page, PagedMessage { meta, message }) => {
                let entry = self.waiting.ready.entry(id, message.clone(), meta.lsn, meta.arrived);
                let passed = CursorPosition::Ready(Place::of(id).0);
                let paged = Some((page, *meta));
                Found::message(BrowsedMessage { paged, ..self.browsed_fresh(entry, passed) })
            }
            Next::Away(level, page) => Found::Page(level, page.id),
        })
    }

    fn found(&self, entry: Entry, place: Place) -> Found {
        Found::message(self.browsed(entry, CursorPosition::Ready(place.0)))
    }

    /// A browsed message of the queue.
    pub(crate) fn browsed(&self, entry: Entry, passed: CursorPosition) -> BrowsedMessage {
        let deadline = self.deadline(&entry.expiry_key());
        let behind = BrowseCursor(passed);
        BrowsedMessage {
            entry,
            deadline,
            may_have_been_delivered: false,
            paged: None,
            held_by: None,
            ready_at: None,
            behind,
        }
    }

    /// A browsed message that has not been delivered since the last restart.
    fn browsed_fresh(&self, entry: Entry, passed: CursorPosition) -> BrowsedMessage {
        let may_have_been_delivered = self.may_have_been_delivered(&entry);
        BrowsedMessage { may_have_been_delivered, ..self.browsed(entry, passed) }
    }

    /// True if ready messages are in this page.
    pub(crate) fn has_page(&self, level: u8, page: PageId) -> bool {
        let level =
            self.waiting.ready.level_at(level).and_then(|at| self.waiting.ready.levels.get(at));
        level.is_some_and(|level| level.knows_page(page))
    }

    /// The delayed and scheduled messages after a position, in the order in which they become ready, up to the first
    /// page that was not read.
    pub(crate) fn browse_delayed<'a>(
        &'a self,
        passed: (Time, u64),
        read: ReadPages<'a>,
    ) -> impl Iterator<Item = Found> + 'a {
        let mut delayed = self.waiting.delayed().after(passed).peekable();
        let mut scheduled = self.waiting.scheduled().after(passed).peekable();
        std::iter::from_fn(move || {
            let first = delayed.peek().map(|(at, _)| *at);
            let is_first = |next: &ScheduledAt<'_>| first.is_none_or(|first| next.place() < first);
            if let Some(next) = scheduled.next_if(is_first) {
                return Some(self.found_scheduled(next, read));
            }
            let ((at, seq), entry) = delayed.next()?;
            let browsed = self.browsed(entry.clone(), CursorPosition::Delayed(at, seq));
            Some(Found::message(BrowsedMessage { ready_at: Some(at), ..browsed }))
        })
    }

    fn found_scheduled(&self, scheduled: ScheduledAt<'_>, read: ReadPages<'_>) -> Found {
        let (ready_at, seq) = scheduled.place();
        let (entry, paged) = match scheduled {
            ScheduledAt::Here(_, entry) => (entry.clone(), None),
            ScheduledAt::Paged(PagedPlace { id, page, scheduled_for_ms, .. }) => {
                let Some(messages) = messages_of(page, read) else {
                    return Found::ScheduledPage(page);
                };
                let message = messages.iter().find(|message| message.meta.seq == seq);
                let PagedMessage { meta, message } = message.expect("a page is read as a whole");
                let message = match scheduled_for_ms {
                    Some(scheduled_for_ms) => scheduled_message(message, scheduled_for_ms),
                    None => message.clone(),
                };
                let entry = Entry::new(id, message, meta.lsn, meta.arrived);
                (entry, Some((page, *meta)))
            }
        };
        let browsed = self.browsed(entry, CursorPosition::Delayed(ready_at, seq));
        // Its TTL begins when it is ready.
        Found::message(BrowsedMessage {
            ready_at: Some(ready_at),
            deadline: None,
            paged,
            ..browsed
        })
    }

    /// The dead messages that wait for delivery, behind the one with this number.
    pub(crate) fn browse_dead(&self, passed: u64) -> impl Iterator<Item = Found> {
        self.dead_letters.pending().after(passed).map(move |(number, entry)| {
            let passed = CursorPosition::Dead(number);
            // A dead message does not expire.
            Found::message(BrowsedMessage { deadline: None, ..self.browsed(entry.clone(), passed) })
        })
    }
}

/// The messages of a page, if it was read.
fn messages_of(page: PageId, read: ReadPages<'_>) -> Option<&[PagedMessage]> {
    read.iter().find(|(id, _)| *id == page).map(|(_, messages)| messages.as_slice())
}

impl Ready {
    /// The messages that were never delivered after a place, in order of arrival, including those of the page
    /// that was read.
    pub(super) fn fresh_after<'a>(
        &'a self,
        after: Place,
        read: ReadPages<'a>,
    ) -> impl Iterator<Item = Next<'a>> {
        let (number, seq) = after.level_and_seq();
        let first = self.levels.partition_point(|level| level.number > number);
        let levels = self.levels.get(first..).unwrap_or_default();
        levels.iter().flat_map(move |level| {
            level.next_after(if level.number == number { seq } else { 0 }, read)
        })
    }
}

impl Level {
    fn next_after<'a>(&'a self, seq: u64, read: ReadPages<'a>) -> impl Iterator<Item = Next<'a>> {
        let id = |seq| EntryId { seq, level: self.number };
        self.pieces_after(seq).flat_map(move |piece| {
            let (one, page, messages) = match (piece, read) {
                (Piece::Message(seq, fresh), _) => {
                    (Some(Next::Here(id(seq), fresh)), None, &[][..])
                }
                (Piece::Page(page), _) => match messages_of(page.id, read) {
                    Some(messages) => (None, Some(page), messages),
                    None => (Some(Next::Away(self.number, page)), None, &[][..]),
                },
            };
            let of_page = page.into_iter().flat_map(move |page| {
                let held = messages.iter().filter(move |message| {
                    message.meta.seq > seq && page.held.contains(message.meta.seq)
                });
                held.map(move |message| Next::Read(id(message.meta.seq), page.id, message))
            });
            one.into_iter().chain(of_page)
        })
    }
}

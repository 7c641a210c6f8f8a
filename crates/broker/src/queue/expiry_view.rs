//! The distribution of deadlines in a queue, read in slices.
//!
//! A message in memory has its expiration deadline or that of the queue's TTL. For a page, only bounds are known:
//! the first and the last arrival, the first and the last expiration deadline, and the number of expiration deadlines.

use std::ops::Bound;

use super::Queue;
use super::browse::Next;
use super::level::{Fresh, Page};
use super::ready::Place;
use crate::entry::ExpiryKey;
use crate::ids::EntryId;
use crate::time::Time;

/// The position up to which deadlines have been read.
#[derive(Clone, Copy, Debug)]
pub struct ExpiryCursor(Passed);

#[derive(Clone, Copy, Debug)]
enum Passed {
    /// Among the returned messages, up to this place.
    Returned(Place),
    /// Among the messages that were never delivered, up to this place.
    Fresh(Place),
    /// Among the delayed messages, up to this one.
    Delayed(Time, u64),
}

impl ExpiryCursor {
    /// The position before all messages.
    pub const START: Self = Self(Passed::Returned(Place::START));
}

/// Messages whose deadlines are known only by their bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeadlineSpan {
    /// The number of messages.
    pub messages: u64,
    /// The earliest possible deadline.
    pub first: Time,
    /// The latest possible deadline.
    pub last: Time,
}

/// Deadlines of a slice of the waiting messages.
#[derive(Clone, Debug, Default)]
pub struct ExpirySlice {
    /// One deadline for each message in memory that has one.
    pub deadlines: Vec<Time>,
    /// Bounds of the deadlines of messages on disk.
    pub spans: Vec<DeadlineSpan>,
    /// The number of messages without a deadline.
    pub never: u64,
    /// The earliest arrival time in the slice.
    pub oldest: Option<Time>,
    /// The position to continue from; none at the end.
    pub next: Option<ExpiryCursor>,
}

/// A message, or a whole page.
enum WaitingItem<'a> {
    Message { arrived: Time, expiration_ms: Option<u64> },
    Page(&'a Page),
}

impl Queue {
    /// Reads up to `count` waiting messages, ready or delayed; a page counts as one. Messages that move
    /// between two slices may be seen twice, or not at all.
    pub fn expiry(&self, from: ExpiryCursor, count: usize) -> ExpirySlice {
        let mut slice = ExpirySlice::default();
        let mut waiting = self.waiting_after(from.0);
        let mut passed = from;
        for (at, one) in waiting.by_ref().take(count) {
            passed = ExpiryCursor(at);
            match one {
                WaitingItem::Message { arrived, expiration_ms } => {
                    slice.arrived(arrived);
                    match self.settings.deadline(arrived, expiration_ms) {
                        Some(deadline) => slice.deadlines.push(deadline),
                        None => slice.never += 1,
                    }
                }
                WaitingItem::Page(page) => {
                    slice.arrived(page.first_arrived);
                    self.add_page(page, &mut slice);
                }
            }
        }
        slice.next = waiting.next().map(|_| passed);
        slice
    }

    fn waiting_after(&self, passed: Passed) -> impl Iterator<Item = (Passed, WaitingItem<'_>)> {
        let (returned, fresh, delayed) = match passed {
            Passed::Returned(place) => (Some(place), Some(Place::START), Some(Time::default())),
            Passed::Fresh(place) => (None, Some(place), Some(Time::default())),
            Passed::Delayed(at, _) => (None, None, Some(at)),
        };
        let delayed_seq = if let Passed::Delayed(_, seq) = passed { seq } else { 0 };
        let returned = returned.into_iter().flat_map(|place| {
            let behind = (Bound::Excluded(place), Bound::Unbounded);
            self.waiting.ready.returned.range(behind)
        });
        let returned =
            returned.map(|(place, entry)| (Passed::Returned(*place), entry.expiry_key()));
        let fresh = fresh.into_iter().flat_map(|place| self.waiting.ready.fresh_after(place, &[]));
        let delayed =
            delayed.into_iter().flat_map(move |at| self.waiting.delayed().after((at, delayed_seq)));
        let delayed =
            delayed.map(|((at, seq), entry)| (Passed::Delayed(at, seq), entry.expiry_key()));
        let one = |(passed, front): (Passed, ExpiryKey)| {
            let (arrived, expiration_ms) = (front.arrived, front.expiration_ms);
            (passed, WaitingItem::Message { arrived, expiration_ms })
        };
        returned
            .map(one)
            .chain(fresh.filter_map(|next| fresh_waiting(&next)))
            .chain(delayed.map(one))
    }

    /// Adds the bounds of a page.
    fn add_page(&self, page: &Page, slice: &mut ExpirySlice) {
        let count = page.held.count();
        let by_ttl = |arrived| self.settings.deadline(arrived, None);
        let shared = by_ttl(page.first_arrived).zip(by_ttl(page.last_arrived));
        let own = page.next_deadline.zip(page.last_deadline);
        let own_count = own.map_or(0, |_| page.with_deadline.min(count));
        if let Some((first, last)) = own {
            let (first_shared, last_shared) = shared.unwrap_or((first, last));
            slice.add_span(own_count, first.min(first_shared), last.min(last_shared));
        }
        match shared {
            Some((first, last)) => slice.add_span(count - own_count, first, last),
            None => slice.never += (count - own_count) as u64,
        }
    }
}

/// None for a message of a page that was read, which does not occur here.
fn fresh_waiting<'a>(next: &Next<'a>) -> Option<(Passed, WaitingItem<'a>)> {
    match next {
        Next::Here(id, Fresh { message, arrived, .. }) => {
            let expiration_ms = message.meta().expiration_ms;
            let waiting = WaitingItem::Message { arrived: *arrived, expiration_ms };
            Some((Passed::Fresh(Place::of(*id)), waiting))
        }
        Next::Away(level, page) => {
            let last = EntryId { seq: page.last_seq, level: *level };
            Some((Passed::Fresh(Place::of(last)), WaitingItem::Page(page)))
        }
        Next::Read(..) => None,
    }
}

impl ExpirySlice {
    fn arrived(&mut self, at: Time) {
        self.oldest = Some(self.oldest.map_or(at, |oldest| oldest.min(at)));
    }

    fn add_span(&mut self, count: usize, first: Time, last: Time) {
        if count > 0 {
            self.spans.push(DeadlineSpan { messages: count as u64, first, last });
        }
    }
}

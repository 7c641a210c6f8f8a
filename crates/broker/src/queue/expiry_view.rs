//! When the messages of a queue expire, looked at some at a time.
//!
//! What is in memory has a deadline of its own or that of the queue's TTL. Of a page the ends are known:
//! the first and the last arrival, the first and the last own deadline, and how many have one; what is
//! between them is anybody's guess.

use std::ops::Bound;

use super::Queue;
use super::browse::Next;
use super::entry::Front;
use super::level::{Fresh, Page};
use super::ready::Place;
use crate::ids::EntryId;
use crate::time::Time;

/// How far deadlines have been looked at.
#[derive(Clone, Copy, Debug)]
pub struct ExpiryCursor(Passed);

#[derive(Clone, Copy, Debug)]
enum Passed {
    /// Up to this place of those that stand apart.
    Returned(Place),
    /// Up to this place of the others.
    Fresh(Place),
    /// Up to this one of those that are delayed.
    Delayed(Time, u64),
}

impl ExpiryCursor {
    /// In front of everything.
    pub const START: Self = Self(Passed::Returned(Place::START));
}

/// Messages of which it is known when the first and the last of them expire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeadlineSpan {
    /// How many.
    pub messages: u64,
    /// Not before this.
    pub first: Time,
    /// Not after this.
    pub last: Time,
}

/// When some of the messages that wait in a queue expire.
#[derive(Clone, Debug, Default)]
pub struct ExpirySlice {
    /// One for each message that has one.
    pub deadlines: Vec<Time>,
    /// Of those on disk.
    pub spans: Vec<DeadlineSpan>,
    /// Messages without a deadline.
    pub never: u64,
    /// When the oldest of them arrived.
    pub oldest: Option<Time>,
    /// Where to go on; none at the end.
    pub next: Option<ExpiryCursor>,
}

/// A message, or a page of them.
enum Standing<'a> {
    Message { arrived: Time, expiration_ms: Option<u64> },
    Page(&'a Page),
}

impl Queue {
    /// Looks at so many of the messages that wait, ready or delayed; a page counts as one. What happens
    /// between two looks may be seen twice, or not at all.
    pub fn expiry(&self, from: ExpiryCursor, count: usize) -> ExpirySlice {
        let mut slice = ExpirySlice::default();
        let mut standing = self.standing_after(from.0);
        let mut passed = from;
        for (at, one) in standing.by_ref().take(count) {
            passed = ExpiryCursor(at);
            match one {
                Standing::Message { arrived, expiration_ms } => {
                    slice.arrived(arrived);
                    match self.settings.deadline(arrived, expiration_ms) {
                        Some(deadline) => slice.deadlines.push(deadline),
                        None => slice.never += 1,
                    }
                }
                Standing::Page(page) => {
                    slice.arrived(page.first_arrived);
                    self.add_page(page, &mut slice);
                }
            }
        }
        slice.next = standing.next().map(|_| passed);
        slice
    }

    fn standing_after(&self, passed: Passed) -> impl Iterator<Item = (Passed, Standing<'_>)> {
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
        let returned = returned.map(|(place, entry)| (Passed::Returned(*place), entry.front()));
        let fresh = fresh.into_iter().flat_map(|place| self.waiting.ready.fresh_after(place, None));
        let delayed =
            delayed.into_iter().flat_map(move |at| self.waiting.delayed.after((at, delayed_seq)));
        let delayed = delayed.map(|((at, seq), entry)| (Passed::Delayed(at, seq), entry.front()));
        let one = |(passed, front): (Passed, Front)| {
            let (arrived, expiration_ms) = (front.arrived, front.expiration_ms);
            (passed, Standing::Message { arrived, expiration_ms })
        };
        returned
            .map(one)
            .chain(fresh.filter_map(|next| fresh_standing(&next)))
            .chain(delayed.map(one))
    }

    /// What is known of a page.
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

/// None for a message of a page that was read, which there is none of here.
fn fresh_standing<'a>(next: &Next<'a>) -> Option<(Passed, Standing<'a>)> {
    match next {
        Next::Here(id, Fresh { message, arrived, .. }) => {
            let expiration_ms = message.facts().expiration_ms;
            let standing = Standing::Message { arrived: *arrived, expiration_ms };
            Some((Passed::Fresh(Place::of(*id)), standing))
        }
        Next::Away(level, page) => {
            let last = EntryId { seq: page.last_seq, level: *level };
            Some((Passed::Fresh(Place::of(last)), Standing::Page(page)))
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

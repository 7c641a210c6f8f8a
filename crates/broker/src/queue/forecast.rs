//! Forecasts of the messages that would leave a queue at once under other settings. A forecast changes
//! nothing.
//!
//! Messages in memory are evaluated one by one. Only a few facts are known of a page. Usually they
//! suffice to decide whether all or none of its messages would leave; otherwise the result is a range.

use super::Queue;
use super::level::{Level, Page, Piece};
use super::ready::ReturnTo;
use super::settings::Settings;
use crate::entry::Entry;
use crate::message::Message;
use crate::setting::{ExpiryOrder, Overflow};
use crate::time::Time;

/// A number, exact or as a range.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Span {
    /// The lower bound.
    pub least: u64,
    /// The upper bound.
    pub most: u64,
}

impl Span {
    /// True if the bounds are equal.
    pub fn is_exact(self) -> bool {
        self.least == self.most
    }
}

/// The messages that would leave a queue at once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Forecast {
    /// Messages past their deadlines.
    pub expired: Span,
    /// Messages above the length limits.
    pub evicted: Span,
}

/// A number of messages and their bytes.
#[derive(Clone, Copy, Default, Debug)]
struct Amount {
    messages: u64,
    bytes: u64,
}

impl Amount {
    fn add(&mut self, messages: u64, bytes: u64) {
        self.messages += messages;
        self.bytes += bytes;
    }

    fn without(self, other: Self) -> Self {
        Self {
            messages: self.messages.saturating_sub(other.messages),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// The messages of a page that are past their deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    All,
    None,
    /// Possibly some.
    Unknown,
}

/// The amount that must be evicted, and the evictions so far.
#[derive(Debug)]
struct Room {
    messages: u64,
    bytes: u64,
    evicted: Span,
}

impl Room {
    /// Evicts a message or a page; true if that is enough.
    fn make(&mut self, amount: Amount) -> bool {
        let is_page = amount.messages > 1;
        if is_page && (amount.bytes > self.bytes && amount.messages > self.messages) {
            // A part of the page is enough, but its size is not known.
            self.evicted.least += self.messages.max(1);
            self.evicted.most += amount.messages;
            return true;
        }
        self.evicted.least += amount.messages;
        self.evicted.most += amount.messages;
        self.bytes = self.bytes.saturating_sub(amount.bytes);
        self.messages = self.messages.saturating_sub(amount.messages);
        if self.bytes == 0 {
            self.evicted.least += self.messages;
            self.evicted.most += self.messages;
            return true;
        }
        false
    }
}

/// One message, or the messages of one page.
#[derive(Clone, Copy, Debug)]
struct Part {
    amount: Amount,
    due: Due,
}

impl Queue {
    /// The messages that would leave at `now` if `settings` were in force from then on.
    pub(crate) fn forecast(&self, settings: &Settings, now: Time) -> Forecast {
        let (gone, unsure) = self.overdue(settings, now);
        let (length, bytes) = self.occupied();
        let left = Amount { messages: length, bytes }.without(gone);
        let ready_left = self.ready_count().saturating_sub(gone.messages);
        let evicted = |left, unsure: u64| {
            let span = self.evicted(settings, left, now);
            let most = ready_left.saturating_sub(unsure);
            Span { least: span.least.min(most), most: span.most.min(most) }
        };
        let (few, many) = (evicted(left.without(unsure), unsure.messages), evicted(left, 0));
        // A page from which some messages expire is smaller than counted, and messages read back from a page
        // are interleaved with it.
        let read_back = if self.has_pages() { self.waiting.ready.returned.len() as u64 } else { 0 };
        let is_by_size = settings.max_length_bytes.is_some();
        let slack = if is_by_size { unsure.messages + read_back } else { 0 };
        let mut evicted = Span {
            least: few.least.min(many.least).saturating_sub(slack),
            most: (many.most + slack).min(ready_left),
        };
        let mut expired = Span { least: gone.messages, most: gone.messages + unsure.messages };
        if settings.expiry_order == ExpiryOrder::Head && evicted.most > 0 {
            // Evictions may expose expired messages at the head.
            let anywhere = Settings { expiry_order: ExpiryOrder::Deadline, ..settings.clone() };
            let (gone, unsure) = self.overdue(&anywhere, now);
            let more = (gone.messages + unsure.messages).saturating_sub(expired.most);
            expired.most += more;
            evicted.least = evicted.least.saturating_sub(more);
        }
        Forecast { expired, evicted }
    }

    /// The messages that would expire, and those that may expire.
    fn overdue(&self, settings: &Settings, now: Time) -> (Amount, Amount) {
        let (mut gone, mut unsure) = (Amount::default(), Amount::default());
        let has_expirations = !self.expiry.lists_nothing()
            || self.settings.expiry_order == ExpiryOrder::Head
            || self.waiting.ready.first_paged_deadline().is_some();
        if settings.message_ttl_ms.is_none() && !has_expirations {
            return (gone, unsure);
        }
        let is_head_only = settings.expiry_order == ExpiryOrder::Head;
        for level in &self.waiting.ready.levels {
            let mut reaches_head = true;
            for part in self.parts(level, settings, now) {
                let Amount { messages, bytes } = part.amount;
                match part.due {
                    Due::All if reaches_head => gone.add(messages, bytes),
                    Due::All => unsure.add(messages, bytes),
                    Due::Unknown => {
                        unsure.add(messages, bytes);
                        reaches_head = !is_head_only;
                    }
                    // Only the head expires, or all messages have the same TTL: later messages do not expire
                    // either.
                    Due::None if is_head_only || !has_expirations => break,
                    Due::None => {}
                }
            }
        }
        let delayed = self.waiting.delayed().entries().filter(|_| !is_head_only);
        for entry in self.returned_to_front().chain(delayed) {
            let part = self.part(&entry.message, entry.arrived, settings, now);
            if part.due == Due::All {
                gone.add(1, part.amount.bytes);
            } else if is_head_only {
                break;
            }
        }
        (gone, unsure)
    }

    /// The messages that must be evicted if `left` remains after expiry.
    fn evicted(&self, settings: &Settings, left: Amount, now: Time) -> Span {
        if settings.overflow != Overflow::DropHead {
            return Span::default();
        }
        let over = |left: u64, max: Option<u64>| max.map_or(0, |max| left.saturating_sub(max));
        let mut room = Room {
            messages: over(left.messages, settings.max_length),
            bytes: over(left.bytes, settings.max_length_bytes),
            evicted: Span::default(),
        };
        if room.bytes == 0 {
            return Span { least: room.messages, most: room.messages };
        }
        let is_head_only = settings.expiry_order == ExpiryOrder::Head;
        let mut in_front = self.returned_to_front().peekable();
        let mut front_is_head = true;
        for level in self.waiting.ready.levels.iter().rev() {
            // Messages returned to the front are evicted before messages of the same or a higher level.
            while let Some(entry) = in_front.next_if(|entry| entry.id.level <= level.number) {
                let part = self.part(&entry.message, entry.arrived, settings, now);
                let is_due = part.due == Due::All;
                let is_gone = is_due && (front_is_head || !is_head_only);
                front_is_head &= is_due;
                if !is_gone && room.make(part.amount) {
                    return room.evicted;
                }
            }
            let mut is_head = true;
            for part in self.parts(level, settings, now) {
                let is_due = part.due == Due::All;
                let is_gone = is_due && (is_head || !is_head_only);
                is_head &= is_due;
                if !is_gone && room.make(part.amount) {
                    return room.evicted;
                }
            }
        }
        let rest = in_front.count() as u64;
        Span { least: room.evicted.least, most: room.evicted.most + rest }
    }

    /// The messages of a level in the order of delivery, page by page where they are on disk. Messages
    /// returned to their original place are included there.
    fn parts<'a>(
        &'a self,
        level: &'a Level,
        settings: &'a Settings,
        now: Time,
    ) -> impl Iterator<Item = Part> + 'a {
        let returned = self.waiting.ready.returned.values();
        let is_here = move |entry: &&Entry| {
            self.waiting.ready.returns_to() == ReturnTo::OriginalPlace
                && entry.id.level == level.number
        };
        let mut returned = returned.filter(is_here).peekable();
        let mut pieces = level.pieces().peekable();
        std::iter::from_fn(move || {
            let comes_first = match (returned.peek(), pieces.peek()) {
                (Some(entry), Some(piece)) => entry.id.seq < piece.first_seq(),
                (entry, None) => entry.is_some(),
                (None, Some(_)) => false,
            };
            if comes_first {
                return returned
                    .next()
                    .map(|entry| self.part(&entry.message, entry.arrived, settings, now));
            }
            Some(match pieces.next()? {
                Piece::Message(_, fresh) => self.part(&fresh.message, fresh.arrived, settings, now),
                Piece::Page(page) => part_of_page(page, settings, now),
            })
        })
    }

    /// Messages returned to the front of the queue, in that order.
    fn returned_to_front(&self) -> impl Iterator<Item = &Entry> {
        let is_front = self.waiting.ready.returns_to() == ReturnTo::Front;
        self.waiting.ready.returned.values().filter(move |_| is_front)
    }

    fn part(&self, message: &Message, arrived: Time, settings: &Settings, now: Time) -> Part {
        let deadline = settings.deadline(arrived, message.meta().expiration_ms);
        let due = if deadline.is_some_and(|at| at <= now) { Due::All } else { Due::None };
        Part { amount: Amount { messages: 1, bytes: self.waiting.ready.bytes_of(message) }, due }
    }
}

fn part_of_page(page: &Page, settings: &Settings, now: Time) -> Part {
    let amount = Amount { messages: page.held.count() as u64, bytes: page.bytes };
    let by_ttl = |arrived| settings.deadline(arrived, None).is_some_and(|at| at <= now);
    let is_own_due = page.next_deadline.is_some_and(|at| at <= now);
    let due = if by_ttl(page.last_arrived) {
        Due::All
    } else if by_ttl(page.first_arrived) || is_own_due || page.is_asked || page.left_unseen {
        Due::Unknown
    } else {
        Due::None
    };
    Part { amount, due }
}

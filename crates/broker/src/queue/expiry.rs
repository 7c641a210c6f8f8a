//! Expiry: the deadlines of the messages in a queue, and the lease of the queue itself.
//!
//! A TTL that all messages share needs no list, because the oldest message has the earliest deadline. Messages
//! with an `expiration` of their own are listed.

use super::settings::Settings;
use super::waiting::WaitingMessages;
use crate::collections::Rare;
use crate::deadlines::Deadlines;
use crate::entry::{Entry, ExpiryKey};
use crate::ids::EntryId;
use crate::setting::ExpiryOrder;
use crate::time::Time;

/// The deadlines of a queue.
#[derive(Debug)]
pub(crate) struct Expiry {
    /// Deadlines of messages with an `expiration` of their own.
    deadlines: Rare<Deadlines<EntryId>>,
    /// The last use of the queue.
    last_used: Time,
    /// The last change of the settings in force.
    settings_since: Time,
    /// The wake-up that the vhost's timers hold for the queue.
    pub(crate) armed: Option<Time>,
}

impl Expiry {
    pub(super) fn new(now: Time) -> Self {
        Self { deadlines: Rare::default(), last_used: now, settings_since: now, armed: None }
    }

    /// Lists the message's expiration deadline, if the message has one and expiry is exact.
    pub(super) fn list(&mut self, front: &ExpiryKey, settings: &Settings) {
        if let Some(millis) = front.expiration_ms
            && settings.expiry_order == ExpiryOrder::Deadline
        {
            self.deadlines.or_default().insert(front.arrived.plus_ms(millis), front.id);
        }
    }

    /// Lists the expiration deadlines of all messages anew, because the settings have changed.
    pub(super) fn relist(&mut self, settings: &Settings, waiting: &WaitingMessages) {
        self.deadlines.clear();
        for front in waiting.iter() {
            self.list(&front, settings);
        }
    }

    pub(super) fn settings_changed(&mut self, now: Time) {
        self.settings_since = now;
    }

    /// True if no deadline is listed.
    pub(super) fn lists_nothing(&self) -> bool {
        self.deadlines.get().is_none_or(Deadlines::is_empty)
    }

    /// Drops all listed deadlines: no message waits.
    pub(super) fn clear(&mut self) {
        self.deadlines.clear();
    }

    /// A message left before its deadline.
    pub(super) fn left_early(
        &mut self,
        entry: &Entry,
        settings: &Settings,
        waiting: &WaitingMessages,
    ) {
        if entry.message.meta().expiration_ms.is_some()
            && settings.expiry_order == ExpiryOrder::Deadline
            && self.forget_one()
        {
            self.squeeze(waiting);
        }
    }

    /// So many messages with listed deadlines went into a page.
    pub(super) fn left_for_page(&mut self, count: usize, waiting: &WaitingMessages) {
        let must_squeeze = (0..count).fold(false, |_, _| self.forget_one());
        if must_squeeze {
            self.squeeze(waiting);
        }
    }

    /// Drops the listed deadlines of all messages that have left.
    pub(super) fn squeeze(&mut self, waiting: &WaitingMessages) {
        if let Some(deadlines) = self.deadlines.get_mut() {
            deadlines.retain(|id| waiting.contains(id));
        }
    }

    /// Notes that a listed message left before its deadline; true if `squeeze` should follow.
    fn forget_one(&mut self) -> bool {
        self.deadlines.get_mut().is_some_and(Deadlines::forget_one)
    }

    /// Drops the first listed deadline, whose message has left.
    fn pop_stale(&mut self) {
        if let Some(deadlines) = self.deadlines.get_mut() {
            deadlines.pop_stale();
        }
    }

    /// The first listed deadline; perhaps of a message that left.
    pub(super) fn first_listed(&self) -> Option<(Time, EntryId)> {
        self.deadlines.get()?.first()
    }

    /// The next message deadline; perhaps of a message that left.
    pub(super) fn next_deadline(
        &self,
        settings: &Settings,
        waiting: &WaitingMessages,
    ) -> Option<Time> {
        match settings.expiry_order {
            ExpiryOrder::Head => {
                waiting.ready.heads().filter_map(|front| settings.deadline_of(&front)).min()
            }
            ExpiryOrder::Deadline => {
                let listed = self.first_by_expiration(waiting).map(|(deadline, _)| deadline);
                let shared = first_by_ttl(settings, waiting).map(|(deadline, _)| deadline);
                let in_memory = self.first_listed().map(|(deadline, _)| deadline);
                let asks = waiting.ready.next_ask(in_memory);
                listed.into_iter().chain(shared).chain(asks).min()
            }
        }
    }

    /// The first listed deadline, unless a message with an earlier one is being read.
    fn first_by_expiration(&self, waiting: &WaitingMessages) -> Option<(Time, EntryId)> {
        let being_read = waiting.ready.first_being_read();
        let is_first = |at: Time| being_read.is_none_or(|read| at <= read);
        self.first_listed().filter(|(deadline, _)| is_first(*deadline))
    }

    /// The first deadline of a message that waits, on disk or in memory; none, too, while it is not known.
    pub(super) fn first_deadline(
        &self,
        settings: &Settings,
        waiting: &WaitingMessages,
    ) -> Option<Time> {
        let listed = match (settings.expiry_order, self.first_listed()) {
            (ExpiryOrder::Head, _) => return self.next_deadline(settings, waiting),
            (ExpiryOrder::Deadline, None) => None,
            (ExpiryOrder::Deadline, Some((at, id))) if waiting.contains(id) => Some(at),
            (ExpiryOrder::Deadline, Some(_)) => return None,
        };
        let shared = first_by_ttl(settings, waiting).map(|(deadline, _)| deadline);
        listed.into_iter().chain(shared).chain(waiting.ready.first_paged_deadline()).min()
    }

    /// Takes the message with the earliest deadline, if that has passed. The time is that at which the message
    /// could have been taken: settings that move deadlines into the past make no expiry late.
    pub(super) fn pop_due(
        &mut self,
        now: Time,
        settings: &Settings,
        waiting: &mut WaitingMessages,
    ) -> Option<(Time, Entry)> {
        let (deadline, entry) = match settings.expiry_order {
            ExpiryOrder::Head => pop_due_head(now, settings, waiting)?,
            ExpiryOrder::Deadline => self.pop_due_anywhere(now, settings, waiting)?,
        };
        Some((deadline.max(self.settings_since), entry))
    }

    fn pop_due_anywhere(
        &mut self,
        now: Time,
        settings: &Settings,
        waiting: &mut WaitingMessages,
    ) -> Option<(Time, Entry)> {
        self.skip_stale(now, waiting);
        // A message that is still in a page may come first.
        let paged = waiting.ready.first_paged_deadline();
        let listed = self.first_listed().filter(|(at, _)| paged.is_none_or(|paged| *at <= paged));
        let shared = first_by_ttl(settings, waiting);
        let (deadline, id) = listed.into_iter().chain(shared).min().filter(|(at, _)| *at <= now)?;
        let entry = waiting.take(id)?;
        if listed == Some((deadline, id)) {
            self.deadlines.get_mut().and_then(Deadlines::pop);
        } else {
            self.left_early(&entry, settings, waiting);
        }
        Some((deadline, entry))
    }

    /// Drops due deadlines of messages that left.
    pub(super) fn skip_stale(&mut self, now: Time, waiting: &WaitingMessages) {
        while let Some((deadline, id)) = self.first_listed()
            && deadline <= now
            && !waiting.contains(id)
        {
            self.pop_stale();
        }
    }

    /// Drops up to `at_most` of the first deadlines, as long as their messages have left.
    pub(super) fn forget_gone(&mut self, at_most: usize, waiting: &WaitingMessages) {
        for _ in 0..at_most {
            let Some((_, id)) = self.first_listed() else { return };
            if waiting.contains(id) {
                return;
            }
            // The deadline of a message that comes back is listed again.
            self.pop_stale();
        }
    }

    /// Starts the lease of the queue again.
    pub(super) fn renew_lease(&mut self, now: Time) {
        self.last_used = now;
    }

    /// The end of a lease of `expires_ms` milliseconds.
    pub(super) fn lease_end(&self, expires_ms: u64) -> Time {
        self.last_used.plus_ms(expires_ms)
    }
}

/// The message that the TTL of the queue expires next.
fn first_by_ttl(settings: &Settings, waiting: &WaitingMessages) -> Option<(Time, EntryId)> {
    let ttl = settings.message_ttl_ms?;
    waiting.oldest().map(|front| (front.arrived.plus_ms(ttl), front.id)).min()
}

fn pop_due_head(
    now: Time,
    settings: &Settings,
    waiting: &mut WaitingMessages,
) -> Option<(Time, Entry)> {
    let deadline = |front: ExpiryKey| Some((settings.deadline_of(&front)?, front.id));
    let heads = waiting.ready.heads().filter_map(deadline);
    let (deadline, id) = heads.min().filter(|(deadline, _)| *deadline <= now)?;
    Some((deadline, waiting.ready.take(id)?))
}

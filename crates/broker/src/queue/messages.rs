//! Messages of a queue: they enter, are delivered, come back, expire and leave.

use super::dead_letters::PendingDeadLetters;
use super::ready::ReturnTo;
use super::{DropCause, Entry, Queue, Settings};
use crate::death_history::DeathReason;
use crate::entry::ExpiryKey;
use crate::ids::{EntryId, Lsn, PageId};
use crate::message::Message;
use crate::page::EndedMessages;
use crate::scheduled::Scheduled;
use crate::scheduled::pages::RemovedMessage;
use crate::setting::{
    DeadLetterStrategy, DelayedRetryOrder, DeliveryCount, DeliveryLimitAction, ExpiryOrder,
    Overflow,
};
use crate::time::Time;

/// Messages enter.
impl Queue {
    /// The identity of a message that arrives.
    pub(crate) fn assign(&mut self, message: &Message) -> EntryId {
        self.counters.entered += 1;
        let priority = message.meta().priority;
        let level = self.kind().level(priority, self.arguments.max_priority);
        self.waiting.ready.assign(level)
    }

    /// Lets a message wait that has just arrived.
    pub(crate) fn push(&mut self, id: EntryId, message: Message, lsn: Lsn, arrived: Time) {
        let expiration_ms = message.meta().expiration_ms;
        self.waiting.ready.push(id, message, lsn, arrived);
        self.expiry.list(&ExpiryKey { id, arrived, expiration_ms }, &self.settings);
    }

    /// Keeps a message that has just arrived from delivery until `ready_at`.
    pub(crate) fn schedule(&mut self, entry: Entry, ready_at: Time) {
        self.waiting.ready.note_seq(entry.id.seq);
        self.waiting.schedule(ready_at, entry);
    }

    /// Lets a returned message wait again.
    pub(crate) fn give_back(&mut self, entry: Entry) {
        let front = entry.expiry_key();
        let to = match self.is_strict() {
            true => ReturnTo::OriginalPlace,
            false => self.kind().return_to(),
        };
        self.waiting.ready.give_back(entry, to);
        self.expiry.list(&front, &self.settings);
    }

    /// Keeps a returned message from delivery until `ready_at`.
    pub(crate) fn delay(&mut self, entry: Entry, ready_at: Time) {
        let front = entry.expiry_key();
        self.waiting.delay(ready_at, entry);
        self.expiry.list(&front, &self.settings);
    }
}

/// A returned message holds the queue.
impl Queue {
    /// True if messages stay in their order while one of them waits for its next delivery.
    fn is_strict(&self) -> bool {
        self.settings.delayed_retry_order == DelayedRetryOrder::Strict
    }

    /// True if nothing is delivered, because a returned message waits and all others stay behind it.
    pub(crate) fn holds_deliveries(&self) -> bool {
        self.is_strict() && self.waiting.delayed().len() > 0
    }

    /// The times at which the first and the last of the returned messages that wait are ready again.
    pub fn returned_ready_at(&self) -> Option<(Time, Time)> {
        let delayed = self.waiting.delayed();
        delayed.next_ready_at().zip(delayed.last_ready_at())
    }

    /// The time until which nothing is delivered; none if messages are delivered.
    pub fn held_until(&self) -> Option<Time> {
        self.waiting.delayed().last_ready_at().filter(|_| self.is_strict())
    }
}

/// Messages leave.
impl Queue {
    /// True if no message is ready.
    pub(crate) fn has_none_ready(&self) -> bool {
        self.waiting.ready.is_empty()
    }

    /// True if messages are ready and the next of them is still on disk.
    pub(crate) fn is_away(&self) -> bool {
        self.waiting.ready.is_away()
    }

    /// True if `id` will be delivered next.
    pub(crate) fn is_next(&self, id: EntryId) -> bool {
        self.waiting.ready.front().is_some_and(|front| front.id == id)
    }

    /// Takes the message that will be delivered next.
    pub(crate) fn pop_front(&mut self) -> Option<Entry> {
        let entry = self.waiting.ready.pop_front()?;
        self.left_early(&entry);
        Some(entry)
    }

    /// Takes the oldest message that is kept at the delivery limit; without one, the oldest of the lowest priority; if
    /// none is ready, the message with the earliest delivery time.
    pub(crate) fn evict(&mut self) -> Option<Entry> {
        let pending = self.dead_letters.pending_mut();
        if let Some(kept) = pending.and_then(PendingDeadLetters::evict) {
            return Some(kept);
        }
        if self.waiting.ready.is_empty() {
            return self.waiting.scheduled_mut()?.pop_first();
        }
        let entry = self.waiting.ready.evict()?;
        self.left_early(&entry);
        Some(entry)
    }

    /// Takes a message that waits in memory.
    pub(crate) fn take_at_hand(&mut self, id: EntryId) -> Option<Entry> {
        let entry = self.waiting.take(id)?;
        self.left_early(&entry);
        Some(entry)
    }

    /// Takes a delayed message that is ready again, with the time since which it is.
    pub(crate) fn pop_retry(&mut self, now: Time) -> Option<(Time, Entry)> {
        let (ready_at, entry) = self.waiting.delayed_mut()?.pop_ready(now)?;
        self.left_early(&entry);
        Some((ready_at, entry))
    }

    /// Takes a message whose delivery time has come, with that time, and its new id, by which it has its place behind all
    /// others.
    pub(crate) fn pop_scheduled(&mut self, now: Time) -> Option<(Time, Entry, EntryId)> {
        let (ready_at, entry) = self.waiting.scheduled_mut()?.pop_ready(now)?;
        let to = self.waiting.ready.assign(entry.id.level);
        Some((ready_at, entry, to))
    }

    /// Takes a message that waits for its delivery time in memory.
    pub(crate) fn take_scheduled_at_hand(&mut self, id: EntryId) -> Option<Entry> {
        self.waiting.scheduled_mut()?.take_at_hand(id)
    }

    /// Removes a message that waits for its delivery time.
    pub(crate) fn remove_scheduled(&mut self, id: EntryId) -> Option<RemovedMessage> {
        self.waiting.scheduled_mut()?.remove(id)
    }

    /// Gives a message that waits for its delivery time another one: `ready_at`, and on the wall clock
    /// `scheduled_for_ms`. Returns the entry with its record; none if no such message waits.
    pub(crate) fn reschedule(
        &mut self,
        id: EntryId,
        ready_at: Time,
        scheduled_for_ms: u64,
    ) -> Option<(EntryId, Lsn)> {
        self.waiting.scheduled_mut()?.reschedule(id, ready_at, Some(scheduled_for_ms))
    }

    /// The messages that wait for their delivery time.
    pub(crate) fn schedules(&self) -> &Scheduled {
        self.waiting.scheduled()
    }

    /// The messages that wait for their delivery time, unless the queue never had one.
    pub(crate) fn schedules_mut(&mut self) -> Option<&mut Scheduled> {
        self.waiting.scheduled_mut()
    }

    /// Removes all messages that wait. Returns their number, and the pages that held some of them.
    pub(crate) fn purge(&mut self) -> (u64, Vec<(PageId, EndedMessages)>) {
        let count = self.ready_count() + self.delayed_count() + self.pending_count();
        self.counters.purged += count;
        if let Some(delayed) = self.waiting.delayed_mut() {
            delayed.clear();
        }
        let mut pages = self.waiting.clear_scheduled();
        if let Some(pending) = self.dead_letters.pending_mut() {
            pending.clear();
        }
        self.expiry.clear();
        let ready = self.waiting.ready.clear().into_iter();
        pages.extend(ready.map(|(page, held)| (page, EndedMessages::Members(held))));
        (count, pages)
    }

    fn left_early(&mut self, entry: &Entry) {
        self.expiry.left_early(entry, &self.settings, &self.waiting);
    }
}

/// Messages are delivered.
impl Queue {
    /// Counts a delivery of `entry`; `needs_ack` if it stays unacknowledged. True if the log has to
    /// know of the delivery and no note of that is pending.
    #[must_use]
    pub(crate) fn handed_out(&mut self, entry: &mut Entry, needs_ack: bool, by_get: bool) -> bool {
        self.counters.deliveries.count(!needs_ack, by_get, entry.acquired_count > 0);
        if !needs_ack {
            return false;
        }
        entry.acquired_count = entry.acquired_count.saturating_add(1);
        self.delivery.begin(entry, by_get);
        self.delivery.note(entry)
    }

    /// Notes a message that may have been delivered before a crash, because the record of its arrival does not say so.
    /// True if the log has to know of the note and none is pending.
    #[must_use]
    pub(crate) fn maybe_handed_out(&mut self, entry: &Entry) -> bool {
        entry.message.is_maybe_seen() && self.delivery.note(entry)
    }

    /// True if deliveries are counted and reported to consumers: on quorum queues, and where a setting needs the counts.
    pub(crate) fn counts_deliveries(&self) -> bool {
        self.kind().counts_deliveries()
            || self.settings.delivery_limit.is_some()
            || self.settings.delayed_retry.is_some()
    }

    /// True if a message that comes back has been delivered too often; `failed` if its delivery was counted as failed.
    pub(crate) fn is_over_delivery_limit(&self, entry: &Entry, failed: bool) -> bool {
        let count = self.settings.delivery_limit_count;
        let is_counted = failed || count == DeliveryCount::Acquired;
        let limit = self.settings.delivery_limit.filter(|_| is_counted);
        limit.is_some_and(|limit| count.of(entry) > limit)
    }

    /// True if the queue keeps a message of which the dead letter goes nowhere.
    pub(crate) fn keeps(&self, reason: DeathReason, cause: DropCause) -> bool {
        let keeps_any = self.settings.dead_letter_strategy == DeadLetterStrategy::AtLeastOnce
            && cause != DropCause::NoDeadLetterExchange;
        keeps_any
            || reason == DeathReason::DeliveryLimit
                && self.settings.delivery_limit_action == DeliveryLimitAction::Keep
    }

    /// True if a kept message may have a target, or has lost the settings by which it was kept.
    pub(crate) fn offers_kept(&self) -> bool {
        self.settings.dead_letter.is_some() || !self.dead_letters.pending().are_over_limit()
    }

    /// Counts the end of an unacknowledged delivery, for any reason.
    pub(crate) fn taken_back(&mut self, entry: &Entry, by_get: bool) {
        self.delivery.end(entry, by_get);
    }
}

/// Messages and the queue expire.
impl Queue {
    /// The deadline of a message.
    pub(super) fn deadline(&self, front: &ExpiryKey) -> Option<Time> {
        self.settings.deadline_of(front)
    }

    /// True if a message that came back has passed its deadline.
    pub(crate) fn is_expired(&self, entry: &Entry, now: Time) -> bool {
        self.deadline(&entry.expiry_key()).is_some_and(|deadline| deadline <= now)
    }

    /// True if a message expires the moment it arrives, unless it is delivered at once.
    pub(crate) fn expires_on_arrival(&self, message: &Message) -> bool {
        self.settings.message_ttl_ms == Some(0) || message.meta().expiration_ms == Some(0)
    }

    /// True if a message that arrives will expire.
    pub(crate) fn has_deadline(&self, message: &Message) -> bool {
        self.settings.message_ttl_ms.is_some() || message.meta().expiration_ms.is_some()
    }

    /// True if the message that would be delivered next has passed its deadline.
    pub(crate) fn front_is_expired(&self, now: Time) -> bool {
        let deadline = self.waiting.ready.front().and_then(|front| self.deadline(&front));
        deadline.is_some_and(|deadline| deadline <= now)
    }

    /// The first deadline of a message that waits here, on disk or in memory; where only heads expire,
    /// the first of these. None, too, while it is not known because messages with earlier deadlines have
    /// just gone ([`Vhost::forget_gone_deadlines`](crate::Vhost::forget_gone_deadlines)).
    pub fn first_deadline(&self) -> Option<Time> {
        self.expiry.first_deadline(&self.settings, &self.waiting)
    }

    /// The next message deadline; its message may be gone.
    fn next_deadline(&self) -> Option<Time> {
        self.expiry.next_deadline(&self.settings, &self.waiting)
    }

    /// True if a message has perhaps passed its deadline and is still there.
    pub(crate) fn is_overdue(&self, now: Time) -> bool {
        self.next_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Takes the message with the earliest deadline, if that has passed, with the time at which it could have
    /// been taken: settings that move deadlines into the past make no expiry late.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<(Time, Entry)> {
        self.expiry.pop_due(now, &self.settings, &mut self.waiting)
    }

    /// True if a message waits in the queue, in memory or in a page, and has not passed its deadline.
    pub(crate) fn is_redrivable(&self, entry: &Entry, now: Time) -> bool {
        let ready = &self.waiting.ready;
        let waits = self.waiting.contains(entry.id) || ready.page_of(entry.id).is_some();
        waits && !self.is_expired(entry, now) || self.waiting.scheduled().contains(entry.id)
    }

    /// Drops up to `at_most` of the first deadlines, as long as their messages have left.
    pub(crate) fn forget_gone_deadlines(&mut self, at_most: usize) {
        self.expiry.forget_gone(at_most, &self.waiting);
    }

    /// Starts the lease again: the queue was used.
    pub(crate) fn renew_lease(&mut self, now: Time) {
        self.expiry.renew_lease(now);
    }

    /// True if a consumer, a message before its delivery time or an unacknowledged `basic.get` keeps the queue from
    /// expiring.
    pub(crate) fn is_held(&self) -> bool {
        !self.consumers.is_empty()
            || !self.waiting.scheduled().is_empty()
            || (self.delivery.has_unacked_get() && self.kind().get_holds_lease())
    }

    /// The time at which the unused queue expires.
    pub fn lease_ends(&self) -> Option<Time> {
        let expires_ms = self.settings.expires_ms.filter(|_| !self.is_held());
        expires_ms.map(|ms| self.expiry.lease_end(ms))
    }

    /// The delivery time of the next scheduled message.
    pub fn next_delivery_at(&self) -> Option<Time> {
        self.waiting.scheduled().next_ready_at()
    }

    /// The time of the next event that needs no command.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        let now = self.dead_letters.pending().is_retrying().then_some(Time::default());
        // Before the queue goes, the messages that expired before are to be read from disk.
        let lease_ends = self.lease_ends().filter(|_| !self.is_being_read());
        let delayed = self.waiting.delayed().next_ready_at();
        let scheduled = self.waiting.scheduled().next_wake();
        let times = [now, self.next_deadline(), delayed, scheduled, lease_ends];
        times.into_iter().flatten().min()
    }

    /// The earliest deadline of all messages in memory, found by looking at each where expiry is exact; for
    /// checks.
    pub(crate) fn earliest_deadline(&self) -> Option<Time> {
        match self.settings.expiry_order {
            ExpiryOrder::Head => None,
            ExpiryOrder::Deadline => {
                self.waiting.iter().filter_map(|front| self.deadline(&front)).min()
            }
        }
    }
}

/// Limits and settings.
impl Queue {
    /// Messages and bytes that count against the limits.
    pub(super) fn occupied(&self) -> (u64, u64) {
        let length = self.ready_count() + self.delayed_count() + self.pending_count();
        (length, self.ready_bytes() + self.delayed_bytes() + self.pending_bytes())
    }

    /// True if more waits than may.
    pub(crate) fn is_over_limit(&self) -> bool {
        if !self.settings.has_length_limit() {
            return false;
        }
        let (length, bytes) = self.occupied();
        self.settings.is_over(length, bytes)
    }

    /// True if messages must be evicted: more wait than may, and the overflow behaviour is to evict.
    pub(crate) fn must_evict(&self) -> bool {
        self.settings.overflow == Overflow::DropHead && self.is_over_limit()
    }

    /// True if more would wait than may, with `message`.
    pub(crate) fn is_full_for(&self, message: &Message) -> bool {
        if !self.settings.has_length_limit() {
            return false;
        }
        let (length, bytes) = self.occupied();
        self.settings.is_over(length + 1, bytes + self.waiting.ready.bytes_of(message))
    }

    /// True if the queue refuses publishes now: the overflow behaviour refuses, and not even a message of one
    /// byte has room.
    pub fn refuses_publishes(&self) -> bool {
        let (length, bytes) = self.occupied();
        self.settings.rejects_publishes() && self.settings.is_over(length + 1, bytes + 1)
    }

    /// Replaces the settings as a whole.
    pub(crate) fn apply_settings(&mut self, settings: Settings, now: Time) {
        self.expiry.settings_changed(now);
        let order_changed = settings.expiry_order != self.settings.expiry_order;
        self.settings = settings;
        if order_changed {
            self.expiry.relist(&self.settings, &self.waiting);
        }
    }
}

//! A queue: small nouns, composed. `ready` orders what waits, `deadlines` knows when it expires,
//! `consumers` who gets it, `settings` what is in force, `counters` what has happened.
//!
//! A queue knows neither exchanges nor other queues nor channels: what dies here is handed to the
//! vhost, which moves it. Deliveries that are not acknowledged yet are held by their channel; the
//! queue only counts them.

pub(crate) mod arguments;
pub(crate) mod browse;
pub(crate) mod consumers;
mod counters;
mod delayed;
mod entry;
mod expiry;
mod forecast;
mod kind;
mod level;
pub(crate) mod meter;
mod paged;
mod pending;
pub(crate) mod ready;
pub(crate) mod resolved_keys;
mod settings;
mod totals;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use amqp::properties::Properties;
use amqp::table::TableRef;
pub use arguments::QueueArguments;
pub use consumers::Consumer;
pub use counters::{ByCause, ByReason, Deaths, Deliveries, DropCause, QueueCounters};
pub use entry::Entry;
pub use expiry::{DeadlineSpan, ExpiryCursor, ExpirySlice};
pub use forecast::{Forecast, Span};
pub use resolved_keys::QueueDefaults;
pub use settings::{DelayedRetry, Settings};
pub use totals::PersistentMessages;

use crate::deadlines::Deadlines;
use crate::exchange::Binding;
use crate::ids::{ConnectionId, EntryId, ExchangeId, Lsn, PageId, QueueNumber};
use crate::limits::QUEUE_MEMORY_BYTES;
use crate::message::{Message, Name};
use crate::page::{Held, Paging};
use crate::policy::InForce;
pub(crate) use crate::queue_type::QueueType;
use crate::route::At;
use crate::setting::ExpiryOrder;
use crate::time::Time;
use consumers::Consumers;
use delayed::Delayed;
use entry::Front;
use meter::{Meter, MeterShare};
use pending::PendingDeadLetters;
use ready::Ready;
use totals::Totals;

/// What identifies a queue and never changes.
#[derive(Clone, Debug)]
pub(crate) struct QueueDeclaration {
    pub(crate) name: Name,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
    pub(crate) exclusive_owner: Option<ConnectionId>,
    pub(crate) arguments: Arc<QueueArguments>,
    pub(crate) declared_by: Name,
}

/// A queue.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the queue")]
pub struct Queue {
    /// Its name.
    pub name: Name,
    /// Its number in the log.
    pub number: QueueNumber,
    /// The record that declared it; 0 if it does not outlive a restart.
    pub(crate) lsn: Lsn,
    /// What was delivered so far, as the log knows it: a message up to here may have been.
    pub(crate) delivered_up_to: u64,
    /// The log will know more of that with this batch.
    pub(crate) delivered_noted: bool,
    /// Whether it survives a restart.
    pub durable: bool,
    /// Whether it goes with its last consumer.
    pub auto_delete: bool,
    /// The connection that alone may use it, if it is exclusive.
    pub exclusive_owner: Option<ConnectionId>,
    /// Its arguments, shared with queues that were declared with the same.
    pub arguments: Arc<QueueArguments>,
    /// The user who has declared it.
    pub declared_by: Name,
    /// The policies on it.
    pub policies: InForce,
    /// Arguments and policies, resolved.
    pub settings: Settings,
    /// What has happened in it.
    pub counters: QueueCounters,
    pub(crate) consumers: Consumers,
    /// Messages that died and could not be moved, under the at-least-once strategy.
    pub(crate) pending: PendingDeadLetters,
    /// Memory that its declaration takes.
    pub(crate) memory: MeterShare,
    /// The bindings that lead here.
    pub(crate) bindings: BTreeSet<(ExchangeId, Binding)>,
    /// Whether it ever had a consumer; an auto-delete queue stays until then.
    pub(crate) had_consumer: bool,
    /// The wake-up that the vhost's timers hold for it.
    pub(crate) armed: Option<Time>,
    /// Messages that died here and have not been moved yet.
    pub(crate) dying: u64,
    /// `basic.get`s that wait for what is being read, with their `no-ack`.
    pub(crate) awaited_gets: VecDeque<(At, bool)>,
    /// A dead letter found this queue full; its queue wants to know when there is room.
    pub(crate) refused_dead_letter: bool,
    ready: Ready,
    /// Deadlines of messages with an `expiration` of their own. A TTL that all share needs no list:
    /// the oldest message has the earliest deadline.
    deadlines: Deadlines<EntryId>,
    delayed: Delayed,
    unacked: u64,
    unacked_totals: Totals,
    unacked_gets: u64,
    last_used: Time,
    settings_since: Time,
}

impl Queue {
    /// A new, empty queue.
    pub(crate) fn new(
        declaration: QueueDeclaration,
        number: QueueNumber,
        policies: InForce,
        defaults: QueueDefaults,
        (paging, meter): (Paging, Meter),
        now: Time,
    ) -> Self {
        let arguments = declaration.arguments;
        let kind = arguments.queue_type;
        Self {
            name: declaration.name,
            number,
            lsn: Lsn(0),
            delivered_up_to: 0,
            delivered_noted: false,
            durable: declaration.durable,
            auto_delete: declaration.auto_delete,
            declared_by: declaration.declared_by,
            exclusive_owner: declaration.exclusive_owner,
            settings: Settings::resolve(&arguments, &policies, defaults),
            policies,
            counters: QueueCounters::default(),
            consumers: Consumers::new(kind.activation(arguments.single_active_consumer)),
            pending: PendingDeadLetters::new(kind.counted_bytes()),
            memory: MeterShare::default(),
            bindings: BTreeSet::new(),
            had_consumer: false,
            armed: None,
            dying: 0,
            awaited_gets: VecDeque::new(),
            refused_dead_letter: false,
            ready: Ready::new(kind.return_to(), kind.counted_bytes(), paging, meter),
            deadlines: Deadlines::default(),
            delayed: Delayed::new(kind.counted_bytes()),
            unacked: 0,
            unacked_totals: Totals::new(kind.counted_bytes()),
            unacked_gets: 0,
            last_used: now,
            settings_since: now,
            arguments,
        }
    }

    /// Memory that a queue with this declaration takes, about, in bytes; its messages are counted elsewhere.
    pub(crate) fn memory_bytes_of(name: &str, arguments: TableRef<'_>) -> u64 {
        QUEUE_MEMORY_BYTES + (name.len() + arguments.as_bytes().len()) as u64
    }

    /// Its declaration counts for as long as the queue is there.
    pub(crate) fn count_memory(&mut self, topology: &Meter) {
        let bytes = Self::memory_bytes_of(&self.name, self.arguments.table.as_ref());
        self.memory = topology.share(bytes);
    }

    /// Its type.
    pub fn kind(&self) -> QueueType {
        self.arguments.queue_type
    }

    /// Messages ready for delivery.
    pub fn ready_count(&self) -> u64 {
        self.ready.len() as u64
    }

    /// Bytes of messages ready for delivery, counted as the queue type counts them.
    pub fn ready_bytes(&self) -> u64 {
        self.ready.bytes()
    }

    /// Messages delivered and not acknowledged.
    pub fn unacked_count(&self) -> u64 {
        self.unacked
    }

    /// Bytes of messages delivered and not acknowledged.
    pub fn unacked_bytes(&self) -> u64 {
        self.unacked_totals.bytes()
    }

    /// The number of the message that came last, in order of arrival; 0 if none ever came.
    pub fn last_seq(&self) -> u64 {
        self.ready.last_seq()
    }

    /// Messages that were returned and wait to be ready again.
    pub fn delayed_count(&self) -> u64 {
        self.delayed.len() as u64
    }

    /// Bytes of messages that were returned and wait to be ready again.
    pub fn delayed_bytes(&self) -> u64 {
        self.delayed.bytes()
    }

    /// Messages that died and wait for somewhere to go.
    pub fn pending_count(&self) -> u64 {
        self.pending.len() as u64
    }

    /// Bytes of messages that died and wait for somewhere to go.
    pub fn pending_bytes(&self) -> u64 {
        self.pending.bytes()
    }

    /// Every message in the queue.
    pub fn message_count(&self) -> u64 {
        self.ready_count() + self.unacked_count() + self.delayed_count() + self.pending_count()
    }

    /// Those of `message_count` that outlive a restart: in a durable classic queue the ones that were
    /// published as persistent, in a quorum queue all.
    pub fn persistent(&self) -> PersistentMessages {
        let waiting =
            self.ready.persistent() + self.delayed.persistent() + self.pending.persistent();
        waiting + self.unacked_totals.persistent()
    }

    /// The bindings that lead here, with the exchanges they lead from.
    pub fn bindings(&self) -> impl Iterator<Item = &(ExchangeId, Binding)> {
        self.bindings.iter()
    }

    /// Its consumers, in the order in which they came.
    pub fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.consumers.iter()
    }

    /// The consumer that alone gets messages, if the queue has such a rule and a consumer.
    pub fn single_active_consumer(&self) -> Option<&Consumer> {
        self.consumers.active()
    }

    /// Whether `consumer`, one of this queue, may get messages.
    pub fn is_active(&self, consumer: &Consumer) -> bool {
        !self.consumers.is_single_active()
            || self.single_active_consumer().is_some_and(|active| active.id == consumer.id)
    }

    /// Whether a consumer has room for another delivery.
    pub fn has_waiting_consumer(&self) -> bool {
        self.consumers.any_waits()
    }

    /// The first deadline of a message that waits here, on disk or in memory; where only heads expire,
    /// the first of these. None, too, while it is not known because messages with earlier deadlines have
    /// just gone ([`Vhost::forget_gone_deadlines`](crate::Vhost::forget_gone_deadlines)).
    pub fn first_deadline(&self) -> Option<Time> {
        let own = match (self.settings.expiry_order, self.deadlines.first()) {
            (ExpiryOrder::Head, _) => return self.next_deadline(),
            (ExpiryOrder::Deadline, None) => None,
            (ExpiryOrder::Deadline, Some((at, id))) if self.is_waiting(id) => Some(at),
            (ExpiryOrder::Deadline, Some(_)) => return None,
        };
        let shared = self.oldest().map(|(deadline, _)| deadline);
        own.into_iter().chain(shared).chain(self.ready.first_paged_deadline()).min()
    }

    /// When the message arrived that waits longest, as far as it is not being read from disk.
    pub fn oldest_arrival(&self) -> Option<Time> {
        let fronts = self.ready.oldest().chain(self.delayed.oldest());
        fronts.map(|front| front.arrived).min()
    }

    /// The time that the publisher of the next message has given it, in seconds of the epoch.
    pub fn head_timestamp_s(&self) -> Option<u64> {
        let properties = Properties::parse(self.ready.front_message()?.properties()).ok()?;
        properties.timestamp
    }

    /// How many consumers it has.
    pub fn consumer_count(&self) -> u32 {
        u32::try_from(self.consumers.len()).unwrap_or(u32::MAX)
    }

    /// Whether `message` outlives a restart here.
    pub(crate) fn is_durable_for(&self, message: &Message) -> bool {
        self.durable && (self.kind().persists_everything() || message.facts().persistent)
    }

    /// Whether a message that leaves was there before a restart that may have made somebody forget that he
    /// has seen what became of it: a dead letter that he got before it was on disk.
    pub(crate) fn may_have_been_seen(&self, entry: &Entry) -> bool {
        entry.message.is_maybe_seen() || self.ready.was_delivered_before(entry.id)
    }

    // ---- what enters ----

    /// The identity of a message that arrives.
    pub(crate) fn assign(&mut self, message: &Message) -> EntryId {
        self.counters.entered += 1;
        let priority = message.facts().priority;
        self.ready.assign(self.kind().level(priority, self.arguments.max_priority))
    }

    /// Lets a message wait that has just arrived.
    pub(crate) fn push(&mut self, id: EntryId, message: Message, lsn: Lsn, arrived: Time) {
        let expiration_ms = message.facts().expiration_ms;
        self.ready.push(id, message, lsn, arrived);
        self.index(&Front { id, arrived, expiration_ms });
    }

    /// Lets a returned message wait again.
    pub(crate) fn give_back(&mut self, entry: Entry) {
        let front = entry.front();
        self.ready.give_back(entry);
        self.index(&front);
    }

    /// Keeps a returned message from delivery until `ready_at`.
    pub(crate) fn delay(&mut self, entry: Entry, ready_at: Time) {
        let front = entry.front();
        self.delayed.insert(ready_at, entry);
        self.index(&front);
    }

    /// Lists the message's own deadline, if it has one and expiry looks anywhere.
    fn index(&mut self, front: &Front) {
        if let Some(millis) = front.expiration_ms
            && self.settings.expiry_order == ExpiryOrder::Deadline
        {
            self.deadlines.insert(front.arrived.plus_ms(millis), front.id);
        }
    }

    // ---- what leaves ----

    /// Whether nothing waits.
    pub(crate) fn has_none_ready(&self) -> bool {
        self.ready.is_empty()
    }

    /// Whether messages wait and the next of them is not at hand yet.
    pub(crate) fn is_away(&self) -> bool {
        self.ready.is_away()
    }

    /// Whether `id` will be delivered next.
    pub(crate) fn is_next(&self, id: EntryId) -> bool {
        self.ready.front().is_some_and(|front| front.id == id)
    }

    /// Takes what will be delivered next.
    pub(crate) fn pop_front(&mut self) -> Option<Entry> {
        let entry = self.ready.pop_front()?;
        self.left_otherwise(&entry);
        Some(entry)
    }

    /// Takes the oldest message of the lowest priority.
    pub(crate) fn evict(&mut self) -> Option<Entry> {
        let entry = self.ready.evict()?;
        self.left_otherwise(&entry);
        Some(entry)
    }

    /// Removes everything that waits. How much that was, and the pages that held some of it.
    pub(crate) fn purge(&mut self) -> (u64, Vec<(PageId, Held)>) {
        let count = self.ready_count() + self.delayed_count() + self.pending_count();
        self.counters.purged += count;
        self.delayed.clear();
        self.pending.clear();
        self.deadlines.clear();
        (count, self.ready.clear())
    }

    /// A message with a listed deadline left by another way than its deadline.
    fn left_otherwise(&mut self, entry: &Entry) {
        if entry.message.facts().expiration_ms.is_some()
            && self.settings.expiry_order == ExpiryOrder::Deadline
            && self.deadlines.forget_one()
        {
            self.squeeze_deadlines();
        }
    }

    fn squeeze_deadlines(&mut self) {
        let (ready, delayed) = (&self.ready, &self.delayed);
        self.deadlines.retain(|id| ready.contains(id) || delayed.contains(id));
    }

    // ---- deliveries ----

    /// Counts a delivery of `entry`; `needs_ack` if it stays unacknowledged. True if the log is to
    /// know of that, and was not going to yet.
    #[must_use]
    pub(crate) fn handed_out(&mut self, entry: &mut Entry, needs_ack: bool, by_get: bool) -> bool {
        self.counters.deliveries.count(!needs_ack, by_get, entry.acquired_count > 0);
        if needs_ack {
            entry.acquired_count = entry.acquired_count.saturating_add(1);
            self.unacked += 1;
            self.unacked_totals.add(&entry.message, entry.lsn);
            self.unacked_gets += u64::from(by_get);
            self.note_delivered(entry)
        } else {
            false
        }
    }

    fn note_delivered(&mut self, entry: &Entry) -> bool {
        if !entry.is_durable() || entry.id.seq <= self.delivered_up_to {
            return false;
        }
        self.delivered_up_to = entry.id.seq;
        !std::mem::replace(&mut self.delivered_noted, true)
    }

    /// Counts the end of a delivery that was unacknowledged, whatever ended it.
    pub(crate) fn taken_back(&mut self, entry: &Entry, by_get: bool) {
        self.unacked -= 1;
        self.unacked_totals.subtract(&entry.message, entry.lsn);
        self.unacked_gets -= u64::from(by_get);
    }

    // ---- time ----

    /// When a message expires.
    fn deadline(&self, front: &Front) -> Option<Time> {
        self.settings.deadline(front.arrived, front.expiration_ms)
    }

    /// Whether a message that came back has passed its deadline.
    pub(crate) fn is_expired(&self, entry: &Entry, now: Time) -> bool {
        self.deadline(&entry.front()).is_some_and(|deadline| deadline <= now)
    }

    /// Whether a message expires the moment it arrives, unless it is delivered at once.
    pub(crate) fn expires_on_arrival(&self, message: &Message) -> bool {
        self.settings.message_ttl_ms == Some(0) || message.facts().expiration_ms == Some(0)
    }

    /// Whether a message that arrives will expire by itself.
    pub(crate) fn has_deadline(&self, message: &Message) -> bool {
        self.settings.message_ttl_ms.is_some() || message.facts().expiration_ms.is_some()
    }

    /// Whether what would be delivered next has passed its deadline.
    pub(crate) fn front_is_expired(&self, now: Time) -> bool {
        let deadline = self.ready.front().and_then(|front| self.deadline(&front));
        deadline.is_some_and(|deadline| deadline <= now)
    }

    /// The next message deadline; perhaps of a message that is gone.
    fn next_deadline(&self) -> Option<Time> {
        match self.settings.expiry_order {
            ExpiryOrder::Head => self.ready.heads().filter_map(|front| self.deadline(&front)).min(),
            ExpiryOrder::Deadline => {
                let own = self.first_own().map(|(deadline, _)| deadline);
                let shared = self.oldest().map(|(deadline, _)| deadline);
                own.into_iter().chain(shared).chain(self.ready.next_ask()).min()
            }
        }
    }

    /// Whether a message has perhaps passed its deadline and is still there.
    pub(crate) fn is_overdue(&self, now: Time) -> bool {
        self.next_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// The first own deadline at hand, unless an earlier one is being read.
    fn first_own(&self) -> Option<(Time, EntryId)> {
        let being_read = self.ready.first_being_read();
        let is_first = |at: Time| being_read.is_none_or(|read| at <= read);
        self.deadlines.first().filter(|(deadline, _)| is_first(*deadline))
    }

    /// The message that the TTL of the queue expires next.
    fn oldest(&self) -> Option<(Time, EntryId)> {
        let ttl = self.settings.message_ttl_ms?;
        let fronts = self.ready.oldest().chain(self.delayed.oldest());
        fronts.map(|front| (front.arrived.plus_ms(ttl), front.id)).min()
    }

    /// Takes the message with the earliest deadline, if that has passed, and says when it could have
    /// been taken: settings that put deadlines into the past make nobody late.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<(Time, Entry)> {
        let (deadline, entry) = match self.settings.expiry_order {
            ExpiryOrder::Head => self.pop_due_head(now)?,
            ExpiryOrder::Deadline => self.pop_due_anywhere(now)?,
        };
        Some((deadline.max(self.settings_since), entry))
    }

    fn pop_due_head(&mut self, now: Time) -> Option<(Time, Entry)> {
        let heads = self.ready.heads().filter_map(|f| Some((self.deadline(&f)?, f.id)));
        let (deadline, id) = heads.min().filter(|(deadline, _)| *deadline <= now)?;
        Some((deadline, self.ready.take(id)?))
    }

    fn pop_due_anywhere(&mut self, now: Time) -> Option<(Time, Entry)> {
        self.skip_stale_deadlines(now);
        // What is still in a page may come first.
        let paged = self.ready.first_paged_deadline();
        let own = self.deadlines.first().filter(|(at, _)| paged.is_none_or(|paged| *at <= paged));
        let shared = self.oldest();
        let (deadline, id) = own.into_iter().chain(shared).min().filter(|(at, _)| *at <= now)?;
        let entry = self.ready.take(id).or_else(|| self.delayed.take(id))?;
        if own == Some((deadline, id)) {
            self.deadlines.pop();
        } else {
            self.left_otherwise(&entry);
        }
        Some((deadline, entry))
    }

    /// Whether a message waits here, at hand or in a page, and has not passed its deadline.
    pub(crate) fn is_redrivable(&self, entry: &Entry, now: Time) -> bool {
        let waits = self.is_waiting(entry.id) || self.ready.page_of(entry.id).is_some();
        waits && !self.is_expired(entry, now)
    }

    /// Drops due deadlines of messages that are gone.
    fn skip_stale_deadlines(&mut self, now: Time) {
        while let Some((deadline, id)) = self.deadlines.first()
            && deadline <= now
            && !self.is_waiting(id)
        {
            self.deadlines.pop();
            self.deadlines.popped_stale();
        }
    }

    /// Drops the first deadlines as long as they are of messages that are gone, at most so many.
    pub(crate) fn forget_gone_deadlines(&mut self, at_most: usize) {
        for _ in 0..at_most {
            let Some((_, id)) = self.deadlines.first() else { return };
            if self.is_waiting(id) {
                return;
            }
            // One that comes back is listed again.
            self.deadlines.pop();
            self.deadlines.popped_stale();
        }
    }

    /// Whether a message waits in memory.
    fn is_waiting(&self, id: EntryId) -> bool {
        self.ready.contains(id) || self.delayed.contains(id)
    }

    /// Takes a delayed message that is ready again.
    pub(crate) fn pop_retry(&mut self, now: Time) -> Option<Entry> {
        let entry = self.delayed.pop_ready(now)?;
        self.left_otherwise(&entry);
        Some(entry)
    }

    /// Something that counts as use has happened: the lease starts again (spec 2).
    pub(crate) fn renew_lease(&mut self, now: Time) {
        self.last_used = now;
    }

    /// Whether somebody keeps it from expiring.
    pub(crate) fn is_held(&self) -> bool {
        !self.consumers.is_empty() || (self.unacked_gets > 0 && self.kind().get_holds_lease())
    }

    /// When the unused queue expires.
    pub fn lease_ends(&self) -> Option<Time> {
        let expires_ms = self.settings.expires_ms.filter(|_| !self.is_held());
        expires_ms.map(|ms| self.last_used.plus_ms(ms))
    }

    /// When something happens here by itself.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        let now = self.pending.is_retrying().then_some(Time::default());
        // Before the queue goes, those in it that expired before are to be read.
        let lease_ends = self.lease_ends().filter(|_| !self.is_being_read());
        let times = [now, self.next_deadline(), self.delayed.next_ready_at(), lease_ends];
        times.into_iter().flatten().min()
    }

    // ---- limits ----

    /// Messages and bytes that count against the limits.
    fn occupied(&self) -> (u64, u64) {
        let length = self.ready_count() + self.delayed_count() + self.pending_count();
        (length, self.ready.bytes() + self.delayed.bytes() + self.pending.bytes())
    }

    /// Whether more waits than may.
    pub(crate) fn is_over_limit(&self) -> bool {
        let (length, bytes) = self.occupied();
        self.settings.is_over(length, bytes)
    }

    /// Whether `message` would make it so.
    pub(crate) fn is_full_for(&self, message: &Message) -> bool {
        if self.settings.max_length.is_none() && self.settings.max_length_bytes.is_none() {
            return false;
        }
        let (length, bytes) = self.occupied();
        self.settings.is_over(length + 1, bytes + self.ready.bytes_of(message))
    }

    /// Replaces the settings as a whole.
    pub(crate) fn apply_settings(&mut self, settings: Settings, now: Time) {
        self.settings_since = now;
        let order_changed = settings.expiry_order != self.settings.expiry_order;
        self.settings = settings;
        if order_changed {
            self.deadlines.clear();
            let fronts: Vec<Front> = self.ready.iter().chain(self.delayed.iter()).collect();
            for front in &fronts {
                self.index(front);
            }
        }
    }

    /// The earliest deadline of all that wait, found by looking at each where expiry looks anywhere;
    /// for checks.
    pub(crate) fn earliest_deadline(&self) -> Option<Time> {
        match self.settings.expiry_order {
            ExpiryOrder::Head => None,
            ExpiryOrder::Deadline => {
                let all = self.ready.iter().chain(self.delayed.iter());
                all.filter_map(|front| self.deadline(&front)).min()
            }
        }
    }

    /// The messages of `durable_waiting`; for checks.
    pub(crate) fn durable_messages(&self) -> Vec<Entry> {
        let others = self.delayed.entries().chain(self.pending.entries()).cloned();
        let all = self.ready.entries().chain(others);
        all.filter(Entry::is_durable).collect()
    }

    /// Messages that wait, in whichever way, and outlive a restart, with the records that brought them.
    pub(crate) fn durable_waiting(&self) -> impl Iterator<Item = (EntryId, Lsn)> {
        let others = self.delayed.entries().chain(self.pending.entries());
        let others = others.filter(|entry| entry.is_durable());
        self.ready.durable().chain(others.map(|entry| (entry.id, entry.lsn)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_queue_is_small() {
        // The allocator's next size is 1536 bytes.
        assert!(size_of::<Queue>() <= 1280, "{} bytes", size_of::<Queue>());
    }
}

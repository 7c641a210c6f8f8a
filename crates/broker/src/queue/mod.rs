//! A queue, composed of parts: `waiting` holds the messages in order, `expiry` their deadlines, `consumers`
//! the consumers, `delivery` the unacknowledged counts, `settings` the settings in force, `counters` the
//! event counters.
//!
//! A queue knows neither exchanges nor other queues nor channels: the vhost moves dead messages. Channels
//! hold the unacknowledged deliveries; the queue only counts them.

pub(crate) mod arguments;
pub(crate) mod browse;
mod capacity;
pub(crate) mod consumers;
mod counters;
pub(crate) mod dead_letters;
mod delayed_retry;
mod delivery;
mod expiry;
mod expiry_view;
mod forecast;
mod kind;
mod level;
mod messages;
mod ownership;
mod paged;
pub(crate) mod ready;
mod registration;
pub(crate) mod replayed;
pub(crate) mod resolved_keys;
mod settings;
mod waiting;

use std::sync::Arc;

pub use crate::entry::Entry;
pub use crate::entry::totals::PersistentMessages;
use amqp::table::TableRef;
pub use arguments::QueueArguments;
pub use consumers::Consumer;
pub use counters::{ByCause, ByReason, DeathCounters, Deliveries, DropCause, QueueCounters};
pub use delayed_retry::{DelayedRetry, RetryDelays};
pub use expiry_view::{DeadlineSpan, ExpiryCursor, ExpirySlice};
pub use forecast::{Forecast, Span};
pub use ownership::Ownership;
pub use resolved_keys::QueueDefaults;
pub use settings::Settings;

use crate::entry::meter::Meter;
use crate::entry::meter::QueueMemory;
use crate::exchange::Binding;
use crate::ids::{ConnectionId, EntryId, ExchangeId, Lsn, QueueNumber};
use crate::limits::QUEUE_MEMORY_BYTES;
use crate::message::{Message, Name};
use crate::policy::EffectivePolicies;
pub(crate) use crate::queue_type::QueueType;
use crate::record::QueueRecord;
use crate::time::Time;
use consumers::Consumers;
use dead_letters::DeadLetters;
use delivery::Delivery;
use expiry::Expiry;
use ready::Ready;
use registration::Registration;
use waiting::WaitingMessages;

/// The declaration of a queue: the part of it that never changes.
#[derive(Clone, Debug)]
pub(crate) struct QueueDeclaration {
    pub(crate) name: Name,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
    pub(crate) exclusive_owner: Option<ConnectionId>,
    pub(crate) arguments: Arc<QueueArguments>,
    pub(crate) declared_by: Name,
}

/// A queue with its messages and consumers.
#[derive(Debug)]
pub struct Queue {
    /// The name of the queue.
    pub name: Name,
    /// The number of the queue in the log.
    pub number: QueueNumber,
    /// Owner and lifetime.
    pub ownership: Ownership,
    /// The arguments, shared with queues that were declared with the same ones.
    pub arguments: Arc<QueueArguments>,
    /// The policies in force.
    pub policies: EffectivePolicies,
    /// Arguments and policies, resolved.
    pub settings: Settings,
    /// Counts of events since the start.
    pub counters: QueueCounters,
    pub(crate) consumers: Consumers,
    pub(crate) registration: Registration,
    pub(crate) delivery: Delivery,
    pub(crate) expiry: Expiry,
    pub(crate) dead_letters: DeadLetters,
    waiting: WaitingMessages,
}

/// Messages that wait in one place until their time comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelayedMessages {
    pub(crate) count: u64,
    /// The time of the first of them.
    pub(crate) next_at: Option<Time>,
}

impl Queue {
    /// Creates an empty queue.
    pub(crate) fn new(
        declaration: QueueDeclaration,
        number: QueueNumber,
        policies: EffectivePolicies,
        defaults: QueueDefaults,
        memory: QueueMemory,
        now: Time,
    ) -> Self {
        let arguments = declaration.arguments;
        let kind = arguments.queue_type;
        let counted = kind.counted_bytes();
        Self {
            name: declaration.name,
            number,
            ownership: Ownership {
                durable: declaration.durable,
                auto_delete: declaration.auto_delete,
                exclusive_owner: declaration.exclusive_owner,
                declared_by: declaration.declared_by,
            },
            settings: Settings::resolve(&arguments, &policies, defaults),
            policies,
            counters: QueueCounters::default(),
            consumers: Consumers::new(kind.activation(arguments.single_active_consumer)),
            registration: Registration::default(),
            delivery: Delivery::new(counted),
            expiry: Expiry::new(now),
            dead_letters: DeadLetters::new(counted),
            waiting: WaitingMessages::new(Ready::new(kind.return_to(), counted, memory)),
            arguments,
        }
    }

    /// Approximate memory of a queue with this declaration, without messages, in bytes.
    pub(crate) fn memory_bytes_of(name: &str, arguments: TableRef<'_>) -> u64 {
        QUEUE_MEMORY_BYTES + (name.len() + arguments.as_bytes().len()) as u64
    }

    /// Counts the memory of the declaration for as long as the queue exists.
    pub(crate) fn count_memory(&mut self, topology: &Meter) {
        let bytes = Self::memory_bytes_of(&self.name, self.arguments.table.as_ref());
        self.registration.count_memory(bytes, topology);
    }

    /// The type of the queue.
    pub fn kind(&self) -> QueueType {
        self.arguments.queue_type
    }

    /// Messages ready for delivery.
    pub fn ready_count(&self) -> u64 {
        self.waiting.ready.len() as u64
    }

    /// Bytes of messages ready for delivery, counted as the queue type counts them.
    pub fn ready_bytes(&self) -> u64 {
        self.waiting.ready.bytes()
    }

    /// Messages delivered and not acknowledged.
    pub fn unacked_count(&self) -> u64 {
        self.delivery.unacked()
    }

    /// Bytes of messages delivered and not acknowledged.
    pub fn unacked_bytes(&self) -> u64 {
        self.delivery.bytes()
    }

    /// The number of the last message in order of arrival; 0 if there was none.
    pub fn last_seq(&self) -> u64 {
        self.waiting.ready.last_seq()
    }

    /// Messages that wait to become ready: returned ones, and those with a delivery time.
    pub fn delayed_count(&self) -> u64 {
        (self.waiting.delayed().len() + self.waiting.scheduled().len()) as u64
    }

    /// Returned messages that wait for their next delivery.
    pub(crate) fn delayed_returned(&self) -> DelayedMessages {
        let delayed = self.waiting.delayed();
        DelayedMessages { count: delayed.len() as u64, next_at: delayed.next_ready_at() }
    }

    /// Messages that wait for their delivery time.
    pub(crate) fn scheduled(&self) -> DelayedMessages {
        let scheduled = self.waiting.scheduled();
        DelayedMessages { count: scheduled.len() as u64, next_at: scheduled.next_ready_at() }
    }

    /// Bytes of messages that wait to become ready.
    pub fn delayed_bytes(&self) -> u64 {
        self.waiting.delayed().bytes() + self.waiting.scheduled().bytes()
    }

    /// Messages that died and could not be routed, which the queue keeps.
    pub fn pending_count(&self) -> u64 {
        self.dead_letters.pending().len() as u64
    }

    /// Bytes of messages that died and could not be routed.
    pub fn pending_bytes(&self) -> u64 {
        self.dead_letters.pending().bytes()
    }

    /// All messages in the queue.
    pub fn message_count(&self) -> u64 {
        self.ready_count() + self.unacked_count() + self.delayed_count() + self.pending_count()
    }

    /// The part of `message_count` that survives a restart: in a durable classic queue the persistent
    /// messages, in a quorum queue all.
    pub fn persistent(&self) -> PersistentMessages {
        self.waiting.ready.persistent()
            + self.waiting.delayed().persistent()
            + self.waiting.scheduled().persistent()
            + self.dead_letters.pending().persistent()
            + self.delivery.persistent()
    }

    /// The bindings of which the queue is the destination, with their source exchanges.
    pub fn bindings(&self) -> impl Iterator<Item = &(ExchangeId, Binding)> {
        self.registration.bindings.iter()
    }

    /// The consumers of the queue, in order of arrival.
    pub fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.consumers.iter()
    }

    /// The active consumer, if the queue has a single active consumer.
    pub fn single_active_consumer(&self) -> Option<&Consumer> {
        self.consumers.active()
    }

    /// True if `consumer`, one of this queue, may get messages.
    pub fn is_active(&self, consumer: &Consumer) -> bool {
        !self.consumers.is_single_active()
            || self.single_active_consumer().is_some_and(|active| active.id == consumer.id)
    }

    /// The share of the recent past in which a consumer could have taken a message, in parts per million; 0
    /// without consumers.
    pub fn consumer_capacity_ppm(&self, now: Time) -> u64 {
        self.consumers.capacity_ppm(now)
    }

    /// The number of consumers.
    pub fn consumer_count(&self) -> u32 {
        u32::try_from(self.consumers.len()).expect("consumers are bounded by channels and tags")
    }

    /// The arrival time of the oldest waiting message, unless it is being read from disk.
    pub fn oldest_arrival(&self) -> Option<Time> {
        self.waiting.oldest().map(|front| front.arrived).min()
    }

    /// The publisher's timestamp of the next message, in seconds since the Unix epoch.
    pub fn head_timestamp_s(&self) -> Option<u64> {
        self.waiting.ready.front_message()?.decoded_properties().timestamp
    }

    /// True if `message` survives a restart in this queue.
    pub(crate) fn is_durable_for(&self, message: &Message) -> bool {
        self.ownership.durable && (self.kind().persists_everything() || message.meta().persistent)
    }

    /// True if the message may have been delivered before a restart that has lost the note of the delivery.
    pub(crate) fn may_have_been_delivered(&self, entry: &Entry) -> bool {
        entry.message.is_maybe_seen() || self.waiting.ready.was_delivered_before(entry.id)
    }

    /// True if a leaving message was in the queue before a restart that may have lost the note of its
    /// delivery: a client may have received the message, or its dead letter before the dead letter was on
    /// disk.
    pub(crate) fn may_have_been_seen(&self, entry: &Entry) -> bool {
        self.may_have_been_delivered(entry) || self.waiting.ready.had_left_before(entry.id)
    }

    /// The declaration as the log has it.
    pub(crate) fn record(&self) -> QueueRecord {
        QueueRecord {
            queue: self.number,
            name: Name::clone(&self.name),
            auto_delete: self.ownership.auto_delete,
            arguments: self.arguments.table.clone(),
            declared_by: Name::clone(&self.ownership.declared_by),
        }
    }

    /// Durable messages that wait in memory; for consistency checks.
    pub(crate) fn durable_messages(&self) -> Vec<Entry> {
        let all = self.waiting.ready.entries().chain(self.not_ready().cloned());
        all.filter(Entry::is_durable).collect()
    }

    /// Messages in memory that are not ready: delayed, scheduled or dead.
    fn not_ready(&self) -> impl Iterator<Item = &Entry> {
        let delayed = self.waiting.delayed().entries().chain(self.waiting.scheduled().entries());
        delayed.chain(self.dead_letters.pending().entries())
    }

    /// Durable messages that wait (ready, delayed, scheduled or dead), with their records.
    pub(crate) fn durable_waiting(&self) -> impl Iterator<Item = (EntryId, Lsn)> {
        let others = self.not_ready().filter(|entry| entry.is_durable());
        self.waiting.ready.durable().chain(others.map(|entry| (entry.id, entry.lsn)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_without_messages_is_small() {
        // The allocator's next size is 1024 bytes.
        assert!(size_of::<Queue>() <= 896, "{} bytes", size_of::<Queue>());
    }
}

//! `x-delayed-message`: holds messages with the header `x-delay` and routes them when their delay is over, by the
//! exchange type that its argument `x-delayed-type` names. See `docs/guides/deliver-later.md`.

use amqp::limits::SHORT_STRING_BYTES_MAX;
use amqp::table::{TableRef, Value};

use super::kind::ExchangeType;
use crate::entry::Entry;
use crate::entry::meter::QueueMemory;
use crate::entry::totals::CountedBytes;
use crate::ids::{EntryId, Lsn, PageId, QueueNumber};
use crate::page::EndedMessages;
use crate::refusal::Refusal;
use crate::scheduled::Scheduled;
use crate::scheduled::pages::RemovedMessage;
use crate::time::Time;

/// The exchange type by which a delayed exchange with these arguments routes.
///
/// # Errors
/// 406 with the texts of the plugin of RabbitMQ.
pub(crate) fn routing_type(arguments: TableRef<'_>) -> Result<ExchangeType, Refusal> {
    let Some(Value::LongStr(name)) = arguments.get("x-delayed-type") else {
        let text = "Invalid argument, 'x-delayed-type' must be an existing exchange type";
        return Err(Refusal::precondition_failed(text));
    };
    let name = String::from_utf8_lossy(name);
    match ExchangeType::from_name(&name) {
        Some(ExchangeType::Delayed) => Err(Refusal::precondition_failed(
            "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'",
        )),
        Some(kind) => Ok(kind),
        None => Err(ExchangeType::unknown(&name)),
    }
}

/// The place of the messages that a delayed exchange holds.
#[derive(Clone, Debug)]
pub(crate) struct HeldStore {
    /// The number under which the log knows the messages.
    pub(crate) number: QueueNumber,
    pub(crate) memory: QueueMemory,
}

/// The routing type that these arguments ask for, as text of at most 255 bytes for the log.
pub(crate) fn named_routing_type(arguments: TableRef<'_>) -> String {
    match arguments.get("x-delayed-type") {
        Some(Value::LongStr(name)) => {
            let shown = name.get(..SHORT_STRING_BYTES_MAX).unwrap_or(name);
            String::from_utf8_lossy(shown).into_owned()
        }
        Some(other) => other.type_name().to_string(),
        None => String::new(),
    }
}

/// The messages that a delayed exchange holds.
#[derive(Debug)]
pub(crate) struct HeldMessages {
    /// The number under which the log knows the messages.
    pub(crate) number: QueueNumber,
    /// The wake-up that the vhost's timers hold for the exchange.
    pub(crate) armed: Option<Time>,
    /// A declaration with another routing type was reported.
    pub(crate) has_reported_type: bool,
    last_seq: u64,
    waiting: Scheduled,
}

impl HeldMessages {
    pub(super) fn new(store: HeldStore) -> Self {
        let HeldStore { number, memory } = store;
        let waiting = Scheduled::new(CountedBytes::Body).with_memory(memory);
        Self { number, armed: None, has_reported_type: false, last_seq: 0, waiting }
    }

    /// The id of the next message.
    pub(crate) fn assign(&mut self) -> EntryId {
        self.last_seq += 1;
        EntryId { seq: self.last_seq, level: 0 }
    }

    /// Holds a message until `ready_at`.
    pub(crate) fn hold(&mut self, entry: Entry, ready_at: Time) {
        self.last_seq = self.last_seq.max(entry.id.seq);
        self.waiting.insert(ready_at, entry);
    }

    /// Takes the next message whose delay is over at `now`, with the time since which it is.
    pub(crate) fn pop_ready(&mut self, now: Time) -> Option<(Time, Entry)> {
        self.waiting.pop_ready(now)
    }

    /// Removes a message.
    pub(crate) fn remove(&mut self, id: EntryId) -> Option<RemovedMessage> {
        self.waiting.remove(id)
    }

    /// Lets a message wait until another time. Returns the entry with its record; none if no such message waits.
    pub(crate) fn reschedule(&mut self, id: EntryId, ready_at: Time) -> Option<(EntryId, Lsn)> {
        self.waiting.reschedule(id, ready_at, None)
    }

    /// Assumes that any message whose delay was over at `now` may have been routed and delivered.
    pub(crate) fn deliveries_forgotten(&mut self, now: Time) {
        self.waiting.mark_due_as_seen(now);
    }

    /// The time at which the next message is to be routed.
    pub(crate) fn next_ready_at(&self) -> Option<Time> {
        self.waiting.next_ready_at()
    }

    /// The messages by time and by schedule id.
    pub(crate) fn schedules(&self) -> &Scheduled {
        &self.waiting
    }

    /// The messages by time and by schedule id.
    pub(crate) fn schedules_mut(&mut self) -> &mut Scheduled {
        &mut self.waiting
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The messages in memory that survive a restart.
    pub(crate) fn durable(&self) -> impl Iterator<Item = &Entry> {
        self.waiting.entries().filter(|entry| entry.is_durable())
    }

    /// Removes all messages. Returns the pages with what was in them.
    pub(crate) fn clear(&mut self) -> Vec<(PageId, EndedMessages)> {
        self.waiting.clear()
    }
}

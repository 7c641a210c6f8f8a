//! The levels of a queue: its numbers of messages, bytes and consumers at one moment, in one table for the API and the
//! metrics.
//!
//! A new level is a field of [`QueueLevels`], its source in [`QueueLevels::of`], and a row of [`LEVELS`].

use broker::Queue;
use broker::time::Now;

use crate::snapshot::amount::Amount;

/// The levels of a queue, or of several queues together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct QueueLevels {
    /// Messages that wait for a consumer.
    pub ready: Amount,
    /// Messages delivered and not acknowledged.
    pub unacked: Amount,
    /// Messages that wait for a delay.
    pub delayed: Amount,
    /// Dead messages that the queue keeps.
    pub pending: Amount,
    pub(crate) paged_out: Amount,
    /// Messages that survive a restart.
    pub persistent: Amount,
    /// Number of consumers.
    pub consumers: u64,
    /// Share of the recent past in which a consumer could have taken a message, in parts per million.
    pub consumer_capacity_ppm: u64,
    /// Property `timestamp` of the next message, in seconds of the epoch.
    pub(crate) head_timestamp_s: Option<u64>,
}

/// The value of a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Messages, bytes, consumers or seconds.
    Whole(u64),
    /// A share, in parts per million.
    Millionths(u64),
    /// No value now.
    Missing,
}

/// The group of metrics with a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LevelGroup {
    /// Part of `queue_coarse_metrics`.
    Coarse,
    /// Part of `queue_consumer_count` and of `queue_metrics`.
    ConsumerCount,
    /// Part of `queue_metrics`.
    Queue,
}

/// A level: its names, its meaning, and its value.
#[derive(Debug)]
pub struct LevelRow {
    /// Field of a queue in the API; none if it has none, or stands among the sampled numbers.
    pub field: Option<&'static str>,
    /// Family of metrics, with its group.
    pub family: Option<(LevelGroup, &'static str)>,
    /// Description of the level.
    pub meaning: &'static str,
    /// Reads the value.
    pub value: fn(&QueueLevels) -> Level,
}

/// A level with a field and a family.
const fn both(
    field: &'static str,
    family: &'static str,
    meaning: &'static str,
    value: fn(&QueueLevels) -> Level,
) -> LevelRow {
    LevelRow { field: Some(field), family: Some((LevelGroup::Queue, family)), meaning, value }
}

/// A level that is only a family.
const fn family(
    group: LevelGroup,
    family: &'static str,
    meaning: &'static str,
    value: fn(&QueueLevels) -> Level,
) -> LevelRow {
    LevelRow { field: None, family: Some((group, family)), meaning, value }
}

/// A level that is only a field.
const fn field(
    field: &'static str,
    meaning: &'static str,
    value: fn(&QueueLevels) -> Level,
) -> LevelRow {
    LevelRow { field: Some(field), family: None, meaning, value }
}

/// All levels, in the order of their families.
pub const LEVELS: &[LevelRow] = &[
    family(LevelGroup::Coarse, "queue_messages_ready", "Messages that wait for a consumer", |q| {
        Level::Whole(q.ready.messages)
    }),
    family(
        LevelGroup::Coarse,
        "queue_messages_unacked",
        "Messages delivered and not acknowledged",
        |q| Level::Whole(q.unacked.messages),
    ),
    family(
        LevelGroup::Coarse,
        "queue_messages",
        "Messages in the queue, in whichever state",
        |q| Level::Whole(q.total().messages),
    ),
    LevelRow {
        field: Some("consumers"),
        family: Some((LevelGroup::ConsumerCount, "queue_consumers")),
        meaning: "Consumers of the queue",
        value: |q| Level::Whole(q.consumers),
    },
    both(
        "consumer_capacity",
        "queue_consumer_capacity",
        "Share of time in which a consumer could take a message",
        |q| Level::Millionths(q.consumer_capacity_ppm),
    ),
    both(
        "consumer_utilisation",
        "queue_consumer_utilisation",
        "The same as queue_consumer_capacity",
        |q| Level::Millionths(q.consumer_capacity_ppm),
    ),
    // RabbitMQ's family is without messages that are delayed or kept as dead ones, which its field has.
    family(
        LevelGroup::Queue,
        "queue_messages_ram",
        "Ready and unacknowledged messages in memory",
        |q| Level::Whole(q.ready_in_memory().messages + q.unacked.messages),
    ),
    family(
        LevelGroup::Queue,
        "queue_messages_ram_bytes",
        "Bytes of ready and unacknowledged messages in memory",
        |q| Level::Whole(q.ready_in_memory().bytes + q.unacked.bytes),
    ),
    field("messages_ram", "Messages in memory", |q| Level::Whole(q.in_memory().messages)),
    field("message_bytes_ram", "Bytes of messages in memory", |q| {
        Level::Whole(q.in_memory().bytes)
    }),
    field("memory", "Bytes of memory: bodies only; the rest depends on the headers", |q| {
        Level::Whole(q.in_memory().bytes)
    }),
    both("messages_ready_ram", "queue_messages_ready_ram", "Ready messages in memory", |q| {
        Level::Whole(q.ready_in_memory().messages)
    }),
    both(
        "messages_unacknowledged_ram",
        "queue_messages_unacked_ram",
        "Unacknowledged messages, which are all in memory",
        |q| Level::Whole(q.unacked.messages),
    ),
    both(
        "messages_persistent",
        "queue_messages_persistent",
        "Messages that outlive a restart",
        |q| Level::Whole(q.persistent.messages),
    ),
    both(
        "message_bytes_persistent",
        "queue_messages_persistent_bytes",
        "Bytes of messages that outlive a restart",
        |q| Level::Whole(q.persistent.bytes),
    ),
    both("message_bytes", "queue_messages_bytes", "Bytes of all messages in the queue", |q| {
        Level::Whole(q.total().bytes)
    }),
    both("message_bytes_ready", "queue_messages_ready_bytes", "Bytes of ready messages", |q| {
        Level::Whole(q.ready.bytes)
    }),
    both(
        "message_bytes_unacknowledged",
        "queue_messages_unacked_bytes",
        "Bytes of unacknowledged messages",
        |q| Level::Whole(q.unacked.bytes),
    ),
    both(
        "messages_paged_out",
        "queue_messages_paged_out",
        "Ready messages that wait on disk",
        |q| Level::Whole(q.paged_out.messages),
    ),
    both(
        "message_bytes_paged_out",
        "queue_messages_paged_out_bytes",
        "Bytes of ready messages that wait on disk",
        |q| Level::Whole(q.paged_out.bytes),
    ),
    both(
        "head_message_timestamp",
        "queue_head_message_timestamp",
        "The timestamp property of the message that is delivered next, in seconds of the epoch",
        |q| q.head_timestamp_s.map_or(Level::Missing, Level::Whole),
    ),
    both(
        "messages_delayed",
        "queue_messages_delayed",
        "Messages that wait before they are ready",
        |q| Level::Whole(q.delayed.messages),
    ),
    both("messages_dlx", "queue_messages_dlx_pending", "Dead messages that are kept", |q| {
        Level::Whole(q.pending.messages)
    }),
    both(
        "message_bytes_dlx",
        "queue_messages_dlx_pending_bytes",
        "Bytes of dead messages that are kept",
        |q| Level::Whole(q.pending.bytes),
    ),
];

impl QueueLevels {
    /// The levels of a queue.
    pub fn of(queue: &Queue, now: Now) -> Self {
        let amount = |messages, bytes| Amount { messages, bytes };
        let (paged_out, paged_out_bytes) = queue.paged_out();
        let persistent = queue.persistent();
        Self {
            ready: amount(queue.ready_count(), queue.ready_bytes()),
            unacked: amount(queue.unacked_count(), queue.unacked_bytes()),
            delayed: amount(queue.delayed_count(), queue.delayed_bytes()),
            pending: amount(queue.pending_count(), queue.pending_bytes()),
            paged_out: amount(paged_out, paged_out_bytes),
            persistent: amount(persistent.messages, persistent.bytes),
            consumers: u64::from(queue.consumer_count()),
            consumer_capacity_ppm: queue.consumer_capacity_ppm(now.time),
            head_timestamp_s: queue.head_timestamp_s(),
        }
    }

    /// Adds the messages and consumers of another queue. A sum has no capacity and no first message.
    pub fn add(&mut self, other: &Self) {
        for (sum, part) in [
            (&mut self.ready, other.ready),
            (&mut self.unacked, other.unacked),
            (&mut self.delayed, other.delayed),
            (&mut self.pending, other.pending),
            (&mut self.paged_out, other.paged_out),
            (&mut self.persistent, other.persistent),
        ] {
            sum.messages += part.messages;
            sum.bytes += part.bytes;
        }
        self.consumers += other.consumers;
    }

    /// All messages of the queue.
    pub fn total(&self) -> Amount {
        let all = [self.ready, self.unacked, self.delayed, self.pending];
        Amount {
            messages: all.iter().map(|amount| amount.messages).sum(),
            bytes: all.iter().map(|amount| amount.bytes).sum(),
        }
    }

    fn in_memory(&self) -> Amount {
        self.total().without(self.paged_out)
    }

    fn ready_in_memory(&self) -> Amount {
        self.ready.without(self.paged_out)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_of_levels_are_unique_and_documented() {
        let metrics = include_str!("../../../../docs/reference/metrics.md");
        let (mut fields, mut families) = (BTreeSet::new(), BTreeSet::new());
        for row in LEVELS {
            assert!(row.field.is_some() || row.family.is_some());
            assert!(row.field.is_none_or(|field| fields.insert(field)), "{:?}", row.field);
            if let Some((_, family)) = row.family {
                assert!(families.insert(family), "{family}");
                assert!(metrics.contains(family), "{family} is documented");
            }
        }
    }
}

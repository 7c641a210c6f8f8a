//! The levels of a queue: its numbers of messages, bytes and consumers, and its times, at one moment.

use broker::Queue;
use broker::time::{Now, Time};

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
    /// Ready messages that wait on disk.
    pub paged_out: Amount,
    /// Messages that survive a restart.
    pub persistent: Amount,
    /// Number of consumers.
    pub consumers: u64,
    /// Share of the recent past in which a consumer could have taken a message, in parts per million.
    pub consumer_capacity_ppm: u64,
    /// Property `timestamp` of the next message, in seconds of the epoch.
    pub head_timestamp_s: Option<u64>,
    /// Age of the oldest ready message.
    pub oldest_age_us: Option<u64>,
    /// First deadline of a message.
    pub first_deadline_us: Option<u64>,
    /// Time since the first deadline that has passed without an expiry.
    pub overdue_us: u64,
    /// Time at which the next scheduled message is ready.
    pub next_delivery_us: Option<u64>,
    /// Time at which the unused queue expires.
    pub lease_ends_us: Option<u64>,
}

impl QueueLevels {
    /// The levels of a queue.
    pub fn of(queue: &Queue, now: Now) -> Self {
        let amount = |messages, bytes| Amount { messages, bytes };
        let (paged_out, paged_out_bytes) = queue.paged_out();
        let persistent = queue.persistent();
        let first_deadline = queue.first_deadline();
        let overdue = first_deadline.map(|deadline| now.time.micros_since(deadline));
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
            oldest_age_us: queue.oldest_arrival().map(|at| now.time.micros_since(at)),
            first_deadline_us: first_deadline.map(Time::as_micros),
            overdue_us: overdue.unwrap_or_default(),
            next_delivery_us: queue.next_delivery_at().map(Time::as_micros),
            lease_ends_us: queue.lease_ends().map(Time::as_micros),
        }
    }

    /// Adds another queue: counts are summed, ages and times are the earliest. A sum has no capacity and no first message.
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
        self.oldest_age_us = self.oldest_age_us.max(other.oldest_age_us);
        self.overdue_us = self.overdue_us.max(other.overdue_us);
        for (first, other) in [
            (&mut self.first_deadline_us, other.first_deadline_us),
            (&mut self.next_delivery_us, other.next_delivery_us),
            (&mut self.lease_ends_us, other.lease_ends_us),
        ] {
            *first = first.iter().copied().chain(other).min();
        }
    }

    /// All messages of the queue.
    pub fn total(&self) -> Amount {
        let Amount { messages, bytes } = self.limited();
        Amount { messages: messages + self.unacked.messages, bytes: bytes + self.unacked.bytes }
    }

    /// The messages that count for the length limits.
    pub fn limited(&self) -> Amount {
        let all = [self.ready, self.delayed, self.pending];
        Amount {
            messages: all.iter().map(|amount| amount.messages).sum(),
            bytes: all.iter().map(|amount| amount.bytes).sum(),
        }
    }

    /// Messages in memory, in whichever state.
    pub fn in_memory(&self) -> Amount {
        self.total().without(self.paged_out)
    }

    /// Ready messages in memory.
    pub fn ready_in_memory(&self) -> Amount {
        self.ready.without(self.paged_out)
    }
}

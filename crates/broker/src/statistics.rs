//! Statistics of a vhost: actions of clients, lateness of expiry, and counts of dead and undeliverable
//! messages. Each count is a plain number beside the counted object; sums are computed on request.

use crate::death_history::DeathReason;
use crate::queue::{ByCause, ByReason, Deliveries};
use crate::queue_type::QueueType;
use crate::schedule::ScheduleCounters;
use crate::setting::DeadLetterStrategy;

/// Buckets of the lateness histogram.
const BUCKETS: usize = 24;

/// A histogram of lateness: the time between a deadline and the event. One bucket per power of two of
/// microseconds, from below 2 microseconds to above 8 seconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Lateness {
    buckets: [u64; BUCKETS],
    count: u64,
    sum_us: u64,
    max_us: u64,
}

impl Lateness {
    /// Counts an event that happened `late_us` microseconds after its deadline.
    pub fn record(&mut self, late_us: u64) {
        let bucket = (u64::BITS - late_us.leading_zeros()).saturating_sub(1) as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
        self.count += 1;
        self.sum_us = self.sum_us.saturating_add(late_us);
        self.max_us = self.max_us.max(late_us);
    }

    /// The number of counted events.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all lateness, in microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum_us
    }

    /// The greatest lateness, in microseconds.
    pub fn max_us(&self) -> u64 {
        self.max_us
    }

    /// The buckets: exclusive upper bounds in microseconds, each with the number of events below the bound.
    /// The last bucket has no bound.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let mut below = 0;
        self.buckets.iter().enumerate().map(move |(i, count)| {
            below += count;
            ((i + 1 < BUCKETS).then(|| 2 << i), below)
        })
    }
}

/// Upper bounds of the buckets of [`MessageSizes`] in bytes, inclusive; the last has no bound.
pub const MESSAGE_SIZE_BOUNDS: [u64; 8] =
    [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 50_000_000, 100_000_000];

/// A histogram of the body sizes of publishes, with RabbitMQ's buckets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MessageSizes {
    buckets: [u64; MESSAGE_SIZE_BOUNDS.len() + 1],
    sum_bytes: u64,
}

impl MessageSizes {
    /// Counts a body of `bytes` bytes.
    pub(crate) fn record(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        let bucket = MESSAGE_SIZE_BOUNDS.iter().take_while(|bound| **bound < bytes).count();
        self.buckets[bucket] += 1;
        self.sum_bytes += bytes;
    }

    /// The number of bodies in each bucket.
    pub fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// The sum of all sizes, in bytes.
    pub fn sum_bytes(&self) -> u64 {
        self.sum_bytes
    }
}

/// Counters of one channel: publishes with their results, and deliveries.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ChannelCounters {
    /// Messages published; publishes in a transaction count when it commits.
    pub published: u64,
    /// Publishes confirmed.
    pub confirmed: u64,
    /// Unroutable publishes that were returned.
    pub returned_unroutable: u64,
    /// Unroutable publishes that were dropped.
    pub dropped_unroutable: u64,
    /// Publishes that at least one full queue refused; nacked in confirm mode.
    pub refused: u64,
    /// Deliveries to consumers and `basic.get`.
    pub deliveries: Deliveries,
}

/// The dead-letter strategy of a queue, as labelled in RabbitMQ's metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// The queue has no dead-letter exchange.
    Disabled,
    /// Dead-letter strategy `at-most-once`.
    AtMostOnce,
    /// Dead-letter strategy `at-least-once`.
    AtLeastOnce,
}

impl Strategy {
    /// All strategies, in the order of metrics.
    pub const ALL: [Self; 3] = [Self::AtLeastOnce, Self::AtMostOnce, Self::Disabled];

    /// The label in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::AtMostOnce => "at_most_once",
            Self::AtLeastOnce => "at_least_once",
        }
    }
}

impl From<DeadLetterStrategy> for Strategy {
    fn from(strategy: DeadLetterStrategy) -> Self {
        match strategy {
            DeadLetterStrategy::AtMostOnce => Self::AtMostOnce,
            DeadLetterStrategy::AtLeastOnce => Self::AtLeastOnce,
        }
    }
}

/// Messages that died, refused ones that are dead-lettered included, by queue type, strategy and reason; and those of them
/// that the strategy at-least-once has moved.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DeathsByStrategy {
    deaths: [[ByReason<u64>; Strategy::ALL.len()]; QueueType::ALL.len()],
    confirmed: [u64; QueueType::ALL.len()],
}

impl DeathsByStrategy {
    /// The count for this type, strategy and reason.
    pub fn get(&self, kind: QueueType, strategy: Strategy, reason: DeathReason) -> u64 {
        self.deaths[kind as usize][strategy as usize].get(reason)
    }

    /// The dead letters that the strategy at-least-once has moved out of queues of this type.
    pub fn confirmed(&self, kind: QueueType) -> u64 {
        self.confirmed[kind as usize]
    }

    /// Counts one death.
    pub(crate) fn count(&mut self, kind: QueueType, strategy: Strategy, reason: DeathReason) {
        *self.deaths[kind as usize][strategy as usize].get_mut(reason) += 1;
    }

    /// Counts one dead letter that has reached its targets. The death of one that was kept is counted already.
    pub(crate) fn dead_lettered(
        &mut self,
        kind: QueueType,
        strategy: Strategy,
        reason: DeathReason,
        was_kept: bool,
    ) {
        if !was_kept {
            self.count(kind, strategy, reason);
        }
        if strategy == Strategy::AtLeastOnce {
            self.confirmed[kind as usize] += 1;
        }
    }
}

/// Counters of a vhost since the broker started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct VhostCounters {
    /// Connections opened.
    pub connections_opened: u64,
    /// Connections that have ended.
    pub connections_closed: u64,
    /// Channels opened.
    pub channels_opened: u64,
    /// Channels closed, for any reason.
    pub channels_closed: u64,
    /// Lateness of expired messages.
    pub message_expiry: Lateness,
    /// Lateness of expired unused queues.
    pub queue_expiry: Lateness,
    /// Lateness of messages with a delivery time, or a delay by an exchange: until they were ready or routed.
    pub scheduled_delivery: Lateness,
    /// Lateness of returned messages that waited: until they were ready again.
    pub retry: Lateness,
    /// Messages published by clients.
    pub published: u64,
    /// Publishes on channels in confirm mode.
    pub published_for_confirm: u64,
    /// Queues that these messages were routed to, summed over all messages.
    pub routed: u64,
    /// Body sizes of publishes.
    pub message_sizes: MessageSizes,
    /// Publishes confirmed.
    pub confirmed: u64,
    /// Unroutable publishes that were returned.
    pub returned_unroutable: u64,
    /// Unroutable publishes that were dropped.
    pub dropped_unroutable: u64,
    /// Publishes that at least one full queue refused.
    pub publishes_refused: u64,
    /// Publishes and dead letters that a full queue refused, counted once per queue.
    pub refused: u64,
    /// Copies of dead letters that one of several targets did not accept, and refused publishes that could
    /// not be dead-lettered.
    pub copies_dropped: ByCause,
    /// Direct replies dropped because the requester was gone or did not read.
    pub direct_replies_dropped: u64,
    /// Messages that became at least one dead letter, including those of deleted queues.
    pub dead_lettered: ByReason<u64>,
    /// Messages that died without becoming a dead letter, including those of deleted queues.
    pub dropped: ByReason<ByCause>,
    /// Messages that died and currently wait for the end of an alarm.
    pub deaths_waiting: u64,
    /// Messages that the firehose did not report because an alarm was in effect.
    pub firehose_untold: u64,
    /// Dead letters whose headers do not hold their whole history, which would not fit into a frame.
    pub death_headers_cut: u64,
    /// Redriven messages, including those of deleted queues.
    pub redriven: u64,
    /// Scheduled messages.
    pub schedules: ScheduleCounters,
    /// The same deaths by queue type and strategy, in RabbitMQ's order.
    pub deaths: DeathsByStrategy,
    /// Deliveries from deleted queues, by queue type.
    pub delivered_from_gone: [Deliveries; QueueType::ALL.len()],
    /// Direct replies delivered; they pass through no queue.
    pub direct_replies: u64,
    /// Accepted queue declarations, including those of existing queues.
    pub queues_declared: u64,
    /// Queues created.
    pub queues_created: u64,
    /// Queues deleted.
    pub queues_deleted: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_below_their_bounds() {
        let mut sizes = MessageSizes::default();
        for bytes in [0, 100, 101, 100_000_001] {
            sizes.record(bytes);
        }
        assert_eq!(sizes.buckets(), [2, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(sizes.sum_bytes(), 100_000_202);
    }

    #[test]
    fn lateness_falls_into_powers_of_two() {
        let mut lateness = Lateness::default();
        for late_us in [0, 1, 2, 3, 1000, u64::MAX] {
            lateness.record(late_us);
        }
        let cumulative: Vec<_> = lateness.cumulative().collect();
        assert_eq!(cumulative[0], (Some(2), 2));
        assert_eq!(cumulative[1], (Some(4), 4));
        assert_eq!(cumulative[8], (Some(512), 4));
        assert_eq!(cumulative[9], (Some(1024), 5));
        assert_eq!(*cumulative.last().unwrap(), (None, 6));
        assert_eq!(lateness.max_us(), u64::MAX);
    }
}

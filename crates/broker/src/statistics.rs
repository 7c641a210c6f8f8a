//! What a vhost counts of itself: what clients did, how late expiry is, what died and what could not be
//! delivered. Counts are plain numbers beside what they count; sums are made when somebody asks.

use crate::death_history::DeathReason;
use crate::queue::{ByCause, ByReason, Deliveries};
use crate::queue_type::QueueType;
use crate::setting::DeadLetterStrategy;

/// Buckets of the lateness histogram.
const BUCKETS: usize = 24;

/// How late things happened that were due at a certain time: a histogram with one bucket per power of
/// two of microseconds, from under 2 microseconds to over 8 seconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Lateness {
    buckets: [u64; BUCKETS],
    count: u64,
    sum_us: u64,
    max_us: u64,
}

impl Lateness {
    /// Counts something that happened `late_us` microseconds after it was due.
    pub fn record(&mut self, late_us: u64) {
        let bucket = (u64::BITS - late_us.leading_zeros()).saturating_sub(1) as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
        self.count += 1;
        self.sum_us = self.sum_us.saturating_add(late_us);
        self.max_us = self.max_us.max(late_us);
    }

    /// How many were counted.
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

    /// Upper bounds in microseconds, exclusive, each with the number of all counted below it; the
    /// last has no bound.
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

/// How large the bodies of publishes were: a histogram with RabbitMQ's buckets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MessageSizes {
    buckets: [u64; MESSAGE_SIZE_BOUNDS.len() + 1],
    sum_bytes: u64,
}

impl MessageSizes {
    /// Counts a body of so many bytes.
    pub(crate) fn record(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        let bucket = MESSAGE_SIZE_BOUNDS.iter().take_while(|bound| **bound < bytes).count();
        self.buckets[bucket] += 1;
        self.sum_bytes += bytes;
    }

    /// How many were counted in each bucket.
    pub fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// The sum of all sizes, in bytes.
    pub fn sum_bytes(&self) -> u64 {
        self.sum_bytes
    }
}

/// What a channel's client has published and what became of that, and what was delivered to it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ChannelCounters {
    /// Messages published, in a transaction at its commit.
    pub published: u64,
    /// Publishes confirmed.
    pub confirmed: u64,
    /// Publishes that went nowhere and came back.
    pub returned_unroutable: u64,
    /// Publishes that went nowhere and were dropped.
    pub dropped_unroutable: u64,
    /// What was delivered.
    pub deliveries: Deliveries,
}

/// What a dead letter's queue promises, as RabbitMQ's metrics tell strategies apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// There is no dead-letter exchange.
    Disabled,
    /// `at-most-once`.
    AtMostOnce,
    /// `at-least-once`.
    AtLeastOnce,
}

impl Strategy {
    /// All, in the order of metrics.
    pub const ALL: [Self; 3] = [Self::AtLeastOnce, Self::AtMostOnce, Self::Disabled];

    /// The word in metrics.
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

/// Messages that died and left their queue, by its type and strategy.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Deaths([[ByReason<u64>; Strategy::ALL.len()]; QueueType::ALL.len()]);

impl Deaths {
    /// How many.
    pub fn get(&self, kind: QueueType, strategy: Strategy, reason: DeathReason) -> u64 {
        self.0[kind as usize][strategy as usize].get(reason)
    }

    /// Counts one.
    pub(crate) fn count(&mut self, kind: QueueType, strategy: Strategy, reason: DeathReason) {
        *self.0[kind as usize][strategy as usize].get_mut(reason) += 1;
    }
}

/// The counts of a vhost since it started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct VhostCounters {
    /// Connections opened.
    pub connections_opened: u64,
    /// Connections that have ended.
    pub connections_closed: u64,
    /// Channels opened.
    pub channels_opened: u64,
    /// Channels closed, in whichever way.
    pub channels_closed: u64,
    /// How late messages expired.
    pub message_expiry: Lateness,
    /// How late unused queues expired.
    pub queue_expiry: Lateness,
    /// Messages published by clients.
    pub published: u64,
    /// Those of them that want a confirm.
    pub published_for_confirm: u64,
    /// Queues that they were routed to, in all.
    pub routed: u64,
    /// How large they were.
    pub message_sizes: MessageSizes,
    /// Publishes confirmed.
    pub confirmed: u64,
    /// Publishes that went nowhere and came back.
    pub returned_unroutable: u64,
    /// Publishes that went nowhere and were dropped.
    pub dropped_unroutable: u64,
    /// Publishes and dead letters that a full queue refused, once for each queue.
    pub refused: u64,
    /// Dead letters that one of several targets did not take, and publishes that were refused and
    /// dead-lettered to nobody.
    pub copies_dropped: ByCause,
    /// Direct replies whose requester was gone or did not read.
    pub direct_replies_dropped: u64,
    /// Messages that died and became at least one dead letter, in queues that are gone, too.
    pub dead_lettered: ByReason<u64>,
    /// Messages that died and left nothing, in queues that are gone, too.
    pub dropped: ByReason<ByCause>,
    /// Messages that died and wait for the end of an alarm, now.
    pub deaths_waiting: u64,
    /// What the firehose did not tell because an alarm was on.
    pub firehose_untold: u64,
    /// Dead letters whose headers do not tell all of their history, because that would not fit into a
    /// frame.
    pub death_headers_cut: u64,
    /// Messages that were redriven, from queues that are gone, too.
    pub redriven: u64,
    /// The same deaths, in RabbitMQ's order.
    pub deaths: Deaths,
    /// What was delivered from queues that are gone, by type.
    pub delivered_from_gone: [Deliveries; QueueType::ALL.len()],
    /// What was consumed as direct replies, without a queue.
    pub direct_replies: u64,
    /// Declarations of queues that were accepted, repeated ones included.
    pub queues_declared: u64,
    /// Queues made.
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

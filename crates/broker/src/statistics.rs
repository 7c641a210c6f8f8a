//! What a vhost counts of itself: how late expiry is, what died and what could not be delivered.

use crate::queue::{ByCause, ByReason};

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

/// The counts of a vhost since it started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct VhostCounters {
    /// How late messages expired.
    pub message_expiry: Lateness,
    /// How late unused queues expired.
    pub queue_expiry: Lateness,
    /// Messages published by clients.
    pub published: u64,
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
    /// Queues declared.
    pub queues_declared: u64,
    /// Queues deleted.
    pub queues_deleted: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

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

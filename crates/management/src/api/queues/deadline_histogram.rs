//! A histogram of deadlines, built in one pass with bounded memory. Exact for every deadline that is known
//! exactly.
//!
//! The range of deadlines is not known in advance. So they are counted twice: in bins of equal length, which
//! double when there are too many, and in bins that grow with their distance. Buckets are runs of one kind
//! of bins.

use std::collections::BTreeMap;

use broker::time::Time;
use broker::{DeadlineSpan, ExpirySlice};

use crate::limits::EXPIRY_BINS_MAX;

/// Messages that expire in a period, relative to now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bucket {
    /// Start of the period, in milliseconds from now.
    pub(crate) from_ms: u64,
    /// Exclusive end of the period, in milliseconds from now.
    pub(crate) to_ms: u64,
    /// Number of messages.
    pub(crate) count: u64,
}

/// Counts of deadlines.
#[derive(Debug)]
pub(crate) struct DeadlineHistogram {
    now: Time,
    /// Messages without a deadline.
    pub(crate) never: u64,
    /// Messages past their deadline.
    pub(crate) overdue: u64,
    /// Messages whose deadline is only known to lie between two others.
    pub(crate) estimated: u64,
    /// The first deadline.
    pub(crate) first: Option<Time>,
    /// Arrival time of the oldest message.
    pub(crate) oldest: Option<Time>,
    /// Future deadlines.
    ahead: u64,
    bin_ms: u64,
    /// Counts in bins of equal length, by number of the bin.
    even: BTreeMap<u64, u64>,
    /// Counts in growing bins, by number of the bin.
    growing: BTreeMap<u64, u64>,
}

impl DeadlineHistogram {
    /// An empty histogram.
    pub(crate) fn new(now: Time) -> Self {
        Self {
            now,
            never: 0,
            overdue: 0,
            estimated: 0,
            first: None,
            oldest: None,
            ahead: 0,
            bin_ms: 1,
            even: BTreeMap::new(),
            growing: BTreeMap::new(),
        }
    }

    /// Number of counted messages.
    pub(crate) fn messages(&self) -> u64 {
        self.never + self.overdue + self.ahead
    }

    /// Adds a slice of messages.
    pub(crate) fn take(&mut self, slice: &ExpirySlice) {
        self.never += slice.never;
        self.oldest = self.oldest.into_iter().chain(slice.oldest).min();
        slice.deadlines.iter().for_each(|at| self.add(*at, 1));
        for span in &slice.spans {
            self.estimated += span.messages;
            self.spread(*span);
        }
    }

    /// Adds messages as if their deadlines were equidistant.
    fn spread(&mut self, DeadlineSpan { messages, first, last }: DeadlineSpan) {
        const PARTS_MAX: u64 = 64;
        let parts = messages.min(PARTS_MAX);
        let length_us = last.micros_since(first);
        for part in 0..parts {
            let until = |part: u64| messages * part / parts;
            // The first part is at the beginning of the span, the last at its end.
            let share = |us: u64| us / parts.saturating_sub(1).max(1) * part;
            let rest = length_us % parts.saturating_sub(1).max(1);
            let at_us = share(length_us) + if part + 1 == parts { rest } else { 0 };
            let at = Time::from_micros(first.as_micros().saturating_add(at_us));
            self.add(at, until(part + 1) - until(part));
        }
    }

    fn add(&mut self, at: Time, count: u64) {
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        if at <= self.now {
            self.overdue += count;
            return;
        }
        self.ahead += count;
        let in_ms = at.micros_since(self.now) / 1000;
        *self.growing.entry(growing_bin(in_ms)).or_default() += count;
        *self.even.entry(in_ms / self.bin_ms).or_default() += count;
        while self.even.len() > EXPIRY_BINS_MAX {
            self.bin_ms *= 2;
            let longer = std::mem::take(&mut self.even);
            for (bin, count) in longer {
                *self.even.entry(bin / 2).or_default() += count;
            }
        }
    }

    /// At most `at_most` buckets from the first to the last future deadline. They have equal lengths, or
    /// growing ones if more than half of the messages would be in the first bucket.
    pub(crate) fn buckets(&self, at_most: usize) -> Vec<Bucket> {
        let at_most = at_most.max(1) as u64;
        let even = grouped(&self.even, at_most, |bin| bin.saturating_mul(self.bin_ms));
        if even.len() > 1 && even.first().is_some_and(|first| first.count * 2 > self.ahead) {
            return grouped(&self.growing, at_most, start_of_growing_bin);
        }
        even
    }
}

/// Joins bins so that there are at most `at_most` buckets.
fn grouped(bins: &BTreeMap<u64, u64>, at_most: u64, start_ms: impl Fn(u64) -> u64) -> Vec<Bucket> {
    let (Some((first, _)), Some((last, _))) = (bins.first_key_value(), bins.last_key_value())
    else {
        return Vec::new();
    };
    let length = (last - first + 1).div_ceil(at_most);
    let number = (last - first) / length + 1;
    let bucket = |number: u64| {
        let (from, to) = (first + number * length, first + (number + 1) * length);
        let count = bins.range(from..to).map(|(_, count)| count).sum();
        Bucket { from_ms: start_ms(from), to_ms: start_ms(to), count }
    };
    (0..number).map(bucket).collect()
}

/// Bins per doubling of the distance.
const BINS_PER_DOUBLING: u64 = 32;

/// The growing bin of a distance: one bin per millisecond at first, then [`BINS_PER_DOUBLING`] per doubling.
fn growing_bin(in_ms: u64) -> u64 {
    let doublings = in_ms.max(1).ilog2().saturating_sub(BINS_PER_DOUBLING.ilog2());
    u64::from(doublings) * BINS_PER_DOUBLING + (in_ms >> doublings)
}

fn start_of_growing_bin(bin: u64) -> u64 {
    let doublings = (bin / BINS_PER_DOUBLING).saturating_sub(1);
    let shift = u32::try_from(doublings).unwrap_or(u32::MAX);
    (bin - doublings * BINS_PER_DOUBLING).checked_shl(shift).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Time = Time::from_millis(1_000_000);

    fn histogram(in_ms: &[u64]) -> DeadlineHistogram {
        let mut histogram = DeadlineHistogram::new(NOW);
        let deadlines = in_ms.iter().map(|ms| NOW.plus_ms(*ms)).collect();
        histogram.take(&ExpirySlice { deadlines, ..ExpirySlice::default() });
        histogram
    }

    fn counts(buckets: &[Bucket]) -> Vec<(u64, u64, u64)> {
        buckets.iter().map(|bucket| (bucket.from_ms, bucket.to_ms, bucket.count)).collect()
    }

    #[test]
    fn buckets_reach_from_the_first_deadline_to_the_last() {
        let buckets = histogram(&[100, 101, 150, 199]).buckets(4);
        assert_eq!(counts(&buckets), [(100, 125, 2), (125, 150, 0), (150, 175, 1), (175, 200, 1)]);
        assert_eq!(counts(&histogram(&[100; 5]).buckets(4)), [(100, 101, 5)]);
        assert_eq!(histogram(&[]).buckets(4), []);
    }

    #[test]
    fn buckets_grow_if_most_deadlines_are_near() {
        let day_ms = 86_400_000;
        let mut in_ms = vec![1_000, 2_000, 4_000, 8_000];
        in_ms.push(day_ms);
        let buckets = histogram(&in_ms).buckets(20);
        let lengths: Vec<u64> =
            buckets.iter().map(|bucket| bucket.to_ms - bucket.from_ms).collect();
        assert!(lengths.is_sorted(), "{buckets:?}");
        assert_eq!(buckets.iter().filter(|bucket| bucket.count > 0).count(), 5, "{buckets:?}");
    }

    #[test]
    fn past_deadlines_are_overdue() {
        let mut histogram = DeadlineHistogram::new(NOW);
        let span = DeadlineSpan { messages: 100, first: NOW.minus_ms(99), last: NOW };
        let deadlines = vec![NOW, NOW.plus_ms(1)];
        let oldest = Some(NOW.minus_ms(500));
        let slice = ExpirySlice { deadlines, spans: vec![span], never: 3, oldest, next: None };
        histogram.take(&slice);
        assert_eq!((histogram.overdue, histogram.never, histogram.estimated), (101, 3, 100));
        assert_eq!(histogram.messages(), 105);
        assert_eq!(histogram.first, Some(NOW.minus_ms(99)));
        assert_eq!(counts(&histogram.buckets(9)), [(1, 2, 1)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..Default::default() })]

        #[test]
        fn buckets_count_every_deadline(
            in_ms in prop::collection::vec(
                prop_oneof![1_u64..50, 1_u64..100_000, 1_u64..400_000_000_000], 0..9000),
            at_most in 1_usize..100,
        ) {
            let histogram = histogram(&in_ms);
            let mut sorted = in_ms;
            sorted.sort_unstable();
            prop_assert!(histogram.even.len() <= EXPIRY_BINS_MAX);
            let growing = grouped(&histogram.growing, at_most as u64, start_of_growing_bin);
            for buckets in [histogram.buckets(at_most), growing] {
                prop_assert!(buckets.len() <= at_most);
                prop_assert!(buckets.windows(2).all(|pair| pair[0].to_ms == pair[1].from_ms));
                for bucket in &buckets {
                    let before = |end: u64| sorted.partition_point(|ms| *ms < end) as u64;
                    let in_it = before(bucket.to_ms) - before(bucket.from_ms);
                    prop_assert_eq!(in_it, bucket.count, "{:?}", bucket);
                }
                let counted: u64 = buckets.iter().map(|bucket| bucket.count).sum();
                prop_assert_eq!(counted, sorted.len() as u64);
            }
        }

        #[test]
        fn span_is_counted_between_its_ends(
            messages in 1_u64..3000,
            first_ms in 1_u64..1_000_000,
            length_ms in 0_u64..1_000_000,
        ) {
            let first = NOW.plus_ms(first_ms);
            let last = first.plus_ms(length_ms);
            let mut histogram = DeadlineHistogram::new(NOW);
            let span = DeadlineSpan { messages, first, last };
            histogram.take(&ExpirySlice { spans: vec![span], ..ExpirySlice::default() });
            let buckets = histogram.buckets(40);
            prop_assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), messages);
            prop_assert_eq!(histogram.first, Some(first));
            let last_bin = *histogram.even.last_key_value().unwrap().0;
            let end_ms = if messages == 1 { first_ms } else { first_ms + length_ms };
            prop_assert_eq!(last_bin, end_ms / histogram.bin_ms);
        }
    }
}

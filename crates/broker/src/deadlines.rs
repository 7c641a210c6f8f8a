//! A priority queue of deadlines, for messages of a queue with an `expiration` of their own and for
//! deliveries on a channel with an acknowledgement timeout.
//!
//! A deadline is appended to a bucket of about a second. When that second is near, its deadlines are
//! distributed to slots of a sixtieth of it, and when a slot is next, it is sorted, so that most deadlines
//! are read in sequence from a short list. Deadlines added for the current slot are in a heap. An object
//! removed before its deadline leaves a stale entry, and an object that returns is listed again; stale and
//! duplicate entries are skipped when due, and removed when they outnumber the live ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::limits::DEADLINE_STALE_MIN;
use crate::time::Time;

/// Width of a bucket: 2^20 microseconds, about a second.
const BUCKET_BITS: u32 = 20;

/// Width of a slot: 2^14 microseconds, about 16 milliseconds.
const SLOT_BITS: u32 = 14;

/// Capacity kept when the structure is empty.
const CAPACITY_KEPT: usize = 1024;

/// Unsorted deadlines by interval.
type ByInterval<K> = BTreeMap<u64, Vec<(Time, K)>>;

/// Deadlines in ascending order; equal ones in the order of their keys.
#[derive(Debug)]
pub(crate) struct Deadlines<K> {
    /// Deadlines of one slot, the earliest last.
    at_hand: Vec<(Time, K)>,
    /// Deadlines before `slot_end` that were added after the slot was sorted.
    late: BinaryHeap<Reverse<(Time, K)>>,
    slot_end: Time,
    /// Deadlines from `slot_end` on and before `horizon`, by slot.
    near: ByInterval<K>,
    horizon: Time,
    /// Deadlines from `horizon` on, by bucket.
    far: ByInterval<K>,
    len: usize,
    stale: usize,
}

/// The number of the interval of 2^`bits` microseconds that contains a deadline.
fn interval(deadline: Time, bits: u32) -> u64 {
    deadline.as_micros() >> bits
}

/// The end of an interval, exclusive; the last interval has no end.
fn end_of(number: u64, bits: u32) -> Time {
    let end = (number + 1).checked_mul(1 << bits);
    end.map_or(Time::MAX, Time::from_micros)
}

impl<K: Ord> Default for Deadlines<K> {
    fn default() -> Self {
        Self {
            at_hand: Vec::new(),
            late: BinaryHeap::new(),
            slot_end: Time::default(),
            near: BTreeMap::new(),
            horizon: Time::default(),
            far: BTreeMap::new(),
            len: 0,
            stale: 0,
        }
    }
}

impl<K: Ord + Copy> Deadlines<K> {
    pub(crate) fn insert(&mut self, deadline: Time, key: K) {
        self.len += 1;
        if self.len == 1 {
            self.at_hand.push((deadline, key));
            self.slot_end = end_of(interval(deadline, SLOT_BITS), SLOT_BITS);
            self.horizon = end_of(interval(deadline, BUCKET_BITS), BUCKET_BITS);
        } else if deadline < self.slot_end {
            self.late.push(Reverse((deadline, key)));
        } else if deadline < self.horizon {
            self.near.entry(interval(deadline, SLOT_BITS)).or_default().push((deadline, key));
        } else {
            self.far.entry(interval(deadline, BUCKET_BITS)).or_default().push((deadline, key));
        }
    }

    /// True if no deadline is listed.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The earliest deadline; its object may be gone.
    pub(crate) fn first(&self) -> Option<(Time, K)> {
        let late = self.late.peek().map(|Reverse(late)| *late);
        self.at_hand.last().copied().into_iter().chain(late).min()
    }

    /// Removes the earliest deadline.
    pub(crate) fn pop(&mut self) -> Option<(Time, K)> {
        let first = self.first()?;
        if self.at_hand.last() == Some(&first) {
            self.at_hand.pop();
        } else {
            self.late.pop();
        }
        self.len -= 1;
        self.bring_near();
        Some(first)
    }

    /// Notes that the entry popped last was stale. The count may be too low: an object that returns is listed
    /// again, and when it is finally gone, two entries are stale but only one was counted.
    pub(crate) fn popped_stale(&mut self) {
        self.stale = self.stale.saturating_sub(1);
    }

    /// Removes the earliest deadline, which is stale.
    pub(crate) fn pop_stale(&mut self) {
        self.pop();
        self.popped_stale();
    }

    /// Notes that a listed object is gone before its deadline; true if the caller should call `retain`.
    #[must_use]
    pub(crate) fn forget_one(&mut self) -> bool {
        self.stale += 1;
        self.stale > DEADLINE_STALE_MIN && 2 * self.stale > self.len
    }

    /// Keeps only the entries for which `is_live` holds, each once.
    pub(crate) fn retain(&mut self, is_live: impl Fn(K) -> bool) {
        let squeeze = |entries: &mut Vec<(Time, K)>| {
            entries.retain(|(_, key)| is_live(*key));
            entries.sort_unstable();
            entries.dedup();
            entries.shrink_to_fit();
        };
        let late = std::mem::take(&mut self.late).into_iter().map(|Reverse(late)| late);
        self.at_hand.extend(late);
        squeeze(&mut self.at_hand);
        self.at_hand.reverse();
        for waiting in [&mut self.near, &mut self.far] {
            waiting.retain(|_, entries| {
                squeeze(entries);
                !entries.is_empty()
            });
        }
        let waiting = self.near.values().chain(self.far.values());
        self.len = self.at_hand.len() + waiting.map(Vec::len).sum::<usize>();
        self.stale = 0;
        self.bring_near();
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Sorts the next slot when the last one is exhausted.
    fn bring_near(&mut self) {
        while self.at_hand.is_empty() && self.late.is_empty() {
            if let Some((slot, mut entries)) = self.near.pop_first() {
                entries.sort_unstable_by(|one, other| other.cmp(one));
                self.at_hand = entries;
                self.slot_end = end_of(slot, SLOT_BITS);
            } else if let Some((bucket, entries)) = self.far.pop_first() {
                self.horizon = end_of(bucket, BUCKET_BITS);
                for (deadline, key) in entries {
                    let slot = interval(deadline, SLOT_BITS);
                    self.near.entry(slot).or_default().push((deadline, key));
                }
            } else {
                if self.at_hand.capacity() > CAPACITY_KEPT {
                    self.at_hand = Vec::new();
                }
                if self.late.capacity() > CAPACITY_KEPT {
                    self.late = BinaryHeap::new();
                }
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pops_in_order_of_deadline_then_arrival(
            steps in prop::collection::vec((0_u8..20, any::<u64>()), 0..300),
            // Within one slot, over several slots, over several buckets.
            span in prop::sample::select(vec![1_000_u64, 100_000, 20_000_000]),
        ) {
            let mut deadlines = Deadlines::default();
            let mut model = std::collections::BTreeSet::new();
            for (seq, (step, drawn)) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        let is_live = |seq: u64| seq % 7 != drawn % 7;
                        deadlines.retain(is_live);
                        model.retain(|(_, seq)| is_live(*seq));
                    }
                    1..=10 => {
                        let entry = (Time::from_micros(drawn % span), seq as u64);
                        deadlines.insert(entry.0, entry.1);
                        model.insert(entry);
                    }
                    _ => prop_assert_eq!(deadlines.pop(), model.pop_first()),
                }
                prop_assert_eq!(deadlines.first(), model.first().copied());
                prop_assert_eq!(deadlines.len, model.len());
            }
        }
    }

    #[test]
    fn stale_entries_are_squeezed_out() {
        let mut deadlines = Deadlines::default();
        let mut rebuilt = false;
        for seq in 0..10_000 {
            deadlines.insert(Time::from_millis(seq * 10), seq);
        }
        for gone in 0..9_000 {
            if deadlines.forget_one() {
                deadlines.retain(|seq| seq > gone);
                rebuilt = true;
            }
        }
        assert!(rebuilt);
        assert!(deadlines.len < 4_000, "{} entries for 1000 messages", deadlines.len);
    }

    #[test]
    fn reinserted_key_is_listed_a_bounded_number_of_times() {
        let mut deadlines = Deadlines::default();
        let deadline = |key: u64| Time::from_millis(1_000_000 + key * 10_000);
        (0..100).for_each(|key| deadlines.insert(deadline(key), key));
        for _ in 0..1000 {
            for gone in 0..100 {
                if deadlines.forget_one() {
                    deadlines.retain(|key| key > gone);
                }
            }
            (0..100).for_each(|key| deadlines.insert(deadline(key), key));
        }
        assert!(deadlines.len < 4_000, "{} entries for 100 messages", deadlines.len);
    }

    #[test]
    fn deadline_at_the_end_of_time_hides_no_nearer_one() {
        let mut deadlines = Deadlines::default();
        deadlines.insert(Time::MAX, 1);
        deadlines.insert(Time::from_millis(5), 2);
        assert_eq!(deadlines.pop(), Some((Time::from_millis(5), 2)));
        assert_eq!(deadlines.pop(), Some((Time::MAX, 1)));
    }
}

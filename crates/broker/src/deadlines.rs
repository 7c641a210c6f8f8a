//! Deadlines in no particular order: of the messages in a queue that have an `expiration` of their
//! own, of the deliveries on a channel that must be settled in time.
//!
//! Near deadlines stand in a heap, far ones in coarse buckets that cost one append each and are turned
//! into the heap when their time comes. What is gone before its deadline leaves its entry behind, and
//! if it comes back it is listed again; stale and doubled entries are skipped when due and squeezed
//! out when there are more of them than live ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::limits::DEADLINE_STALE_MIN;
use crate::time::Time;

/// Width of a bucket: 2^20 microseconds, about a second.
const BUCKET_BITS: u32 = 20;

/// Deadlines in ascending order; equal ones in the order of their keys.
#[derive(Debug)]
pub(crate) struct Deadlines<K> {
    /// Deadlines before `horizon`.
    near: BinaryHeap<Reverse<(Time, K)>>,
    /// Deadlines from `horizon` on, by bucket.
    far: BTreeMap<u64, Vec<(Time, K)>>,
    horizon: Time,
    len: usize,
    stale: usize,
}

/// The first moment after a bucket; the last bucket has no end.
fn end_of(bucket: u64) -> Time {
    let end = (bucket + 1).checked_mul(1 << BUCKET_BITS);
    end.map_or(Time::MAX, Time::from_micros)
}

impl<K: Ord> Default for Deadlines<K> {
    fn default() -> Self {
        Self {
            near: BinaryHeap::new(),
            far: BTreeMap::new(),
            horizon: Time::default(),
            len: 0,
            stale: 0,
        }
    }
}

fn bucket(deadline: Time) -> u64 {
    deadline.as_micros() >> BUCKET_BITS
}

impl<K: Ord + Copy> Deadlines<K> {
    pub(crate) fn insert(&mut self, deadline: Time, key: K) {
        self.len += 1;
        if deadline < self.horizon {
            self.near.push(Reverse((deadline, key)));
        } else {
            self.far.entry(bucket(deadline)).or_default().push((deadline, key));
        }
        self.bring_near();
    }

    /// Whether nothing is listed.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The earliest deadline; perhaps of something that is gone.
    pub(crate) fn first(&self) -> Option<(Time, K)> {
        self.near.peek().map(|Reverse(first)| *first)
    }

    /// Removes the earliest deadline.
    pub(crate) fn pop(&mut self) -> Option<(Time, K)> {
        let Reverse(first) = self.near.pop()?;
        self.len -= 1;
        self.bring_near();
        Some(first)
    }

    /// The entry last popped was stale.
    pub(crate) fn popped_stale(&mut self) {
        self.stale = self.stale.saturating_sub(1);
    }

    /// Something listed is gone before its deadline; true when `retain` is to be called.
    #[must_use]
    pub(crate) fn forget_one(&mut self) -> bool {
        self.stale += 1;
        self.stale > DEADLINE_STALE_MIN && 2 * self.stale > self.len
    }

    /// Keeps only the entries for which `is_live` holds, each once.
    pub(crate) fn retain(&mut self, is_live: impl Fn(K) -> bool) {
        let mut near = std::mem::take(&mut self.near).into_vec();
        near.retain(|Reverse((_, key))| is_live(*key));
        near.sort_unstable();
        near.dedup();
        near.shrink_to_fit();
        self.near = near.into();
        self.far.retain(|_, entries| {
            entries.retain(|(_, key)| is_live(*key));
            entries.sort_unstable();
            entries.dedup();
            entries.shrink_to_fit();
            !entries.is_empty()
        });
        self.len = self.near.len() + self.far.values().map(Vec::len).sum::<usize>();
        self.stale = 0;
        self.bring_near();
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Turns the first bucket into the heap when the heap has run empty.
    fn bring_near(&mut self) {
        if self.near.is_empty()
            && let Some((number, entries)) = self.far.pop_first()
        {
            self.near = entries.into_iter().map(Reverse).collect();
            self.horizon = end_of(number);
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
            steps in prop::collection::vec((any::<bool>(), 0_u64..20_000_000), 0..300),
        ) {
            let mut deadlines = Deadlines::default();
            let mut model = std::collections::BTreeSet::new();
            for (seq, (insert, micros)) in steps.into_iter().enumerate() {
                if insert {
                    let entry = (Time::from_micros(micros), seq as u64);
                    deadlines.insert(entry.0, entry.1);
                    model.insert(entry);
                } else {
                    prop_assert_eq!(deadlines.pop(), model.pop_first());
                }
                prop_assert_eq!(deadlines.first(), model.first().copied());
                prop_assert_eq!(deadlines.len, model.len());
            }
        }
    }

    #[test]
    fn entries_of_messages_that_left_are_squeezed_out() {
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
    fn what_comes_and_goes_is_listed_a_bounded_number_of_times() {
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
    fn a_deadline_at_the_end_of_time_does_not_hide_nearer_ones() {
        let mut deadlines = Deadlines::default();
        deadlines.insert(Time::MAX, 1);
        deadlines.insert(Time::from_millis(5), 2);
        assert_eq!(deadlines.pop(), Some((Time::from_millis(5), 2)));
        assert_eq!(deadlines.pop(), Some((Time::MAX, 1)));
    }
}

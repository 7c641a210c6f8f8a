//! A deque sorted by key that supports removal at any place.
//!
//! Values are pushed at the back and taken from the front. Keys are consecutive numbers with gaps, so a key
//! gives an upper bound of the position of its value: with few gaps the value is found at once, with many by
//! a search that starts there. Removal in the middle leaves a hole. Holes at either end are dropped at once;
//! the others are compacted when there are more holes than values. Every operation is cheap on average, and
//! memory is proportional to the number of values.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::ids::{ConsumerId, DeliveryTag};

/// Holes tolerated before the first compaction.
const HOLES_MIN: usize = 32;

/// Slots of capacity that are never given back.
const CAPACITY_KEPT: usize = 1024;

/// A key with a number; numbers ascend in the order of insertion.
pub(crate) trait Key: Ord + Copy {
    /// The number of the key.
    fn number(self) -> u64;
}

impl Key for u64 {
    fn number(self) -> u64 {
        self
    }
}

impl Key for DeliveryTag {
    fn number(self) -> u64 {
        self.0
    }
}

impl Key for ConsumerId {
    fn number(self) -> u64 {
        self.0
    }
}

/// Values in ascending order of key.
#[derive(Clone, Debug)]
pub(crate) struct SparseDeque<K, V> {
    slots: VecDeque<(K, Option<V>)>,
    live: usize,
}

impl<K, V> Default for SparseDeque<K, V> {
    fn default() -> Self {
        Self { slots: VecDeque::new(), live: 0 }
    }
}

impl<K: Key, V> SparseDeque<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Adds a value at the back; `key` must be larger than every key before it.
    pub(crate) fn push_back(&mut self, key: K, value: V) {
        debug_assert!(self.slots.back().is_none_or(|(last, _)| *last < key), "keys ascend");
        self.slots.push_back((key, Some(value)));
        self.live += 1;
    }

    pub(crate) fn front(&self) -> Option<(K, &V)> {
        self.slots.front().and_then(|(key, value)| Some((*key, value.as_ref()?)))
    }

    /// The last key.
    pub(crate) fn last_key(&self) -> Option<K> {
        self.slots.back().map(|(key, _)| *key)
    }

    pub(crate) fn pop_front(&mut self) -> Option<(K, V)> {
        let (key, value) = self.slots.pop_front()?;
        self.live -= 1;
        self.trim();
        Some((key, value.expect("no hole stands at an end")))
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.slots.get(self.find(key)?)?.1.as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let at = self.find(key)?;
        self.slots.get_mut(at)?.1.as_mut()
    }

    pub(crate) fn contains_key(&self, key: K) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let at = self.find(key)?;
        let value = self.slots.get_mut(at)?.1.take()?;
        self.live -= 1;
        self.trim();
        if self.slots.len() - self.live > self.live + HOLES_MIN {
            self.slots.retain(|(_, value)| value.is_some());
            self.slots.shrink_to(2 * self.live);
        }
        Some(value)
    }

    /// Removes and returns everything after the first `count` values.
    pub(crate) fn split_off(&mut self, count: usize) -> Self {
        let mut kept = 0;
        let at = self.slots.iter().position(|(_, value)| {
            kept += usize::from(value.is_some());
            kept > count
        });
        let slots = self.slots.split_off(at.unwrap_or(self.slots.len()));
        let live = slots.iter().filter(|(_, value)| value.is_some()).count();
        self.live -= live;
        self.trim();
        Self { slots, live }
    }

    /// The values in ascending order of key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.slots.iter().filter_map(|(key, value)| Some((*key, value.as_ref()?)))
    }

    /// The values with keys greater than `key`, in order; `key` itself need not exist.
    pub(crate) fn iter_after(&self, key: K) -> impl Iterator<Item = (K, &V)> {
        let first = self.slots.partition_point(|(other, _)| *other <= key);
        self.slots.range(first..).filter_map(|(key, value)| Some((*key, value.as_ref()?)))
    }

    fn find(&self, key: K) -> Option<usize> {
        let (first, _) = self.slots.front()?;
        let distance = key.number().checked_sub(first.number())?;
        // Every key has its own number: the value is here, or before this place by at most the number of
        // gaps.
        let here = usize::try_from(distance).unwrap_or(usize::MAX).min(self.slots.len() - 1);
        if self.slots.get(here)?.0 == key {
            return Some(here);
        }
        let (mut begin, mut end, mut step) = (here, here + 1, 1);
        while self.slots.get(begin)?.0 > key {
            end = begin;
            begin = begin.saturating_sub(step);
            step *= 2;
        }
        while begin < end {
            let middle = usize::midpoint(begin, end);
            match self.slots.get(middle)?.0.cmp(&key) {
                Ordering::Equal => return Some(middle),
                Ordering::Less => begin = middle + 1,
                Ordering::Greater => end = middle,
            }
        }
        None
    }

    /// Drops holes at both ends, so that the front is always a value.
    fn trim(&mut self) {
        while self.slots.front().is_some_and(|(_, value)| value.is_none()) {
            self.slots.pop_front();
        }
        while self.slots.back().is_some_and(|(_, value)| value.is_none()) {
            self.slots.pop_back();
        }
        let (len, capacity) = (self.slots.len(), self.slots.capacity());
        if capacity > CAPACITY_KEPT && len < capacity / 8 {
            self.slots.shrink_to((2 * len).max(HOLES_MIN));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_sorted_map(
            operations in prop::collection::vec((0_u8..4, 0_usize..50), 0..400),
            gap in 1_u64..20,
        ) {
            let mut ordered = SparseDeque::default();
            let mut model = BTreeMap::new();
            let mut next = 0_u64;
            for (operation, pick) in operations {
                match operation {
                    0 | 1 => {
                        ordered.push_back(next, next * 10);
                        model.insert(next, next * 10);
                        next += 1 + next % gap;
                    }
                    2 => prop_assert_eq!(ordered.pop_front(), model.pop_first()),
                    _ => {
                        let key = model.keys().nth(pick).copied().unwrap_or(next);
                        prop_assert_eq!(ordered.get(key), model.get(&key));
                        prop_assert_eq!(ordered.get(key + 1), model.get(&(key + 1)));
                        prop_assert_eq!(ordered.remove(key), model.remove(&key));
                    }
                }
                prop_assert_eq!(ordered.len(), model.len());
                prop_assert_eq!(ordered.front(), model.iter().next().map(|(k, v)| (*k, v)));
                prop_assert!(ordered.slots.len() <= 2 * model.len() + HOLES_MIN + 1);
            }
            for key in (0..next + 2).step_by(7) {
                let behind: Vec<_> = ordered.iter_after(key).map(|(k, v)| (k, *v)).collect();
                let expected = model.range(key + 1..).map(|(k, v)| (*k, *v));
                prop_assert_eq!(behind, expected.collect::<Vec<_>>());
            }
            let all: Vec<_> = ordered.iter().map(|(k, v)| (k, *v)).collect();
            prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn split_off_cuts_between_values() {
        for holes in 0..6_u64 {
            let mut front = SparseDeque::default();
            (0..10_u64).for_each(|key| front.push_back(key, key));
            (3..3 + holes).for_each(|key| assert_eq!(front.remove(key), Some(key)));
            let back = front.split_off(3);
            let keys = |part: &SparseDeque<u64, u64>| part.iter().map(|(key, _)| key).collect();
            let (first, second): (Vec<u64>, Vec<u64>) = (keys(&front), keys(&back));
            assert_eq!((front.len(), back.len()), (first.len(), second.len()));
            assert_eq!(first, [0, 1, 2]);
            assert_eq!(second, (3 + holes..10).collect::<Vec<_>>());
            assert_eq!(back.front().map(|(key, _)| key), second.first().copied());
        }
    }

    #[test]
    fn capacity_shrinks_with_the_number_of_values() {
        let mut ordered = SparseDeque::default();
        (0..100_000_u64).for_each(|key| ordered.push_back(key, key));
        for left in (0..100_000_usize).rev() {
            ordered.pop_front();
            assert!(ordered.slots.capacity() <= CAPACITY_KEPT.max(8 * left + 8), "{left} left");
        }
    }
}

//! The deadlines of the messages in a queue that have an `expiration` of their own.
//!
//! A TTL that all messages of a queue share needs no index: the oldest message has the earliest
//! deadline. Only messages with their own expiration are listed here, by the deadline that it gives
//! them. Near deadlines stand in a heap, far ones in coarse buckets that cost one append each and are
//! turned into the heap when their time comes. A message that leaves otherwise leaves its entry
//! behind; stale entries are skipped when due and squeezed out when there are more of them than live
//! ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::ids::EntryId;
use crate::limits::DEADLINE_STALE_MIN;
use crate::time::Time;

/// Width of a bucket: 2^20 microseconds, about a second.
const BUCKET_BITS: u32 = 20;

/// Deadlines in ascending order; equal ones in order of arrival.
#[derive(Default, Debug)]
pub(crate) struct Deadlines {
    /// Deadlines before `horizon`.
    near: BinaryHeap<Reverse<(Time, EntryId)>>,
    /// Deadlines from `horizon` on, by bucket.
    far: BTreeMap<u64, Vec<(Time, EntryId)>>,
    horizon: Time,
    len: usize,
    stale: usize,
}

fn bucket(deadline: Time) -> u64 {
    deadline.as_micros() >> BUCKET_BITS
}

impl Deadlines {
    pub(crate) fn insert(&mut self, deadline: Time, id: EntryId) {
        self.len += 1;
        if deadline < self.horizon {
            self.near.push(Reverse((deadline, id)));
        } else {
            self.far.entry(bucket(deadline)).or_default().push((deadline, id));
        }
        self.bring_near();
    }

    /// The earliest deadline; perhaps of a message that is gone.
    pub(crate) fn first(&self) -> Option<(Time, EntryId)> {
        self.near.peek().map(|Reverse(first)| *first)
    }

    /// Removes the earliest deadline.
    pub(crate) fn pop(&mut self) -> Option<(Time, EntryId)> {
        let Reverse(first) = self.near.pop()?;
        self.len -= 1;
        self.bring_near();
        Some(first)
    }

    /// The entry last popped was stale.
    pub(crate) fn popped_stale(&mut self) {
        self.stale = self.stale.saturating_sub(1);
    }

    /// A listed message left the queue otherwise; true when the index should be rebuilt.
    #[must_use]
    pub(crate) fn forget_one(&mut self) -> bool {
        self.stale += 1;
        self.stale > DEADLINE_STALE_MIN && 2 * self.stale > self.len
    }

    /// Keeps only the entries for which `is_live` holds.
    pub(crate) fn retain(&mut self, is_live: impl Fn(EntryId) -> bool) {
        self.near.retain(|Reverse((_, id))| is_live(*id));
        self.far.retain(|_, entries| {
            entries.retain(|(_, id)| is_live(*id));
            entries.shrink_to_fit();
            !entries.is_empty()
        });
        self.near.shrink_to_fit();
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
            self.horizon = Time::from_micros((number + 1) << BUCKET_BITS);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(seq: u64) -> EntryId {
        EntryId { seq, level: 0 }
    }

    proptest! {
        #[test]
        fn pops_in_order_of_deadline_then_arrival(
            steps in prop::collection::vec((any::<bool>(), 0_u64..20_000_000), 0..300),
        ) {
            let mut deadlines = Deadlines::default();
            let mut model = std::collections::BTreeSet::new();
            for (seq, (insert, micros)) in steps.into_iter().enumerate() {
                if insert {
                    let entry = (Time::from_micros(micros), id(seq as u64));
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
            deadlines.insert(Time::from_millis(seq * 10), id(seq));
        }
        for gone in 0..9_000 {
            if deadlines.forget_one() {
                deadlines.retain(|id| id.seq > gone);
                rebuilt = true;
            }
        }
        assert!(rebuilt);
        assert!(deadlines.len < 4_000, "{} entries for 1000 messages", deadlines.len);
    }
}

//! Check of dead letters: missing or duplicate ones, and their time after the deadline.

use std::sync::Mutex;
use std::sync::PoisonError;

use hdrhistogram::Histogram;

use crate::message_template::Stamp;
use crate::metrics::{Counters, count, record};

/// Check of the messages that expire, by their numbers.
#[derive(Debug)]
pub(crate) struct DeadLetterCheck {
    /// TTL of the queue, for messages without their own.
    queue_ttl_ms: u32,
    /// A bit for each message that has come; one producer numbers them.
    seen: Mutex<Vec<u64>>,
}

impl DeadLetterCheck {
    /// A check for at most `messages` messages.
    pub(crate) fn new(messages: u64, queue_ttl_ms: u32) -> Self {
        let words = usize::try_from(messages.div_ceil(64)).unwrap_or(usize::MAX);
        Self { queue_ttl_ms, seen: Mutex::new(vec![0; words]) }
    }

    /// Records a dead letter that came at `now_ns`.
    pub(crate) fn note(
        &self,
        stamp: &Stamp,
        now_ns: u64,
        lateness: &mut Histogram<u64>,
        counters: &Counters,
    ) {
        let ttl_ms = if stamp.ttl_ms == 0 { self.queue_ttl_ms } else { stamp.ttl_ms };
        let due_ns = stamp.sent_ns.saturating_add(u64::from(ttl_ms) * 1_000_000);
        match now_ns.checked_sub(due_ns) {
            Some(late_ns) => record(lateness, late_ns),
            None => count(&counters.early, 1),
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let word = usize::try_from(stamp.number / 64).ok().and_then(|word| seen.get_mut(word));
        let bit = 1 << (stamp.number % 64);
        match word {
            Some(word) if *word & bit == 0 => *word |= bit,
            _ => count(&counters.doubled, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::histogram;

    #[test]
    fn dead_letters_are_counted_as_early_late_or_duplicate() {
        let (check, counters) = (DeadLetterCheck::new(10, 5), Counters::default());
        let mut lateness = histogram();
        let stamp = |number, ttl_ms| Stamp { sent_ns: 1_000_000, ttl_ms, number };
        check.note(&stamp(0, 3), 4_500_000, &mut lateness, &counters);
        check.note(&stamp(1, 3), 3_999_999, &mut lateness, &counters);
        check.note(&stamp(9, 0), 6_000_000, &mut lateness, &counters);
        check.note(&stamp(9, 0), 7_000_000, &mut lateness, &counters);
        let counts = counters.read();
        assert_eq!((counts.early, counts.doubled), (1, 1));
        assert_eq!((lateness.len(), lateness.min()), (3, 1));
    }
}

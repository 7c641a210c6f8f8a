//! Whose turn it is: those who always have more to say take turns, so that the others find the workers
//! free.
//!
//! A turn is one read and what follows from it. How much is read follows from how long the last turn
//! took, because a command may cost a tenth of a microsecond or a hundred. Who has sent more than was
//! read lines up behind the others of his kind before he is read again, and there are never more of
//! them at work than there are workers. Between two of them a worker does all else that is ready.

use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::yield_now;

use crate::limits::{READ_BYTES, READ_BYTES_MIN, TURN};

/// Where those line up who have sent more than was read.
#[derive(Debug)]
pub(crate) struct ReadPermits(Semaphore);

impl ReadPermits {
    /// So many of them may be at work at once.
    pub(crate) fn new(workers: usize) -> Self {
        Self(Semaphore::new(workers))
    }

    /// Waits until it is one's turn, which it is until what is returned is dropped, and lets others of
    /// the same worker go first.
    pub(crate) async fn wait(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        let permit = self.0.acquire().await.ok();
        yield_now().await;
        permit
    }
}

/// What one connection does with its turns.
#[derive(Debug)]
pub(crate) struct ReadBudget {
    read_bytes: usize,
    is_busy: bool,
}

impl Default for ReadBudget {
    fn default() -> Self {
        Self { read_bytes: READ_BYTES_MIN, is_busy: false }
    }
}

impl ReadBudget {
    /// Bytes that may be read in the next turn.
    pub(crate) fn read_bytes(&self) -> usize {
        self.read_bytes
    }

    /// Whether there was more to read than that.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// A turn that began then is over, with all that follows from what was read; `is_busy` if there was
    /// more to read.
    pub(crate) fn turn_ended(&mut self, is_busy: bool, began: Instant) {
        self.learn(is_busy, began.elapsed());
    }

    fn learn(&mut self, is_busy: bool, took: Duration) {
        self.is_busy = is_busy;
        if took > TURN {
            self.read_bytes = READ_BYTES_MIN.max(self.read_bytes / 2);
        } else if is_busy && took < TURN / 2 {
            self.read_bytes = READ_BYTES.min(self.read_bytes * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_read_as_fits_into_a_turn() {
        let mut read_budget = ReadBudget::default();
        // A microsecond for each 256 bytes.
        let takes = |count: usize| Duration::from_micros(count as u64 / 256);
        for _ in 0..20 {
            let count = read_budget.read_bytes();
            read_budget.learn(true, takes(count));
            assert!(read_budget.is_busy());
        }
        let fits = takes(read_budget.read_bytes());
        assert!(TURN / 2 <= fits && fits <= TURN, "{fits:?}");
        // Then they become dear.
        for _ in 0..20 {
            read_budget.learn(true, TURN * 10);
        }
        assert_eq!(read_budget.read_bytes(), READ_BYTES_MIN);
        // And cost nothing.
        for _ in 0..20 {
            read_budget.learn(true, Duration::ZERO);
        }
        assert_eq!(read_budget.read_bytes(), READ_BYTES);
    }

    #[test]
    fn who_has_nothing_left_to_read_is_not_busy() {
        let mut read_budget = ReadBudget::default();
        assert!(!read_budget.is_busy());
        read_budget.learn(true, Duration::ZERO);
        assert!(read_budget.is_busy());
        read_budget.learn(false, Duration::ZERO);
        assert!(!read_budget.is_busy());
        assert_eq!(
            read_budget.read_bytes(),
            2 * READ_BYTES_MIN,
            "little to read says nothing of its cost"
        );
    }

    #[tokio::test]
    async fn nobody_is_let_in_before_another_has_had_his_turn() {
        let turns = ReadPermits::new(1);
        let first = turns.wait().await;
        let waits = turns.wait();
        tokio::pin!(waits);
        for _ in 0..3 {
            let now = std::future::ready(());
            tokio::select! {
                biased;
                _ = &mut waits => panic!("two at once"),
                () = now => {}
            }
        }
        drop(first);
        assert!(waits.await.is_some());
    }
}

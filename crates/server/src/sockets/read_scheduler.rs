//! Scheduling of reads: connections that always have more input take turns, so that other connections find
//! free workers.
//!
//! A turn is one read with the processing of its bytes. The size of a read follows from the duration of the
//! last turn, because a command may cost a tenth of a microsecond or a hundred. A connection with more input
//! than one read takes queues behind others of its kind before it is read again, and no more of them are
//! processed at once than there are workers. Between two turns a worker runs every other ready task.

use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::yield_now;

use crate::limits::{READ_BYTES, READ_BYTES_MIN, TURN};

/// Permits to read, for connections with more input than one read takes.
#[derive(Debug)]
pub(crate) struct ReadPermits(Semaphore);

impl ReadPermits {
    /// Creates permits for as many concurrent turns as there are workers.
    pub(crate) fn new(workers: usize) -> Self {
        Self(Semaphore::new(workers))
    }

    /// Acquires a permit, and lets other tasks of the same worker run first. Dropping the permit ends the
    /// turn.
    pub(crate) async fn acquire(&self) -> SemaphorePermit<'_> {
        let permit = self.0.acquire().await.expect("the semaphore is never closed");
        yield_now().await;
        permit
    }
}

/// The number of bytes that one connection may read per turn.
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
    /// Bytes to read in the next turn.
    pub(crate) fn read_bytes(&self) -> usize {
        self.read_bytes
    }

    /// True if the socket had more input than the last turn read.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Ends a turn that began at `began`, including the processing; `is_busy` if the socket had more input.
    pub(crate) fn read_ended(&mut self, is_busy: bool, began: Instant) {
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
    fn read_budget_fits_into_a_turn() {
        let mut read_budget = ReadBudget::default();
        // One microsecond per 256 bytes.
        let takes = |count: usize| Duration::from_micros(count as u64 / 256);
        for _ in 0..20 {
            let count = read_budget.read_bytes();
            read_budget.learn(true, takes(count));
            assert!(read_budget.is_busy());
        }
        let fits = takes(read_budget.read_bytes());
        assert!(TURN / 2 <= fits && fits <= TURN, "{fits:?}");
        // Processing becomes expensive.
        for _ in 0..20 {
            read_budget.learn(true, TURN * 10);
        }
        assert_eq!(read_budget.read_bytes(), READ_BYTES_MIN);
        // Processing becomes free.
        for _ in 0..20 {
            read_budget.learn(true, Duration::ZERO);
        }
        assert_eq!(read_budget.read_bytes(), READ_BYTES);
    }

    #[test]
    fn read_budget_is_idle_when_the_socket_is_drained() {
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
    async fn read_permits_are_given_one_after_another() {
        let permits = ReadPermits::new(1);
        let first = permits.acquire().await;
        let waits = permits.acquire();
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
        drop(waits.await);
    }
}

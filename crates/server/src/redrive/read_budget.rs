//! The rate of a redrive job.

use tokio::time::{Duration, Instant, sleep_until};

use crate::limits::{BROWSED_PER_LOCK, REDRIVEN_PER_LOCK};

/// The budget for the rate of a job.
pub(super) struct ReadBudget {
    /// Upper bound per second; none for unlimited.
    rate: Option<u32>,
    /// The earliest time of the next message.
    next: Instant,
}

impl ReadBudget {
    pub(super) fn new(rate: Option<u32>) -> Self {
        Self { rate, next: Instant::now() }
    }

    /// The number of messages to browse per lock: those of one second.
    pub(super) fn looks(&self) -> usize {
        self.per_second().map_or(BROWSED_PER_LOCK, |rate| rate.clamp(1, BROWSED_PER_LOCK))
    }

    /// The number of messages to move per lock: ten slices per second.
    pub(super) fn slice(&self) -> usize {
        self.per_second().map_or(REDRIVEN_PER_LOCK, |rate| (rate / 10).clamp(1, REDRIVEN_PER_LOCK))
    }

    fn per_second(&self) -> Option<usize> {
        self.rate.map(|rate| usize::try_from(rate).unwrap_or(usize::MAX))
    }

    /// Waits until more messages may be moved, and lets other tasks run.
    pub(super) async fn turn(&self) {
        match self.rate {
            Some(_) => sleep_until(self.next).await,
            None => tokio::task::yield_now().await,
        }
    }

    /// Counts moved messages. Unused time is not carried over.
    pub(super) fn moved(&mut self, count: u64) {
        if let Some(rate) = self.rate {
            let micros = count.saturating_mul(1_000_000) / u64::from(rate.max(1));
            self.next = self.next.max(Instant::now()) + Duration::from_micros(micros);
        }
    }
}

//! Durations of writes to the logs: the slowest of the last minutes, and the one that is running.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::clock::own_time::RunTime;
use crate::limits::WRITE_TIMES_WINDOW;

/// Durations of writes, readable by other threads.
#[derive(Default, Debug)]
pub(crate) struct WriteTimes(Mutex<Times>);

#[derive(Default, Debug)]
struct Times {
    /// Start of the running write, by the time that this process has run.
    began: Option<RunTime>,
    /// Start of the current window; none before the first write.
    window_began: Option<Instant>,
    slowest: Duration,
    /// The slowest write of the window before.
    slowest_before: Duration,
}

impl Times {
    /// Starts another window when the current one is over.
    fn turn(&mut self, now: Instant) {
        let began = *self.window_began.get_or_insert(now);
        let windows = now.saturating_duration_since(began).as_secs() / WRITE_TIMES_WINDOW.as_secs();
        if windows > 0 {
            let last = std::mem::take(&mut self.slowest);
            self.slowest_before = if windows == 1 { last } else { Duration::ZERO };
            self.window_began = Some(now);
        }
    }
}

impl WriteTimes {
    /// Notes that a write begins.
    pub(crate) fn begin(&self, now: RunTime) {
        self.0.lock().began = Some(now);
    }

    /// Notes that a write has ended, which took this long.
    pub(crate) fn end(&self, now: Instant, took: Duration) {
        let mut times = self.0.lock();
        times.began = None;
        times.turn(now);
        times.slowest = times.slowest.max(took);
    }

    /// The slowest write of the current window and the window before.
    pub(crate) fn slowest(&self, now: Instant) -> Duration {
        let mut times = self.0.lock();
        times.turn(now);
        times.slowest.max(times.slowest_before)
    }

    /// Duration of the running write so far; zero if none is running.
    pub(crate) fn running(&self, now: RunTime) -> Duration {
        let began = self.0.lock().began;
        began.map(|began| now.since(began)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::own_time;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn slowest_write_is_forgotten_after_two_windows() {
        let (times, start) = (WriteTimes::default(), Instant::now());
        assert_eq!(times.slowest(start), Duration::ZERO);
        times.end(start, 900 * MS);
        times.end(start, 5 * MS);
        assert_eq!(times.slowest(start), 900 * MS);
        times.end(start + WRITE_TIMES_WINDOW, 7 * MS);
        assert_eq!(times.slowest(start + WRITE_TIMES_WINDOW), 900 * MS);
        assert_eq!(times.slowest(start + 2 * WRITE_TIMES_WINDOW), 7 * MS);
        assert_eq!(times.slowest(start + 5 * WRITE_TIMES_WINDOW), Duration::ZERO);
    }

    #[test]
    fn running_write_has_a_duration() {
        let times = WriteTimes::default();
        let began = own_time::now();
        assert_eq!(times.running(began), Duration::ZERO);
        times.begin(began);
        let running = loop {
            let now = own_time::now();
            if now > began {
                break (times.running(now), now.since(began));
            }
        };
        assert_eq!(running.0, running.1);
        times.end(Instant::now(), 40 * MS);
        assert_eq!(times.running(own_time::now()), Duration::ZERO);
    }
}

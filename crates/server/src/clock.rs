//! The only clock of the broker.
//!
//! The broker's time axis starts at the reading of the wall clock and then advances with the monotonic clock:
//! a step of the wall clock, in either direction, neither expires a message early nor keeps one alive.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use broker::time::{Now, Time};

/// Reads the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    anchor: Instant,
    anchor_us: u64,
}

impl Clock {
    /// Anchors the broker's time axis to the wall clock.
    pub(crate) fn start() -> Self {
        Self { anchor: Instant::now(), anchor_us: wall_us() }
    }

    /// Reads both clocks.
    pub(crate) fn now(&self) -> Now {
        Now { time: self.time(), wall_ms: wall_us() / 1000 }
    }

    /// The time on the broker's axis.
    pub(crate) fn time(&self) -> Time {
        let elapsed = u64::try_from(self.anchor.elapsed().as_micros()).unwrap_or(u64::MAX);
        Time::from_micros(self.anchor_us.saturating_add(elapsed))
    }

    /// The duration until `time`; zero if it has passed.
    pub(crate) fn until(&self, time: Time) -> Duration {
        Duration::from_micros(time.micros_since(self.time()))
    }
}

fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

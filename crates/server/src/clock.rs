//! The only clock of the broker.
//!
//! The broker's time axis starts at the reading of the wall clock and then advances with the monotonic clock:
//! a step of the wall clock, in either direction, neither expires a message early nor keeps one alive.

use std::sync::atomic::{AtomicI64, Ordering};
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
        // In this order: a pause between the two readings makes the axis late, never early.
        let anchor_us = wall_us();
        Self { anchor: Instant::now(), anchor_us }
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

/// The time axis of a vhost: that of the node, shifted if the vhost is replicated.
///
/// The members of a cluster have different clocks. A vhost has one axis all the same: a new leader continues the axis of
/// the one before, by a shift of its own clock that stays the same as long as it leads.
#[derive(Debug)]
pub(crate) struct VhostClock {
    node: Clock,
    /// Microseconds from the axis of the node to that of the vhost; 0 without a cluster.
    shift_us: AtomicI64,
}

impl VhostClock {
    /// A clock that agrees with that of the node.
    pub(crate) fn new(node: Clock) -> Self {
        Self { node, shift_us: AtomicI64::new(0) }
    }

    /// Sets the shift from the axis of the node to that of the vhost, in microseconds.
    pub(crate) fn shift(&self, shift_us: i64) {
        self.shift_us.store(shift_us, Ordering::Release);
    }

    /// Reads both clocks; the time is on the axis of the vhost.
    pub(crate) fn now(&self) -> Now {
        let Now { time, wall_ms } = self.node.now();
        Now { time: self.of_vhost(time), wall_ms }
    }

    /// The time on the axis of the vhost.
    pub(crate) fn time(&self) -> Time {
        self.of_vhost(self.node.time())
    }

    fn of_vhost(&self, time: Time) -> Time {
        let shift_us = self.shift_us.load(Ordering::Acquire);
        Time::from_micros(time.as_micros().saturating_add_signed(shift_us))
    }

    /// A time on the axis of the vhost as one on the axis of the node.
    pub(crate) fn of_node(&self, time: Time) -> Time {
        let shift_us = self.shift_us.load(Ordering::Acquire);
        match shift_us.checked_neg() {
            Some(back_us) if time != Time::MAX => {
                Time::from_micros(time.as_micros().saturating_add_signed(back_us))
            }
            _ => time,
        }
    }
}

fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

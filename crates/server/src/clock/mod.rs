//! The only clock of the broker.
//!
//! The broker's time axis starts at the reading of the wall clock and then advances with the monotonic clock:
//! a step of the wall clock, in either direction, neither expires a message early nor keeps one alive.

pub(crate) mod own_time;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use broker::time::{Now, Time};

use crate::limits::{CLOCKS_AGREE_US, DISTANCE_READINGS};

/// Reads the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    anchor: Instant,
    anchor_us: u64,
    /// For the life of the process.
    distance: &'static Distance,
}

/// The distance of the broker's time to the wall clock.
///
/// Two readings of two clocks are never at one moment, so that the distance between them differs with each. It is the same
/// one as long as the readings agree with it: a moment that the wall clock names is then one time, however often it is named.
#[derive(Debug)]
struct Distance(AtomicI64);

impl Distance {
    const UNKNOWN: i64 = i64::MIN;

    fn unknown() -> Self {
        Self(AtomicI64::new(Self::UNKNOWN))
    }

    /// The distance, given the one of a reading, in microseconds by which the broker's time is ahead. `read` reads again.
    fn of(&self, read_us: i64, read: impl FnMut() -> i64) -> i64 {
        let known_us = self.0.load(Ordering::Relaxed);
        let agrees = |read_us: i64| {
            known_us != Self::UNKNOWN && read_us.abs_diff(known_us) <= CLOCKS_AGREE_US
        };
        if agrees(read_us) {
            return known_us;
        }
        // The wall clock was set or corrected, or the reading was interrupted between the wall clock and the time. An
        // interruption makes the distance too large, and what is stored as a time of the wall clock too early: of several
        // readings, the least is right.
        let read_us = std::iter::repeat_with(read).take(DISTANCE_READINGS).fold(read_us, i64::min);
        if agrees(read_us) {
            return known_us;
        }
        // Another thread may find another distance at the same time; either is right.
        self.0.store(read_us, Ordering::Relaxed);
        read_us
    }
}

impl Clock {
    /// Anchors the broker's time axis to the wall clock.
    pub(crate) fn start() -> Self {
        let (anchor_us, anchor) = wall_first(wall_us, Instant::now);
        Self { anchor, anchor_us, distance: Box::leak(Box::new(Distance::unknown())) }
    }

    /// Reads both clocks.
    pub(crate) fn now(&self) -> Now {
        let signed = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
        let read = || {
            let (wall_us, time) = wall_first(wall_us, || self.time());
            (signed(time.as_micros()).saturating_sub(signed(wall_us)), time)
        };
        let (read_us, time) = read();
        let ahead_us = self.distance.of(read_us, || read().0);
        Now { time, wall_us: time.as_micros().saturating_add_signed(ahead_us.saturating_neg()) }
    }

    /// Reads the wall clock in microseconds, then the time, then the wall clock again.
    pub(crate) fn bounded(&self) -> (u64, Time, u64) {
        let (wall_us, time) = wall_first(wall_us, || self.time());
        (wall_us, time, self::wall_us())
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
        let Now { time, wall_us } = self.node.now();
        Now { time: self.of_vhost(time), wall_us }
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

/// Reads the wall clock, then another clock. A pause between the two readings makes moments that the wall clock names,
/// and an axis that begins at this reading, late by the pause; in the other order they would be early.
fn wall_first<T>(wall_us: impl FnOnce() -> u64, other: impl FnOnce() -> T) -> (u64, T) {
    let wall_us = wall_us();
    (wall_us, other())
}

fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn distance_is_the_same_until_the_clocks_disagree() {
        let distance = Distance::unknown();
        let read: Vec<i64> =
            [500, 503, 499, 1_500, 1_501, 502].map(|us| distance.of(us, || us)).to_vec();
        assert_eq!(read, [500, 500, 500, 500, 1_501, 1_501]);
        assert_eq!(distance.of(-3_600_000_000, || -3_600_000_000), -3_600_000_000);
    }

    #[test]
    fn distance_is_that_of_a_reading_without_an_interruption() {
        let distance = Distance::unknown();
        let mut interruptions_us = [0, 700, 3, 29].into_iter().cycle();
        let mut read = || 500 + interruptions_us.next().expect("a cycle has no end");
        assert_eq!(distance.of(529, &mut read), 500, "the first one was interrupted");
        assert_eq!(distance.of(40_000, &mut read), 500, "the clocks agree all the same");
        assert_eq!(distance.of(40_029, || 40_002), 40_002, "the wall clock was set");
    }

    #[test]
    fn pause_between_the_readings_makes_late() {
        let real_us = Cell::new(1_000);
        let read = || {
            let now_us = real_us.get();
            real_us.set(now_us + 5_000);
            now_us
        };
        let (wall_us, other_us) = wall_first(read, read);
        // The moment that the wall clock calls 20,000, on the other clock.
        let moment_us = other_us + (20_000 - wall_us);
        assert_eq!(moment_us, 25_000);
    }
}

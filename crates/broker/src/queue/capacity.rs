//! The consumer capacity of a queue: the share of the recent past in which a consumer could have taken a
//! message.

use crate::time::Time;

/// The weight of the past, in microseconds: a state that lasts this long counts as much as everything before.
const MEMORY_US: u64 = 5_000_000;

/// The longest time for which a state counts, in microseconds; longer ones make no difference.
const STATE_US_MAX: u64 = 1 << 33;

/// The whole time, in parts per billion: finer than the answers, because a mean is rounded at each change.
const WHOLE_PPB: u64 = 1_000_000_000;

/// A mean over the recent past. It falls from the moment at which a message finds no consumer with room until a
/// consumer has room again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    /// The time up to which `mean_ppb` counts.
    counted_until: Time,
    mean_ppb: u64,
    /// True if a message found no consumer with room, and none has had room since.
    is_exhausted: bool,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { counted_until: Time::default(), mean_ppb: WHOLE_PPB, is_exhausted: false }
    }
}

impl Capacity {
    /// Starts again, because the first consumer has come.
    pub(crate) fn reset(&mut self, now: Time) {
        *self = Self { counted_until: now, ..Self::default() };
    }

    /// Notes that a message found no consumer with room.
    pub(crate) fn exhausted(&mut self, now: Time) {
        if !self.is_exhausted {
            self.count_until(now);
            self.is_exhausted = true;
        }
    }

    /// Notes that a consumer may have room again.
    pub(crate) fn freed(&mut self, now: Time) {
        if self.is_exhausted {
            self.count_until(now);
            self.is_exhausted = false;
        }
    }

    /// The mean at `now`, in parts per million.
    pub(crate) fn ppm(&self, now: Time) -> u64 {
        self.mean_ppb_at(now) / 1000
    }

    fn mean_ppb_at(&self, now: Time) -> u64 {
        let state_ppb = if self.is_exhausted { 0 } else { WHOLE_PPB };
        let elapsed_us = now.micros_since(self.counted_until).min(STATE_US_MAX);
        (self.mean_ppb * MEMORY_US + state_ppb * elapsed_us) / (MEMORY_US + elapsed_us)
    }

    fn count_until(&mut self, now: Time) {
        // The events of a batch have the same time.
        if now > self.counted_until {
            self.mean_ppb = self.mean_ppb_at(now);
            self.counted_until = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(capacity: &Capacity, at_ms: u64) -> u64 {
        (capacity.ppm(Time::from_millis(at_ms)) + 5000) / 10_000
    }

    #[test]
    fn capacity_falls_while_consumers_are_at_their_limit() {
        let mut capacity = Capacity::default();
        capacity.reset(Time::from_millis(1000));
        assert_eq!(percent(&capacity, 60_000), 100);
        capacity.exhausted(Time::from_millis(60_000));
        assert_eq!([60_000, 65_000, 75_000].map(|at| percent(&capacity, at)), [100, 50, 25]);
        capacity.exhausted(Time::from_millis(62_000));
        capacity.freed(Time::from_millis(65_000));
        assert_eq!([65_000, 70_000, 200_000].map(|at| percent(&capacity, at)), [50, 75, 98]);
        assert_eq!(capacity.ppm(Time::MAX) / 10_000, 99);
    }

    #[test]
    fn events_of_a_batch_change_nothing() {
        let mut capacity = Capacity::default();
        let now = Time::from_millis(5000);
        capacity.reset(Time::from_millis(1000));
        for _ in 0..100 {
            capacity.exhausted(now);
            capacity.freed(now);
        }
        assert_eq!(percent(&capacity, 5000), 100);
    }
}

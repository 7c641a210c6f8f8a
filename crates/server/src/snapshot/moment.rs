//! Moments as they are shown: on the wall clock, which may be ahead of or behind the broker's axis of time.

use broker::time::{Now, Time};

/// A time on the wall clock, in milliseconds of the epoch. Future times are rounded up.
pub fn wall_ms(now: Now, at: Time) -> u64 {
    now.wall_ms_at(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_ms_rounds_future_times_up() {
        let now = Now { time: Time::from_millis(5_000), wall_us: 1_000_000_000 };
        assert_eq!(wall_ms(now, Time::from_millis(4_000)), 999_000);
        // A deadline is rounded up, so that it is never shown too early.
        assert_eq!(wall_ms(now, Time::from_micros(6_000_001)), 1_001_001);
    }
}

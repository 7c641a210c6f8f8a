//! The distance of a peer's clocks, from its pings.

use std::collections::VecDeque;

use crate::limits::{CLOCK_SKEW_PINGS, CLOCKS_DIFFER_MS};

/// The distance of a peer's wall clock within the last pings.
///
/// A ping arrives later than it was sent: `peer - own` is too small by its way, and the largest of several is the
/// nearest.
#[derive(Default, Debug)]
pub(crate) struct ClockSkew {
    /// The differences of the last pings, in milliseconds, the oldest first.
    differences_ms: VecDeque<i64>,
    is_warned: bool,
}

impl ClockSkew {
    /// Notes a ping. Returns the distance in milliseconds: positive if the peer's clock is ahead.
    pub(crate) fn note(&mut self, peer_wall_ms: u64, own_wall_ms: u64) -> i64 {
        let difference = i128::from(peer_wall_ms) - i128::from(own_wall_ms);
        // A clock that far away is as wrong as the largest number tells.
        let difference = difference.clamp(i64::MIN.into(), i64::MAX.into());
        if self.differences_ms.len() == CLOCK_SKEW_PINGS {
            self.differences_ms.pop_front();
        }
        self.differences_ms.push_back(i64::try_from(difference).expect("it is clamped"));
        self.ms().expect("there is a ping")
    }

    /// The distance in milliseconds; none before the first ping.
    pub(crate) fn ms(&self) -> Option<i64> {
        self.differences_ms.iter().copied().max()
    }

    /// True if the distance is large, once until it is small again. Only a full window counts.
    pub(crate) fn is_newly_large(&mut self) -> bool {
        if self.differences_ms.len() < CLOCK_SKEW_PINGS {
            return false;
        }
        let is_large = self.ms().is_some_and(|ms| ms.unsigned_abs() > CLOCKS_DIFFER_MS);
        let was_warned = std::mem::replace(&mut self.is_warned, is_large);
        is_large && !was_warned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_do_not_look_like_skew() {
        let mut skew = ClockSkew::default();
        for n in 0..200_u64 {
            // Every other ping is a second late.
            let late = if n % 2 == 0 { 1000 } else { 1 };
            skew.note(1_000_000 + 100 * n, 1_000_000 + 100 * n + late);
            assert!(!skew.is_newly_large());
        }
        assert_eq!(skew.ms(), Some(-1));
    }

    #[test]
    fn large_skew_is_told_once() {
        let mut skew = ClockSkew::default();
        let mut told = 0;
        for n in 0..500_u64 {
            let ahead = if (100..300).contains(&n) { 60_000 } else { 0 };
            skew.note(1_000_000 + ahead, 1_000_000);
            told += u32::from(skew.is_newly_large());
        }
        assert_eq!(told, 1);
        assert_eq!(skew.note(0, u64::MAX), 0);
        let mut behind = ClockSkew::default();
        for _ in 0..CLOCK_SKEW_PINGS {
            behind.note(0, CLOCKS_DIFFER_MS + 1);
        }
        assert!(behind.is_newly_large() && !behind.is_newly_large());
    }
}

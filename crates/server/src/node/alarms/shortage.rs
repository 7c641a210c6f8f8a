//! A shortage of memory or disk space: when the alarm of it begins and ends.
//!
//! It begins with the first look that finds less than the limit. It ends once all looks of [`ALARM_WELL_TIME`] have found
//! enough: a compaction, or memory that goes back to the system for a moment, unblocks nobody, because the publishers that
//! waited would raise the alarm again at once.

use broker::time::Time;

use crate::limits::ALARM_WELL_TIME;

/// A shortage of memory or of disk space.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) enum Shortage {
    /// The alarm is off.
    #[default]
    Off,
    /// The alarm is on.
    On {
        /// The limit in bytes that was in force at the last look.
        limit: Option<u64>,
        /// Since when all looks have found enough; none if the last one has not.
        well_since: Option<Time>,
    },
}

impl Shortage {
    /// The state after a look, which found less than the limit if `is_short`. The state before does not matter once the
    /// limit is another: what an operator sets is in force at once.
    #[must_use]
    pub(super) fn after(self, is_short: bool, limit: Option<u64>, now: Time) -> Self {
        match self {
            _ if is_short => Self::On { limit, well_since: None },
            Self::On { limit: before, well_since } if before == limit => {
                let since = well_since.unwrap_or(now);
                let is_over = u128::from(now.micros_since(since)) >= ALARM_WELL_TIME.as_micros();
                if is_over { Self::Off } else { Self::On { limit, well_since: Some(since) } }
            }
            Self::On { .. } | Self::Off => Self::Off,
        }
    }

    /// True while the alarm is on.
    pub(super) fn is_on(self) -> bool {
        matches!(self, Self::On { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at these milliseconds, each with what it finds and whether the alarm is on then.
    fn check(limit: u64, looks: &[(u64, bool, bool)]) -> Shortage {
        let mut shortage = Shortage::default();
        for (ms, is_short, is_on) in looks {
            shortage = shortage.after(*is_short, Some(limit), Time::from_millis(1_000_000 + ms));
            assert_eq!(shortage.is_on(), *is_on, "at {ms} ms of {looks:?}");
        }
        shortage
    }

    #[test]
    fn shortage_ends_once_there_was_enough_for_a_time() {
        check(50, &[(0, false, false), (250, true, true), (500, true, true)]);
        check(
            50,
            &[(0, true, true), (250, false, true), (1249, false, true), (1250, false, false)],
        );
        // A moment of room, as at each compaction.
        let flicker = [
            (0, true, true),
            (500, false, true),
            (512, true, true),
            (1000, false, true),
            (1012, true, true),
            (1500, false, true),
            (2499, false, true),
            (2500, false, false),
            (2501, true, true),
        ];
        check(50, &flicker);
    }

    #[test]
    fn shortage_at_another_limit_begins_anew() {
        let on = check(50, &[(0, true, true), (250, false, true)]);
        assert_eq!(on.after(false, Some(40), Time::from_millis(1_000_251)), Shortage::Off);
        assert!(on.after(true, Some(60), Time::from_millis(1_000_251)).is_on());
        assert!(on.after(false, Some(50), Time::from_millis(1_000_251)).is_on());
    }
}

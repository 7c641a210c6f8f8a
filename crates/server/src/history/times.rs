//! The times at which samples were taken and are kept: one list for all objects of a kind.
//!
//! An answer has samples of these times only: none between them, none before the oldest. The list is shortened
//! for all objects together, so that sums over objects have no steps.

use std::collections::VecDeque;

use crate::limits::{HISTORY_SAMPLES_MAX, HISTORY_SAMPLES_MIN};

/// The distance and the retention of samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tier {
    /// Distance in milliseconds; 0 keeps every sample.
    pub(super) step_ms: u64,
    /// Retention in milliseconds.
    pub(super) retention_ms: u64,
}

/// A range of time and the distance of samples in an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeRange {
    /// Length of the range, in milliseconds.
    pub age_ms: u64,
    /// Distance of samples, in milliseconds; not 0.
    pub step_ms: u64,
}

impl TimeRange {
    /// The beginnings of the steps, latest first: multiples of the step.
    fn steps(self, now_ms: u64) -> impl Iterator<Item = u64> {
        let last = now_ms - now_ms % self.step_ms;
        (0..=self.age_ms / self.step_ms).map_while(move |n| last.checked_sub(n * self.step_ms))
    }
}

/// A time with a sample, and the tier that keeps the sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Moment {
    pub(super) at_ms: u64,
    pub(super) tier: usize,
}

/// A new time, as one tier sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    /// The time before it in this tier.
    pub(super) before_ms: Option<u64>,
    /// True if the tier keeps a sample of the new time.
    pub(super) is_taken: bool,
    /// The oldest time of the tier.
    pub(super) oldest_ms: u64,
}

/// A new time.
#[derive(Clone, Debug)]
pub(super) struct Tick {
    pub(super) at_ms: u64,
    /// Finest tier first.
    pub(super) slots: Vec<Slot>,
}

/// The kept times, by tier.
#[derive(Debug)]
pub(super) struct Times {
    tiers: &'static [Tier],
    /// Oldest first, in the order of `tiers`.
    kept: Vec<VecDeque<u64>>,
}

impl Times {
    /// No times. The first tier has the step 0.
    pub(super) fn new(tiers: &'static [Tier]) -> Self {
        Self { tiers, kept: vec![VecDeque::new(); tiers.len()] }
    }

    /// Adds a time. Later times, from before the clock was set back, are dropped.
    pub(super) fn add(&mut self, at_ms: u64) -> Tick {
        let slots = self.tiers.iter().zip(&mut self.kept).map(|(tier, kept)| {
            while kept.back().is_some_and(|last| *last >= at_ms) {
                kept.pop_back();
            }
            let before_ms = kept.back().copied();
            let step_of = |time: u64| time.checked_div(tier.step_ms);
            let is_taken = tier.step_ms == 0
                || before_ms.is_none_or(|before| step_of(before) != step_of(at_ms));
            if is_taken {
                kept.push_back(at_ms);
            }
            let oldest_ms = at_ms.saturating_sub(tier.retention_ms);
            // One time before the retention remains, so that an answer covers all of it.
            while kept.len() > HISTORY_SAMPLES_MAX
                || kept.get(1).is_some_and(|second| *second <= oldest_ms)
            {
                kept.pop_front();
            }
            Slot { before_ms, is_taken, oldest_ms: kept.front().copied().unwrap_or(at_ms) }
        });
        Tick { at_ms, slots: slots.collect() }
    }

    /// Drops the oldest eighth of the tier with the most times. False if no tier can be shortened.
    pub(super) fn shorten(&mut self) -> bool {
        let Some(longest) = self.kept.iter_mut().max_by_key(|kept| kept.len()) else {
            return false;
        };
        let spare = longest.len().saturating_sub(HISTORY_SAMPLES_MIN);
        longest.drain(..spare.min(longest.len().div_ceil(8)));
        spare > 0
    }

    /// The oldest time of each tier.
    pub(super) fn oldest(&self) -> Vec<Option<u64>> {
        self.kept.iter().map(|kept| kept.front().copied()).collect()
    }

    /// The newest time.
    pub(super) fn newest(&self) -> Option<u64> {
        self.kept.first()?.back().copied()
    }

    /// The times for a range, latest first: of each step the first one, which is the one that coarse tiers
    /// keep, and of the last step the newest. A step without a time has none.
    // COMPAT: samples: RabbitMQ pads with zeros and rounds times to multiples of the step.
    pub(super) fn moments(&self, range: TimeRange) -> Vec<Moment> {
        let Some(newest) = self.newest() else {
            return Vec::new();
        };
        let mut steps = range.steps(newest);
        steps.next();
        let older = steps.filter_map(|start| self.first_from(start, start + range.step_ms));
        std::iter::once(Moment { at_ms: newest, tier: 0 }).chain(older).collect()
    }

    /// The first time in a step. Of tiers with the same time it names the coarsest, whose samples reach back
    /// farthest.
    fn first_from(&self, start_ms: u64, end_ms: u64) -> Option<Moment> {
        let of = |(tier, kept): (usize, &VecDeque<u64>)| {
            let at_ms = *kept.get(kept.partition_point(|time| *time < start_ms))?;
            (at_ms < end_ms).then_some(Moment { at_ms, tier })
        };
        self.kept.iter().enumerate().rev().filter_map(of).min_by_key(|moment| moment.at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIERS: [Tier; 2] = [
        Tier { step_ms: 0, retention_ms: 20_000 },
        Tier { step_ms: 10_000, retention_ms: 100_000 },
    ];

    fn times(all: impl IntoIterator<Item = u64>) -> Times {
        let mut times = Times::new(&TIERS);
        all.into_iter().for_each(|at_ms| drop(times.add(at_ms)));
        times
    }

    fn moments(times: &Times, age_ms: u64, step_ms: u64) -> Vec<u64> {
        times.moments(TimeRange { age_ms, step_ms }).iter().map(|moment| moment.at_ms).collect()
    }

    #[test]
    fn tier_keeps_the_first_time_of_each_step() {
        let times = times((0..1000).map(|second| second * 1000 + 7));
        assert_eq!(times.kept.iter().map(VecDeque::len).collect::<Vec<_>>(), [21, 11]);
        assert!(times.kept[1].iter().all(|time| time % 10_000 == 7));
        assert_eq!(times.oldest(), [Some(979_007), Some(890_007)]);
    }

    #[test]
    fn step_without_a_sample_has_no_moment() {
        let times = times([11_000, 16_000, 31_000, 33_000]);
        assert_eq!(moments(&times, 100_000, 5000), [33_000, 16_000, 11_000]);
        assert_eq!(moments(&times, 10_000, 1000), [33_000, 31_000]);
        assert_eq!(moments(&Times::new(&TIERS), 10_000, 1000), [] as [u64; 0]);
    }

    #[test]
    fn moment_stays_the_same_when_it_gets_old() {
        let mut times = times((0..60).map(|second| second * 1000 + 7));
        let before = moments(&times, 50_000, 10_000);
        assert_eq!(before, [59_007, 40_007, 30_007, 20_007, 10_007, 7]);
        (60..90).for_each(|second| drop(times.add(second * 1000 + 7)));
        assert_eq!(moments(&times, 80_000, 10_000)[4..], before[1..]);
    }

    #[test]
    fn clock_set_back_drops_later_times() {
        let times = times([11_000, 16_000, 31_000, 14_000]);
        assert_eq!(moments(&times, 60_000, 1000), [14_000, 11_000]);
    }

    #[test]
    fn shortening_takes_from_the_longest_tier() {
        let mut times = times((0..200).map(|second| second * 1000));
        while times.kept[0].len() > times.kept[1].len() {
            assert!(times.shorten());
        }
        assert_eq!(times.kept[1].len(), 11, "the other one is whole");
        while times.shorten() {}
        assert!(times.kept.iter().all(|kept| kept.len() == HISTORY_SAMPLES_MIN));
    }
}

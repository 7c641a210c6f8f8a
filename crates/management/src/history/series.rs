//! The series of one object: its numbers over time, from which rates are computed.
//!
//! Time is an argument, in milliseconds of the epoch. A point that equals both neighbours is dropped, so
//! that an idle object costs two points for any length of time. Coarser tiers keep points longer. Points
//! share their numbers with equal points, and trailing zeros take no memory: numbers that rarely occur come
//! last.

use std::collections::VecDeque;

use triomphe::ThinArc;

/// The distance and the retention of points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tier {
    /// Distance in milliseconds; 0 keeps every sample.
    pub(super) step_ms: u64,
    /// Retention in milliseconds.
    pub(super) retention_ms: u64,
}

/// Points in a tier of an idle object.
const IDLE_SAMPLES: usize = 2;

/// Spare capacity that is not given back.
const SPARE: usize = 4;

/// Numbers at one time.
#[derive(Clone, Debug)]
struct Point<const N: usize> {
    at_ms: u64,
    values: Values<N>,
}

/// Shared numbers, without trailing zeros.
#[derive(Clone, PartialEq, Debug)]
struct Values<const N: usize>(ThinArc<(), u64>);

impl<const N: usize> Values<N> {
    fn new(all: &[u64; N]) -> Self {
        Self(ThinArc::from_header_and_slice((), without_zeros(all)))
    }

    fn kept(&self) -> &[u64] {
        &self.0.slice
    }

    fn all(&self) -> [u64; N] {
        let mut all = [0; N];
        all.iter_mut().zip(self.kept()).for_each(|(number, kept)| *number = *kept);
        all
    }

    fn are(&self, all: &[u64; N]) -> bool {
        self.kept() == without_zeros(all)
    }

    /// True if both share one allocation.
    fn is(&self, other: &Self) -> bool {
        self.0.ptr() == other.0.ptr()
    }

    /// Bytes of the allocation.
    fn bytes(&self) -> usize {
        values_bytes(self.kept().len())
    }
}

fn without_zeros(all: &[u64]) -> &[u64] {
    let len = all.iter().rposition(|number| *number != 0).map_or(0, |last| last + 1);
    all.get(..len).unwrap_or(all)
}

const fn values_bytes(numbers: usize) -> usize {
    (numbers + 2) * size_of::<u64>()
}

/// Bytes of a point with these numbers, if it shares no allocation.
pub(super) fn sample_bytes(numbers: &[u64]) -> usize {
    size_of::<Point<0>>() + values_bytes(without_zeros(numbers).len())
}

/// The points of one object, finest tier first.
#[derive(Clone, Debug)]
pub(super) struct Series<const N: usize> {
    tiers: Vec<VecDeque<Point<N>>>,
}

/// A range of time and the distance of samples in an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimeRange {
    /// Length of the range, in milliseconds.
    pub(crate) age_ms: u64,
    /// Distance of samples, in milliseconds; not 0.
    pub(crate) step_ms: u64,
}

impl TimeRange {
    /// Times of the samples, latest first: multiples of the step.
    fn moments(self, now_ms: u64) -> impl Iterator<Item = u64> {
        let last = now_ms - now_ms % self.step_ms;
        (0..=self.age_ms / self.step_ms).map(move |n| last.saturating_sub(n * self.step_ms))
    }
}

/// Numbers at several times, latest first.
pub(crate) type Window<const N: usize> = Vec<(u64, [u64; N])>;

impl<const N: usize> Series<N> {
    /// A series without samples. `before_ms` is the last time at which the object did not exist; all numbers
    /// were 0 then.
    pub(super) fn new(tiers: &[Tier], before_ms: Option<u64>) -> Self {
        let nothing = before_ms.map(|at_ms| Point { at_ms, values: Values::new(&[0; N]) });
        let tier = |_| {
            let mut samples = VecDeque::with_capacity(IDLE_SAMPLES);
            samples.extend(nothing.clone());
            samples
        };
        Self { tiers: tiers.iter().map(tier).collect() }
    }

    /// Adds a point. Each tier holds up to `samples_max` points.
    pub(super) fn push(
        &mut self,
        tiers: &[Tier],
        at_ms: u64,
        values: [u64; N],
        samples_max: usize,
    ) {
        let known = self.latest().filter(|latest| latest.are(&values)).cloned();
        let values = known.unwrap_or_else(|| Values::new(&values));
        for (tier, samples) in tiers.iter().zip(&mut self.tiers) {
            let last = samples.back().map(|last| last.at_ms);
            if tier.step_ms > 0 && last.is_some_and(|l| l / tier.step_ms == at_ms / tier.step_ms) {
                continue;
            }
            add(samples, Point { at_ms, values: values.clone() });
            let oldest_ms = at_ms.saturating_sub(tier.retention_ms);
            // The point before the oldest time gives the numbers at that time.
            while samples.len() > samples_max
                || samples.get(1).is_some_and(|second| second.at_ms <= oldest_ms)
            {
                samples.pop_front();
            }
            // The number of points may have fallen.
            let wanted = samples.len() + SPARE;
            if samples.capacity() > 2 * wanted {
                samples.shrink_to(wanted);
            }
        }
    }

    /// Bytes of all tiers, as if tiers shared no allocations.
    pub(super) fn bytes(&self) -> usize {
        let of_tier = |samples: &VecDeque<Point<N>>| {
            let follows = samples.iter().zip(samples.iter().skip(1));
            let shared = follows.filter(|(one, next)| one.values.is(&next.values));
            let all: usize = samples.iter().map(|sample| sample.values.bytes()).sum();
            let shared: usize = shared.map(|(one, _)| one.values.bytes()).sum();
            samples.capacity() * size_of::<Point<N>>() + all - shared
        };
        self.tiers.iter().map(of_tier).sum()
    }

    fn latest(&self) -> Option<&Values<N>> {
        Some(&self.tiers.first()?.back()?.values)
    }

    /// Change per second between the last two points.
    pub(super) fn rates(&self) -> [f64; N] {
        let mut rates = [0.0; N];
        let samples = self.tiers.first();
        let newest =
            samples.and_then(|samples| Some((samples.back()?, samples.iter().nth_back(1)?)));
        if let Some((new, old)) = newest {
            let elapsed_ms = new.at_ms.saturating_sub(old.at_ms);
            let (new, old) = (new.values.all(), old.values.all());
            for (rate, (new, old)) in rates.iter_mut().zip(new.iter().zip(&old)) {
                *rate = per_second(*new, *old, elapsed_ms);
            }
        }
        rates
    }

    /// Numbers of the last point.
    pub(super) fn last(&self) -> Option<[u64; N]> {
        self.latest().map(Values::all)
    }

    /// Time since which no number has changed, as far as the points tell, in milliseconds of the epoch.
    pub(super) fn idle_since_ms(&self) -> Option<u64> {
        let samples = self.tiers.first()?;
        let (new, old) = (samples.back()?, samples.iter().nth_back(1)?);
        (new.values == old.values).then_some(old.at_ms)
    }

    /// A window over a range: for each time, the last numbers before the next time, as in RabbitMQ. Before
    /// the first point, all numbers are 0.
    pub(super) fn window(&self, tiers: &[Tier], now_ms: u64, range: TimeRange) -> Window<N> {
        let reaches = tiers.iter().position(|tier| tier.retention_ms >= range.age_ms);
        let tier = reaches.unwrap_or_else(|| tiers.len().saturating_sub(1));
        let fine = self.tiers.first();
        let samples = self.tiers.get(tier);
        let at = |moment: u64| {
            // Coarse tiers lag behind; the finest tier has later points.
            let of = |samples: Option<&VecDeque<Point<N>>>| {
                let samples = samples?;
                let end_ms = moment + range.step_ms;
                let after = samples.partition_point(|sample| sample.at_ms < end_ms);
                samples.get(after.checked_sub(1)?).cloned()
            };
            let found = [of(fine), of(samples)].into_iter().flatten();
            found.max_by_key(|sample| sample.at_ms).map_or([0; N], |sample| sample.values.all())
        };
        range.moments(now_ms).map(|moment| (moment, at(moment))).collect()
    }
}

/// Appends a point. A point that repeats the last two moves the last one instead.
fn add<const N: usize>(samples: &mut VecDeque<Point<N>>, sample: Point<N>) {
    let says_so = |other: &Point<N>| other.values == sample.values;
    if samples.iter().nth_back(1).is_some_and(says_so)
        && let Some(last) = samples.back_mut().filter(|last| says_so(last))
    {
        last.at_ms = sample.at_ms;
    } else {
        samples.push_back(sample);
    }
}

/// Change per second.
#[expect(clippy::cast_precision_loss, reason = "rates are not exact")]
fn per_second(new: u64, old: u64, elapsed_ms: u64) -> f64 {
    if elapsed_ms == 0 {
        return 0.0;
    }
    (new as f64 - old as f64) * 1000.0 / elapsed_ms as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIERS: [Tier; 2] = [
        Tier { step_ms: 0, retention_ms: 20_000 },
        Tier { step_ms: 10_000, retention_ms: 100_000 },
    ];

    fn series(samples: &[(u64, u64)]) -> Series<1> {
        let mut series = Series::new(&TIERS, None);
        for (at_ms, value) in samples {
            series.push(&TIERS, *at_ms, [*value], 100);
        }
        series
    }

    fn counted(series: &Series<1>) -> Vec<usize> {
        series.tiers.iter().map(VecDeque::len).collect()
    }

    #[test]
    fn rate_is_computed_from_the_last_two_points() {
        assert_eq!(series(&[]).rates(), [0.0]);
        assert_eq!(series(&[(0, 7)]).rates(), [0.0]);
        assert_eq!(series(&[(0, 7), (5000, 7), (10_000, 17)]).rates(), [2.0]);
        assert_eq!(series(&[(0, 7), (5000, 2)]).rates(), [-1.0]);
        assert_eq!(series(&[(0, 7), (5000, 17), (10_000, 17), (15_000, 17)]).rates(), [0.0]);
    }

    #[test]
    fn new_series_starts_from_zero() {
        let mut series = Series::new(&TIERS, Some(5000));
        series.push(&TIERS, 10_000, [10], 100);
        assert_eq!(series.rates(), [2.0]);
    }

    #[test]
    fn idle_series_keeps_two_points() {
        let mut idle = series(&[(0, 1), (1000, 5)]);
        for second in 2..10_000 {
            idle.push(&TIERS, second * 1000, [5], 100);
        }
        assert_eq!(counted(&idle), [2, 2]);
        assert_eq!((idle.rates(), idle.idle_since_ms()), ([0.0], Some(1000)));
        assert_eq!(series(&[(0, 1), (5000, 2)]).idle_since_ms(), None);
        let mut others = idle.tiers.iter().flatten().skip(1);
        let first = &idle.tiers[0][0].values;
        assert!(others.all(|sample| sample.values.is(first)), "one place for all");
    }

    #[test]
    fn trailing_zeros_use_no_memory() {
        let bytes = |numbers: [u64; 40]| {
            let mut series = Series::new(&TIERS, None);
            series.push(&TIERS, 1000, [0; 40], 100);
            series.push(&TIERS, 2000, numbers, 100);
            assert_eq!(series.last(), Some(numbers));
            series.bytes()
        };
        let with = |at: usize| {
            let mut numbers = [0; 40];
            numbers[at] = 7;
            bytes(numbers)
        };
        assert_eq!(with(10) - with(0), 10 * size_of::<u64>());
        assert_eq!(with(39) - with(0), 39 * size_of::<u64>());
        assert_eq!(size_of::<Point<40>>(), 2 * size_of::<u64>());
    }

    #[test]
    fn series_drops_old_and_excess_points() {
        let mut busy = series(&[]);
        for second in 0..1000 {
            busy.push(&TIERS, second * 1000, [second], 1000);
        }
        assert_eq!(counted(&busy), [21, 11]);
        let before = busy.bytes();
        busy.push(&TIERS, 1_000_000, [0], 3);
        assert_eq!(counted(&busy), [3, 3]);
        assert!(busy.bytes() < before / 2);
    }

    #[test]
    fn window_has_the_numbers_at_each_time() {
        let series = series(&[(11_000, 1), (16_000, 6), (21_000, 9)]);
        let window = series.window(&TIERS, 23_456, TimeRange { age_ms: 15_000, step_ms: 5000 });
        assert_eq!(window, [(20_000, [9]), (15_000, [6]), (10_000, [1]), (5000, [0])]);
    }

    #[test]
    fn window_far_back_uses_the_coarse_tier() {
        let all: Vec<(u64, u64)> = (0..100).map(|second| (second * 1000, second)).collect();
        let window =
            series(&all).window(&TIERS, 99_500, TimeRange { age_ms: 90_000, step_ms: 30_000 });
        assert_eq!(window, [(90_000, [99]), (60_000, [89]), (30_000, [50]), (0, [20])]);
    }
}

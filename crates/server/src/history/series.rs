//! The series of one object: its numbers over time, from which rates are computed.
//!
//! Time is an argument, in milliseconds of the epoch. A point that equals both neighbours is dropped, so
//! that an idle object costs two points for any length of time. Coarser tiers keep points longer. Points
//! share their numbers with equal points, and trailing zeros take no memory: numbers that rarely occur come
//! last.

use std::collections::VecDeque;

use triomphe::ThinArc;

use crate::history::times::{Moment, Slot, Tick};

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

/// Shared numbers, without trailing zeros; none if all are zeros.
#[derive(Clone, PartialEq, Debug)]
struct Values<const N: usize>(Option<ThinArc<(), u64>>);

impl<const N: usize> Values<N> {
    fn new(all: &[u64; N]) -> Self {
        let kept = without_zeros(all);
        Self((!kept.is_empty()).then(|| ThinArc::from_header_and_slice((), kept)))
    }

    fn kept(&self) -> &[u64] {
        self.0.as_ref().map_or(&[], |kept| &kept.slice)
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
        self.0.as_ref().map(ThinArc::ptr) == other.0.as_ref().map(ThinArc::ptr)
    }

    /// Bytes of the allocation.
    fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |kept| values_bytes(kept.slice.len()))
    }
}

fn without_zeros(all: &[u64]) -> &[u64] {
    let len = all.iter().rposition(|number| *number != 0).map_or(0, |last| last + 1);
    all.get(..len).unwrap_or(all)
}

const fn values_bytes(numbers: usize) -> usize {
    (numbers + 2) * size_of::<u64>()
}

/// The points of one tier, oldest first.
#[derive(Clone, Debug)]
struct Points<const N: usize> {
    points: VecDeque<Point<N>>,
    /// Bytes of the numbers, of which neighbours share equal ones.
    values_bytes: usize,
}

impl<const N: usize> Points<N> {
    fn new() -> Self {
        Self { points: VecDeque::with_capacity(IDLE_SAMPLES), values_bytes: 0 }
    }

    /// Adds a point. A point that repeats the last two moves the last one instead.
    fn add(&mut self, point: Point<N>) {
        let says_so = |other: &Point<N>| other.values == point.values;
        if self.points.iter().nth_back(1).is_some_and(says_so)
            && let Some(last) = self.points.back_mut().filter(|last| says_so(last))
        {
            last.at_ms = point.at_ms;
            return;
        }
        let is_shared = self.points.back().is_some_and(|last| last.values.is(&point.values));
        self.values_bytes += if is_shared { 0 } else { point.values.bytes() };
        self.points.push_back(point);
    }

    /// Drops points from `from_ms` on: the clock was set back. `before_ms` is the last time before.
    fn drop_from(&mut self, from_ms: u64, before_ms: Option<u64>) {
        while let Some(last) = self.points.pop_back_if(|last| last.at_ms >= from_ms) {
            self.forget(&last, self.points.back().is_some_and(|next| next.values.is(&last.values)));
            // Of equal points only the ends are kept: here is a new end.
            let is_end = |next: &Point<N>, at_ms| next.values == last.values && next.at_ms < at_ms;
            if let Some(at_ms) = before_ms
                && self.points.back().is_some_and(|next| is_end(next, at_ms))
            {
                self.add(Point { at_ms, values: last.values });
            }
        }
    }

    /// Drops points that no kept time needs. The last point up to the oldest time has the numbers at that time.
    fn cut(&mut self, oldest_ms: u64) {
        while self.points.get(1).is_some_and(|second| second.at_ms <= oldest_ms)
            && let Some(first) = self.points.pop_front()
        {
            self.forget(&first, self.points.front().is_some_and(|n| n.values.is(&first.values)));
        }
        // The number of points may have fallen.
        let wanted = self.points.len() + SPARE;
        if self.points.capacity() > 2 * wanted {
            self.points.shrink_to(wanted);
        }
    }

    fn forget(&mut self, point: &Point<N>, is_shared: bool) {
        let bytes = if is_shared { 0 } else { point.values.bytes() };
        self.values_bytes = self.values_bytes.saturating_sub(bytes);
    }

    /// The numbers at a time; none before the first point.
    fn at(&self, at_ms: u64) -> Option<[u64; N]> {
        let after = self.points.partition_point(|point| point.at_ms <= at_ms);
        Some(self.points.get(after.checked_sub(1)?)?.values.all())
    }

    fn bytes(&self) -> usize {
        self.points.capacity() * size_of::<Point<N>>() + self.values_bytes
    }

    /// Bytes that a shorter history would free. The points of an idle object stay in any case.
    fn spare_bytes(&self) -> usize {
        if self.points.len() > IDLE_SAMPLES { self.bytes() } else { 0 }
    }
}

/// The points of one object, finest tier first.
#[derive(Clone, Debug)]
pub(super) struct Series<const N: usize> {
    tiers: Vec<Points<N>>,
}

/// Numbers at several times, latest first.
pub type Window<const N: usize> = Vec<(u64, [u64; N])>;

impl<const N: usize> Series<N> {
    /// A series of an object that does not exist before `tick`: at the time before, all numbers were 0.
    pub(super) fn new(tick: &Tick) -> Self {
        let tier = |slot: &Slot| {
            let mut points = Points::new();
            if let Some(at_ms) = slot.before_ms {
                points.add(Point { at_ms, values: Values::new(&[0; N]) });
            }
            points
        };
        Self { tiers: tick.slots.iter().map(tier).collect() }
    }

    /// Adds the numbers at a new time.
    pub(super) fn push(&mut self, tick: &Tick, values: [u64; N]) {
        let known = self.latest().filter(|latest| latest.are(&values)).cloned();
        let values = known.unwrap_or_else(|| Values::new(&values));
        for (slot, points) in tick.slots.iter().zip(&mut self.tiers) {
            points.drop_from(tick.at_ms, slot.before_ms);
            if slot.is_taken {
                points.add(Point { at_ms: tick.at_ms, values: values.clone() });
            }
            points.cut(slot.oldest_ms);
        }
    }

    /// Drops points that are older than the oldest time of their tier.
    pub(super) fn cut(&mut self, oldest: &[Option<u64>]) {
        for (points, oldest_ms) in self.tiers.iter_mut().zip(oldest) {
            points.cut(oldest_ms.unwrap_or_default());
        }
    }

    /// Bytes of all tiers, as if tiers shared no allocations.
    pub(super) fn bytes(&self) -> usize {
        self.tiers.iter().map(Points::bytes).sum()
    }

    /// Bytes that a shorter history would free.
    pub(super) fn spare_bytes(&self) -> usize {
        self.tiers.iter().map(Points::spare_bytes).sum()
    }

    fn finest(&self) -> Option<&VecDeque<Point<N>>> {
        self.tiers.first().map(|tier| &tier.points)
    }

    fn latest(&self) -> Option<&Values<N>> {
        Some(&self.finest()?.back()?.values)
    }

    /// Change per second between the last two points.
    pub(super) fn rates(&self) -> [f64; N] {
        let mut rates = [0.0; N];
        let newest =
            self.finest().and_then(|points| Some((points.back()?, points.iter().nth_back(1)?)));
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

    /// Time since which no number has changed, as far as the points show, in milliseconds of the epoch.
    pub(super) fn idle_since_ms(&self) -> Option<u64> {
        let points = self.finest()?;
        let (new, old) = (points.back()?, points.iter().nth_back(1)?);
        (new.values == old.values).then_some(old.at_ms)
    }

    /// The numbers at these times, latest first. It ends at the last time at which the object did not exist:
    /// all numbers were 0 then.
    pub(super) fn window(&self, moments: &[Moment]) -> Window<N> {
        let mut window = Vec::with_capacity(moments.len());
        for moment in moments {
            let numbers = self.tiers.get(moment.tier).and_then(|tier| tier.at(moment.at_ms));
            window.push((moment.at_ms, numbers.unwrap_or([0; N])));
            if numbers.is_none() {
                break;
            }
        }
        window
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
    use crate::history::times::{Tier, TimeRange, Times};

    const TIERS: [Tier; 2] = [
        Tier { step_ms: 0, retention_ms: 20_000 },
        Tier { step_ms: 10_000, retention_ms: 100_000 },
    ];

    /// A series with its times.
    struct Timed<const N: usize>(Times, Option<Series<N>>);

    impl<const N: usize> Timed<N> {
        fn new() -> Self {
            Self(Times::new(&TIERS), None)
        }

        fn push(&mut self, at_ms: u64, values: [u64; N]) {
            let tick = self.0.add(at_ms);
            self.1.get_or_insert_with(|| Series::new(&tick)).push(&tick, values);
        }

        fn get(&self) -> &Series<N> {
            self.1.as_ref().unwrap()
        }

        fn window(&self, age_ms: u64, step_ms: u64) -> Window<N> {
            self.get().window(&self.0.moments(TimeRange { age_ms, step_ms }))
        }
    }

    fn series(samples: &[(u64, u64)]) -> Timed<1> {
        let mut series = Timed::new();
        samples.iter().for_each(|(at_ms, value)| series.push(*at_ms, [*value]));
        series
    }

    fn counted(series: &Series<1>) -> Vec<usize> {
        series.tiers.iter().map(|tier| tier.points.len()).collect()
    }

    #[test]
    fn rate_is_computed_from_the_last_two_points() {
        let rates = |samples: &[(u64, u64)]| series(samples).get().rates();
        assert_eq!(rates(&[(0, 7)]), [0.0]);
        assert_eq!(rates(&[(0, 7), (5000, 7), (10_000, 17)]), [2.0]);
        assert_eq!(rates(&[(0, 7), (5000, 2)]), [-1.0]);
        assert_eq!(rates(&[(0, 7), (5000, 17), (10_000, 17), (15_000, 17)]), [0.0]);
    }

    #[test]
    fn new_series_starts_from_zero() {
        let mut series = series(&[]);
        drop(series.0.add(5000));
        series.push(10_000, [10]);
        assert_eq!(series.get().rates(), [2.0]);
        assert_eq!(series.window(60_000, 5000), [(10_000, [10]), (5000, [0])]);
    }

    #[test]
    fn idle_series_keeps_two_points() {
        let mut idle = series(&[(0, 1), (1000, 5)]);
        for second in 2..10_000 {
            idle.push(second * 1000, [5]);
        }
        let idle = idle.get();
        assert_eq!((counted(idle), idle.spare_bytes()), (vec![2, 2], 0));
        assert_eq!((idle.rates(), idle.idle_since_ms()), ([0.0], Some(1000)));
        assert_eq!(series(&[(0, 1), (5000, 2)]).get().idle_since_ms(), None);
        let first = &idle.tiers[0].points[0].values;
        let mut others = idle.tiers.iter().flat_map(|tier| &tier.points).skip(1);
        assert!(others.all(|point| point.values.is(first)), "one place for all");
    }

    #[test]
    fn trailing_zeros_use_no_memory() {
        let bytes = |numbers: [u64; 40]| {
            let mut series = Timed::new();
            series.push(1000, [0; 40]);
            series.push(2000, numbers);
            assert_eq!(series.get().last(), Some(numbers));
            series.get().bytes()
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
            busy.push(second * 1000, [second]);
        }
        assert_eq!(counted(busy.get()), [21, 11]);
        let before = busy.get().bytes();
        assert_eq!(before, counted_bytes(busy.get()));
        while busy.0.shorten() {}
        let Timed(times, Some(series)) = &mut busy else { unreachable!() };
        series.cut(&times.oldest());
        assert_eq!(counted(series), [2, 2]);
        assert!(series.bytes() < before / 2);
        assert_eq!(series.bytes(), counted_bytes(series));
    }

    /// Bytes, counted anew.
    fn counted_bytes<const N: usize>(series: &Series<N>) -> usize {
        let of_tier = |tier: &Points<N>| {
            let points = &tier.points;
            let follows = points.iter().zip(points.iter().skip(1));
            let shared = follows.filter(|(one, next)| one.values.is(&next.values));
            let all: usize = points.iter().map(|point| point.values.bytes()).sum();
            let shared: usize = shared.map(|(one, _)| one.values.bytes()).sum();
            points.capacity() * size_of::<Point<N>>() + all - shared
        };
        series.tiers.iter().map(of_tier).sum()
    }

    #[test]
    fn window_has_the_numbers_at_each_time() {
        let series = series(&[(11_000, 1), (16_000, 6), (21_000, 9)]);
        assert_eq!(series.window(15_000, 5000), [(21_000, [9]), (16_000, [6]), (11_000, [1])]);
        assert_eq!(series.window(15_000, 10_000), [(21_000, [9]), (11_000, [1])]);
    }

    #[test]
    fn window_far_back_uses_the_coarse_tier() {
        let all: Vec<(u64, u64)> = (0..100).map(|second| (second * 1000, second)).collect();
        assert_eq!(
            series(&all).window(90_000, 30_000),
            [(99_000, [99]), (60_000, [60]), (30_000, [30]), (0, [0])]
        );
    }

    #[test]
    fn clock_set_back_drops_later_points() {
        let series = series(&[(11_000, 1), (16_000, 6), (31_000, 9), (14_000, 12)]);
        assert_eq!(series.window(60_000, 1000), [(14_000, [12]), (11_000, [1])]);
        assert_eq!(series.get().bytes(), counted_bytes(series.get()));
        let equal = [(1000, 5), (2000, 5), (3000, 5), (9000, 5), (4000, 9)];
        let series = self::series(&equal);
        assert_eq!(series.get().rates(), [4.0]);
        assert_eq!(series.get().bytes(), counted_bytes(series.get()));
    }
}

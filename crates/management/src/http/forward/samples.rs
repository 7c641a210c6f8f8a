//! Sums of samples of several nodes, which take them at different times.

use serde_json::{Value, json};

/// A number and its time, in milliseconds of the epoch.
type Point = (u64, u64);

/// Adds the samples of another node, at the times of `sum`; both begin with the latest. Between two samples of the other
/// node its number is on the line between them. Lists of anything else stay as they are.
pub(super) fn add(sum: &mut Vec<Value>, more: &[Value]) {
    let (Some(known), Some(other)) = (points(sum), points(more)) else { return };
    let Some(step) = step(&known).max(step(&other)) else { return };
    let mut all: Vec<Point> =
        known.iter().map(|(at, value)| (*at, value + value_at(&other, *at, step))).collect();
    // The other node has run for longer.
    let oldest = known.last().map_or(u64::MAX, |(at, _)| *at);
    let before = other.iter().filter(|(at, _)| *at < oldest);
    all.extend(before.map(|(at, value)| (*at, value + value_at(&known, *at, step))));
    *sum = all.into_iter().map(|(at, value)| json!({"sample": value, "timestamp": at})).collect();
}

/// The samples of a list; none if it is a list of something else.
fn points(samples: &[Value]) -> Option<Vec<Point>> {
    let number = |sample: &Value, name| sample.get(name).and_then(Value::as_u64);
    samples
        .iter()
        .map(|sample| Some((number(sample, "timestamp")?, number(sample, "sample")?)))
        .collect()
}

/// Longest time between two samples; none without two of them.
fn step(points: &[Point]) -> Option<u64> {
    let pairs = points.iter().zip(points.iter().skip(1));
    pairs.filter_map(|((late, _), (early, _))| late.checked_sub(*early)).max()
}

/// The number at a time. Before the first sample it is 0, but for the time of a step: the range may begin there.
#[expect(clippy::cast_precision_loss, reason = "a point on a line is not exact")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two numbers")]
fn value_at(points: &[Point], at: u64, step: u64) -> u64 {
    let later = points.iter().rev().find(|(time, _)| *time >= at);
    let earlier = points.iter().find(|(time, _)| *time <= at);
    match (earlier, later) {
        (Some((from, old)), Some((to, new))) if to > from => {
            let share = (at - from) as f64 / (to - from) as f64;
            (*old as f64 + (*new as f64 - *old as f64) * share).round() as u64
        }
        (Some((_, value)), _) => *value,
        (None, Some((time, value))) if time - at <= step => *value,
        (None, _) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(points: &[Point]) -> Vec<Value> {
        points.iter().map(|(at, value)| json!({"sample": value, "timestamp": at})).collect()
    }

    fn sum(known: &[Point], other: &[Point]) -> Vec<Point> {
        let mut sum = samples(known);
        add(&mut sum, &samples(other));
        points(&sum).unwrap()
    }

    #[test]
    fn samples_of_other_times_are_added_on_the_line_between_them() {
        let known = [(20_000, 100), (15_000, 50), (10_000, 0)];
        let other = [(18_000, 30), (13_000, 20), (8000, 10)];
        assert_eq!(sum(&known, &other), [(20_000, 130), (15_000, 74), (10_000, 14), (8000, 10)]);
        // The range of the other node begins within a step.
        let late = [(18_000, 30), (13_000, 20)];
        assert_eq!(sum(&known, &late), [(20_000, 130), (15_000, 74), (10_000, 20)]);
    }

    #[test]
    fn node_that_has_run_for_longer_has_the_oldest_samples() {
        let known = [(20_000, 100), (15_000, 50)];
        let other = [(20_000, 7), (15_000, 6), (10_000, 5), (5000, 4)];
        let both = [(20_000, 107), (15_000, 56), (10_000, 55), (5000, 4)];
        assert_eq!((sum(&known, &other), sum(&other, &known)), (both.to_vec(), both.to_vec()));
        assert_eq!(sum(&[], &other), other);
        assert_eq!(sum(&other, &[]), other);
    }

    #[test]
    fn lists_of_something_else_stay() {
        let mut texts = vec![json!("a")];
        add(&mut texts, &[json!("b")]);
        assert_eq!(texts, [json!("a")]);
    }
}

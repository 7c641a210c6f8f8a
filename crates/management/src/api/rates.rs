//! Numbers with their rates: `name` and `name_details`.

use serde_json::{Map, Value, json};
use server::history::{History, TimeRanges, Trend, Window};
use server::snapshot::fields::{Field, StatsKind};

use crate::api::row::{Part, Row};
use crate::http::extract::SharedNode;

/// Puts the numbers of a kind into `object`.
pub(crate) fn put<const N: usize>(
    object: &mut Map<String, Value>,
    fields: &[Field; N],
    about: StatsKind,
    values: &[u64; N],
    trend: &Trend<N>,
) {
    let mut row = Row::new(Part::Whole);
    put_in_row(&mut row, fields, about, values, trend);
    object.extend(row.into_fields());
}

/// Puts the numbers of a kind into `row`.
pub(crate) fn put_in_row<const N: usize>(
    row: &mut Row<'_>,
    fields: &[Field; N],
    about: StatsKind,
    values: &[u64; N],
    trend: &Trend<N>,
) {
    let window = trend.window(about);
    let all = fields.iter().zip(values).enumerate().filter(|(_, (field, _))| field.kind == about);
    for (at, (field, value)) in all {
        row.put(field.name, || json!(value));
        if row.includes(|first| first.strip_suffix("_details") == Some(field.name)) {
            let rate = trend.rates.get(at).copied().unwrap_or_default();
            row.put(&format!("{}_details", field.name), || details(field, rate, at, window));
        }
    }
}

/// The trends of the objects of a list, as far as `part` of its rows needs them.
pub(crate) fn trends<T, const N: usize>(
    node: &SharedNode,
    all: &[T],
    asked: &TimeRanges,
    part: Part<'_>,
    of: impl Fn(&History, &T, &TimeRanges) -> Trend<N>,
) -> Vec<Trend<N>> {
    match part.ranges(asked) {
        None => all.iter().map(|_| Trend::default()).collect(),
        Some(ranges) => {
            node.history().read(|history| all.iter().map(|one| of(history, one, &ranges)).collect())
        }
    }
}

/// The fields of a JSON object.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(fields) = value { fields } else { Map::new() }
}

/// A rate, and the samples of the window: as many as there are.
fn details<const N: usize>(
    field: &Field,
    rate: f64,
    number: usize,
    window: Option<&Window<N>>,
) -> Value {
    let Some(window) = window else {
        return json!({"rate": rate});
    };
    let of = |numbers: &[u64; N]| numbers.get(number).copied().unwrap_or_default();
    let points: Vec<(u64, u64)> = window.iter().map(|(at, numbers)| (*at, of(numbers))).collect();
    let samples = points.iter().map(|(at, value)| json!({"sample": value, "timestamp": at}));
    let samples: Vec<Value> = samples.collect();
    let average_rate =
        if field.is_counter() { average_increase(&points) } else { average_rate(&points) };
    let average = average(&points);
    json!({"rate": rate, "samples": samples, "avg_rate": average_rate, "avg": average})
}

/// The mean change per second between the oldest and the newest sample.
#[expect(clippy::cast_precision_loss, reason = "means are not exact")]
fn average_rate(samples: &[(u64, u64)]) -> f64 {
    match (samples.first(), samples.last()) {
        (Some((last, new)), Some((first, old))) if last > first => {
            (*new as f64 - *old as f64) * 1000.0 / (last - first) as f64
        }
        _ => 0.0,
    }
}

/// The mean increase per second of a counter: where it falls, it is counted anew.
#[expect(clippy::cast_precision_loss, reason = "means are not exact")]
fn average_increase(samples: &[(u64, u64)]) -> f64 {
    let pairs = samples.iter().zip(samples.iter().skip(1));
    let increase: u64 = pairs.map(|((_, new), (_, old))| new.saturating_sub(*old)).sum();
    match (samples.first(), samples.last()) {
        (Some((last, _)), Some((first, _))) if last > first => {
            increase as f64 * 1000.0 / (last - first) as f64
        }
        _ => 0.0,
    }
}

/// The mean over the time of the samples, latest first. Each one counts for the time since the sample before it,
/// the oldest as long as the one after it.
#[expect(clippy::cast_precision_loss, reason = "means are not exact")]
fn average(samples: &[(u64, u64)]) -> f64 {
    let pairs = samples.iter().zip(samples.iter().skip(1));
    let mut times: Vec<u64> = pairs.map(|((late, _), (early, _))| late - early).collect();
    times.push(times.last().copied().unwrap_or(1));
    let all: u64 = times.iter().take(samples.len()).sum();
    let sum: f64 =
        samples.iter().zip(&times).map(|((_, value), time)| *value as f64 * *time as f64).sum();
    sum / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use server::snapshot::fields::QUEUE;

    use super::*;

    const LENGTH: &Field = &QUEUE[0];
    const COUNTER: &Field = &QUEUE[3];

    #[test]
    fn counter_that_is_counted_anew_has_no_negative_rate() {
        let window = vec![(15_000, [20_u64]), (10_000, [5]), (5000, [100]), (0, [90])];
        let rate = |field| details(field, 0.0, 0, Some(&window))["avg_rate"].as_f64().unwrap();
        assert!((rate(COUNTER) - 25.0 / 15.0).abs() < 1e-9);
        assert!((rate(LENGTH) + 70.0 / 15.0).abs() < 1e-9);
    }

    #[test]
    fn averages_cover_the_window() {
        let window = vec![(10_000, [30_u64]), (5000, [10]), (0, [0])];
        let json = details(COUNTER, 4.0, 0, Some(&window));
        let [avg, avg_rate] = ["avg", "avg_rate"].map(|name| json[name].as_f64().unwrap());
        assert!((avg - 40.0 / 3.0).abs() < 1e-9 && (avg_rate - 3.0).abs() < 1e-9);
        assert_eq!(json["samples"][0], json!({"sample": 30, "timestamp": 10_000}));
        assert_eq!(details::<1>(LENGTH, 4.0, 0, None), json!({"rate": 4.0}));
    }

    #[test]
    fn averages_weigh_samples_by_their_time() {
        // A minute at 10, then five seconds at 75.
        let uneven = [(65_000, 75), (60_000, 10), (0, 10)];
        assert!((average(&uneven) - (75.0 * 5.0 + 10.0 * 120.0) / 125.0).abs() < 1e-9);
        assert!((average_rate(&uneven) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn object_without_samples_has_none() {
        let nothing = json!({"rate": 0.0, "samples": [], "avg_rate": 0.0, "avg": 0.0});
        assert_eq!(details::<1>(LENGTH, 0.0, 0, Some(&Vec::new())), nothing);
        let one = details::<1>(COUNTER, 0.0, 0, Some(&vec![(5000, [7])]));
        assert_eq!((&one["avg"], &one["avg_rate"]), (&json!(7.0), &json!(0.0)));
    }
}

//! Numbers with their rates: `name` and `name_details`.

use serde_json::{Map, Value, json};

use crate::history::{Trend, Window};
use crate::snapshot::fields::{Field, StatsKind};

/// Puts the numbers of a kind into `object`.
pub(crate) fn put<const N: usize>(
    object: &mut Map<String, Value>,
    fields: &[Field; N],
    about: StatsKind,
    values: &[u64; N],
    trend: &Trend<N>,
) {
    let window = trend.window(about);
    for (at, (field, value)) in fields.iter().zip(values).enumerate() {
        if field.kind == about {
            object.insert(field.name.to_owned(), json!(value));
            let rate = trend.rates.get(at).copied().unwrap_or_default();
            object.insert(format!("{}_details", field.name), details(rate, at, window));
        }
    }
}

/// The numbers about messages as an object.
pub(crate) fn message_stats<const N: usize>(
    fields: &[Field; N],
    values: &[u64; N],
    trend: &Trend<N>,
) -> Map<String, Value> {
    let mut stats = Map::new();
    put(&mut stats, fields, StatsKind::Messages, values, trend);
    stats
}

/// The fields of a JSON object.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(fields) = value { fields } else { Map::new() }
}

#[expect(clippy::cast_precision_loss, reason = "means are not exact")]
fn details<const N: usize>(rate: f64, number: usize, window: Option<&Window<N>>) -> Value {
    let Some(window) = window else {
        return json!({"rate": rate});
    };
    let of = |numbers: &[u64; N]| numbers.get(number).copied().unwrap_or_default();
    let samples = window.iter();
    let samples = samples.map(|(at, numbers)| json!({"sample": of(numbers), "timestamp": at}));
    let samples: Vec<Value> = samples.collect();
    let sum: u64 = window.iter().map(|(_, numbers)| of(numbers)).sum();
    let average = sum as f64 / window.len().max(1) as f64;
    let average_rate = match (window.first(), window.last()) {
        (Some((last, new)), Some((first, old))) if last > first => {
            (of(new) as f64 - of(old) as f64) * 1000.0 / (last - first) as f64
        }
        _ => 0.0,
    };
    json!({"rate": rate, "samples": samples, "avg_rate": average_rate, "avg": average})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_cover_the_window() {
        let window = vec![(10_000, [30_u64]), (5000, [10]), (0, [0])];
        let json = details(4.0, 0, Some(&window));
        let [avg, avg_rate] = ["avg", "avg_rate"].map(|name| json[name].as_f64().unwrap());
        assert!((avg - 40.0 / 3.0).abs() < 1e-9 && (avg_rate - 3.0).abs() < 1e-9);
        assert_eq!(json["samples"][0], json!({"sample": 30, "timestamp": 10_000}));
        assert_eq!(details::<1>(4.0, 0, None), json!({"rate": 4.0}));
    }
}

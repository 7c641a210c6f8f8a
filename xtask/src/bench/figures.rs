//! The figures that loads are measured by: where `leveret-perf` says them, and how people read them.

use serde_json::Value;

/// A measured quantity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Figure {
    /// Messages delivered to consumers, per second.
    Consumed,
    /// Confirmed messages, per second.
    Confirmed,
    /// Messages consumed from the dead-letter queue, per second.
    DeadLettered,
    /// The broker's processor time for a message, in microseconds.
    Cpu,
    /// Latency of deliveries, in microseconds.
    P50,
    P99,
    P999,
    /// Latency of confirms, in microseconds.
    ConfirmP50,
    ConfirmP99,
    /// Time from a deadline to the arrival, in microseconds.
    LatenessP50,
    LatenessP99,
    LatenessP999,
    /// Messages that expired before their deadline.
    Early,
    /// Messages that expired twice.
    Doubled,
    /// Seconds until a backlog is confirmed, and until it is consumed; processor time for a message.
    FillTime,
    DrainTime,
    FillCpu,
    DrainCpu,
    /// Memory of a backlog: resident bytes of a full broker beyond those of an empty one.
    FillResident,
    /// Resident bytes of the broker.
    Resident,
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unit {
    PerSecond,
    Microseconds,
    Seconds,
    Clients,
    Messages,
}

impl Figure {
    /// The name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Consumed => "messages/s",
            Self::Confirmed => "confirms/s",
            Self::DeadLettered => "dead letters/s",
            Self::Cpu => "CPU per message",
            Self::P50 => "latency p50",
            Self::P99 => "latency p99",
            Self::P999 => "latency p99.9",
            Self::ConfirmP50 => "confirm latency p50",
            Self::ConfirmP99 => "confirm latency p99",
            Self::LatenessP50 => "lateness p50",
            Self::LatenessP99 => "lateness p99",
            Self::LatenessP999 => "lateness p99.9",
            Self::Early => "early",
            Self::Doubled => "doubled",
            Self::FillTime => "fill",
            Self::DrainTime => "drain",
            Self::FillCpu => "CPU per message, fill",
            Self::DrainCpu => "CPU per message, drain",
            Self::FillResident => "memory of the backlog",
            Self::Resident => "resident memory",
        }
    }

    fn unit(self) -> Unit {
        match self {
            Self::Consumed | Self::Confirmed | Self::DeadLettered => Unit::PerSecond,
            Self::Cpu
            | Self::FillCpu
            | Self::DrainCpu
            | Self::P50
            | Self::P99
            | Self::P999
            | Self::ConfirmP50
            | Self::ConfirmP99
            | Self::LatenessP50
            | Self::LatenessP99
            | Self::LatenessP999 => Unit::Microseconds,
            Self::Early | Self::Doubled => Unit::Messages,
            Self::FillTime | Self::DrainTime => Unit::Seconds,
            Self::FillResident | Self::Resident => Unit::Clients,
        }
    }

    /// True for a rate: more is better, and plots show it.
    pub(super) fn is_rate(self) -> bool {
        self.unit() == Unit::PerSecond
    }

    /// Value in the outcomes of `leveret-perf`, given as JSON; the broker had `resident_before` bytes
    /// in memory before the load.
    pub(super) fn of(self, outcomes: &Value, resident_before: u64) -> Option<f64> {
        let at = |path: &str| outcomes.pointer(path).and_then(Value::as_f64);
        match self {
            Self::Consumed => at("/0/rates/consumed"),
            Self::Confirmed => at("/0/rates/confirmed"),
            Self::DeadLettered => at("/0/rates/dead_lettered"),
            Self::Cpu | Self::FillCpu => at("/0/broker_process/cpu_us_per_message"),
            Self::DrainCpu => at("/1/broker_process/cpu_us_per_message"),
            Self::P50 => at("/0/latency_us/p50"),
            Self::P99 => at("/0/latency_us/p99"),
            Self::P999 => at("/0/latency_us/p999"),
            Self::ConfirmP50 => at("/0/confirm_latency_us/p50"),
            Self::ConfirmP99 => at("/0/confirm_latency_us/p99"),
            Self::LatenessP50 => at("/0/lateness_us/p50"),
            Self::LatenessP99 => at("/0/lateness_us/p99"),
            Self::LatenessP999 => at("/0/lateness_us/p999"),
            Self::Early => at("/0/counts/early"),
            Self::Doubled => at("/0/counts/doubled"),
            Self::FillTime => at("/0/elapsed_s"),
            Self::DrainTime => at("/1/elapsed_s"),
            Self::FillResident => {
                let full = at("/0/broker_process/resident_bytes")?;
                Some((full - resident_before as f64).max(0.0))
            }
            Self::Resident => Some(resident_before as f64),
        }
    }

    /// The value with its unit.
    pub(super) fn show(self, value: f64) -> String {
        match self.unit() {
            Unit::PerSecond | Unit::Messages => short(value),
            Unit::Microseconds if value < 1e3 => format!("{} \u{b5}s", digits(value)),
            Unit::Microseconds if value < 1e6 => format!("{} ms", digits(value / 1e3)),
            Unit::Microseconds => format!("{} s", digits(value / 1e6)),
            Unit::Seconds => format!("{} s", digits(value)),
            Unit::Clients => format!("{} MB", digits(value / 1e6)),
        }
    }
}

/// Three digits and what they count: `2.5M`.
pub(super) fn short(value: f64) -> String {
    match value {
        number if number < 999.5 => digits(number),
        number if number < 999_500.0 => format!("{}k", digits(number / 1e3)),
        number => format!("{}M", digits(number / 1e6)),
    }
}

/// Three digits that say something, without zeros behind the point.
pub(super) fn digits(value: f64) -> String {
    let decimals = match value {
        value if value < 0.1 => 3,
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The middle of values, or the mean of the two in the middle.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some((values.get(middle - 1)? + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_are_read_from_outcomes() {
        let process = json!({"cpu_us_per_message": 1.5, "resident_bytes": 90e6});
        let outcomes = json!([
            {"rates": {"consumed": 700}, "latency_us": {"p50": 12.0}, "confirm_latency_us": null,
             "elapsed_s": 0.5, "broker_process": process},
            {"elapsed_s": 0.25},
        ]);
        let of = |figure: Figure| figure.of(&outcomes, 40_000_000);
        assert_eq!(of(Figure::Consumed), Some(700.0));
        assert_eq!(of(Figure::P50), Some(12.0));
        assert_eq!(of(Figure::ConfirmP50), None);
        assert_eq!((of(Figure::FillTime), of(Figure::DrainTime)), (Some(0.5), Some(0.25)));
        assert_eq!((of(Figure::FillResident), of(Figure::Resident)), (Some(50e6), Some(40e6)));
    }

    #[test]
    fn figures_are_said_as_people_read_them() {
        assert_eq!(Figure::Consumed.show(2_034_567.0), "2.03M");
        assert_eq!(Figure::Consumed.show(300_000.0), "300k");
        assert_eq!(Figure::Cpu.show(0.4), "0.4 \u{b5}s");
        assert_eq!(Figure::P99.show(999_400.0), "999 ms");
        assert_eq!(Figure::LatenessP99.show(2.5e6), "2.5 s");
        assert_eq!(Figure::Resident.show(9_400_000.0), "9.4 MB");
        assert_eq!(Figure::Early.show(0.0), "0");
        assert_eq!(digits(0.0345), "0.035");
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    }
}

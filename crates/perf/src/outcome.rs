//! What a run came to: as a text for people and as JSON for programs.

use std::fmt::{self, Write as _};

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::measure::{Measured, Second};
use crate::meters::Counts;

/// The figures of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// The command, or a part of it: `fill`, `drain`.
    pub(crate) run: String,
    /// What the broker says of itself.
    pub(crate) broker: String,
    /// How long was measured.
    pub(crate) elapsed_s: f64,
    pub(crate) counts: Counts,
    /// The same, per second.
    pub(crate) rates: Counts,
    /// From sending a message to its delivery; of a churn, from beginning to end.
    pub(crate) latency_us: Option<Percentiles>,
    /// From sending a message to its confirm.
    pub(crate) confirm_latency_us: Option<Percentiles>,
    /// From the deadline of a message to its arrival in the dead-letter queue.
    pub(crate) lateness_us: Option<Percentiles>,
    /// When the broker's process was given.
    pub(crate) broker_process: Option<ProcessFigures>,
    pub(crate) seconds: Vec<Second>,
}

/// A distribution, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) min: f64,
    pub(crate) p50: f64,
    pub(crate) p75: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

/// What the broker's process used.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ProcessFigures {
    /// Processor time in the measured time.
    pub(crate) cpu_s: f64,
    /// Per message that arrived (or, when none did, was published), or per thing that came and went.
    pub(crate) cpu_us_per_message: f64,
    /// Resident memory at the end.
    pub(crate) resident_bytes: u64,
}

impl Outcome {
    /// From what was measured.
    pub(crate) fn new(run: &str, broker: &str, measured: Measured) -> Self {
        let Measured { elapsed, counts, latency, confirm_latency, lateness, seconds, usage } =
            measured;
        let arrived = counts.consumed.max(counts.dead_lettered);
        let done = [arrived, counts.published, counts.churned].into_iter().find(|done| *done > 0);
        let broker_process = usage.map(|usage| ProcessFigures {
            cpu_s: usage.cpu.as_secs_f64(),
            cpu_us_per_message: usage.cpu.as_secs_f64() * 1e6 / done.unwrap_or(1) as f64,
            resident_bytes: usage.resident_bytes,
        });
        Self {
            run: run.to_owned(),
            broker: broker.to_owned(),
            elapsed_s: elapsed.as_secs_f64(),
            counts,
            rates: counts.per_second(elapsed),
            latency_us: Percentiles::of(&latency),
            confirm_latency_us: Percentiles::of(&confirm_latency),
            lateness_us: Percentiles::of(&lateness),
            broker_process,
            seconds,
        }
    }
}

impl Percentiles {
    /// Of recorded nanoseconds, if there are any.
    fn of(histogram: &Histogram<u64>) -> Option<Self> {
        let us = |ns: u64| ns as f64 / 1_000.0;
        let at = |quantile| us(histogram.value_at_quantile(quantile));
        (!histogram.is_empty()).then(|| Self {
            min: us(histogram.min()),
            p50: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: us(histogram.max()),
        })
    }
}

impl fmt::Display for Percentiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { min, p50, p75, p95, p99, p999, max } = self;
        write!(
            f,
            "min {}, p50 {}, p75 {}, p95 {}, p99 {}, p99.9 {}, max {}",
            Time(*min),
            Time(*p50),
            Time(*p75),
            Time(*p95),
            Time(*p99),
            Time(*p999),
            Time(*max)
        )
    }
}

/// Microseconds as people say them.
struct Time(f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            us if us < 1_000.0 => write!(f, "{us:.0} us"),
            us if us < 1_000_000.0 => write!(f, "{:.2} ms", us / 1_000.0),
            us => write!(f, "{:.2} s", us / 1_000_000.0),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} against {}, {:.2} s", self.run, self.broker, self.elapsed_s)?;
        for ((name, count), (_, rate)) in self.counts.named().into_iter().zip(self.rates.named()) {
            if count > 0 {
                let name = name.replace('_', " ");
                writeln!(f, "  {name:<16} {:>15} {:>13}/s", grouped(count), grouped(rate))?;
            }
        }
        let distributions = [
            ("latency", &self.latency_us),
            ("confirm latency", &self.confirm_latency_us),
            ("lateness", &self.lateness_us),
        ];
        for (name, percentiles) in distributions {
            if let Some(percentiles) = percentiles {
                writeln!(f, "  {name:<16} {percentiles}")?;
            }
        }
        if let Some(process) = &self.broker_process {
            let ProcessFigures { cpu_s, cpu_us_per_message, resident_bytes } = process;
            let resident_mib = *resident_bytes as f64 / f64::from(1 << 20);
            let what = "broker process";
            writeln!(
                f,
                "  {what:<16} {cpu_s:.2} s of processor time, {cpu_us_per_message:.3} us each, \
                 {resident_mib:.1} MiB resident"
            )?;
        }
        Ok(())
    }
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        let _ = grouped.write_char(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_readable() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let said = [7.0, 1_500.0, 2_000_000.0].map(|us| Time(us).to_string());
        assert_eq!(said, ["7 us", "1.50 ms", "2.00 s"]);
    }
}

//! Report of a run, as text and as JSON.

use std::fmt;

use hdrhistogram::Histogram;
use line::one_line;
use serde::Serialize;

use crate::format::{Time, grouped};
use crate::measurement::{Latencies, Measured, Second};
use crate::metrics::Counts;

/// Results of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// Name of the command, or of a part of it: `fill`, `drain`.
    pub(crate) run: String,
    /// Product and version of the broker.
    pub(crate) broker: String,
    /// Length of the measured time, in seconds.
    pub(crate) elapsed_s: f64,
    /// True if the user has interrupted the run.
    #[serde(rename = "interrupted")]
    pub(crate) is_interrupted: bool,
    pub(crate) counts: Counts,
    /// Counts per second.
    pub(crate) rates: Counts,
    /// From sending a message to its delivery; for a churn, from opening to closing.
    pub(crate) latency_us: Option<Percentiles>,
    /// From sending a message to its arrival in the dead-letter queue, when a consumer rejected it.
    pub(crate) dead_letter_latency_us: Option<Percentiles>,
    /// From sending a message to its confirm.
    pub(crate) confirm_latency_us: Option<Percentiles>,
    /// From the deadline of a message to its arrival in the dead-letter queue.
    pub(crate) lateness_us: Option<Percentiles>,
    /// Use of resources, if the broker's process was given.
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

/// Resources that the broker's process has used.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ProcessFigures {
    /// Processor time in the measured time, in seconds.
    pub(crate) cpu_s: f64,
    /// Processor time per delivered message, or per published one if none was delivered, or per opened
    /// resource; in microseconds.
    pub(crate) cpu_us_per_message: f64,
    /// Resident memory at the end, in bytes.
    pub(crate) resident_bytes: u64,
}

impl Outcome {
    /// Results of a measurement.
    pub(crate) fn new(run: &str, broker: &str, measured: Measured) -> Self {
        let Measured { elapsed, counts, is_interrupted, latencies, seconds, usage } = measured;
        let Latencies { delivery, dead_letter, confirm, lateness } = &latencies;
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
            is_interrupted,
            counts,
            rates: counts.per_second(elapsed),
            latency_us: Percentiles::of(delivery),
            dead_letter_latency_us: Percentiles::of(dead_letter),
            confirm_latency_us: Percentiles::of(confirm),
            lateness_us: Percentiles::of(lateness),
            broker_process,
            seconds,
        }
    }
}

impl Percentiles {
    /// Percentiles of recorded nanoseconds; `None` if there are none.
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

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interrupted = if self.is_interrupted { ", interrupted" } else { "" };
        let Self { run, broker, elapsed_s, .. } = self;
        let broker = one_line(broker);
        writeln!(f, "{run} against {broker}, {elapsed_s:.2} s{interrupted}")?;
        for ((name, count), (_, rate)) in self.counts.named().into_iter().zip(self.rates.named()) {
            if count > 0 {
                let name = name.replace('_', " ");
                writeln!(f, "  {name:<16} {:>15} {:>13}/s", grouped(count), grouped(rate))?;
            }
        }
        let distributions = [
            ("latency", &self.latency_us),
            ("dead letters", &self.dead_letter_latency_us),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_the_broker_ends_no_line() {
        let outcome = Outcome {
            run: "churn".to_owned(),
            broker: "Rabbit\nMQ \u{1b}[2J".to_owned(),
            elapsed_s: 1.0,
            is_interrupted: false,
            counts: Counts::default(),
            rates: Counts::default(),
            latency_us: None,
            dead_letter_latency_us: None,
            confirm_latency_us: None,
            lateness_us: None,
            broker_process: None,
            seconds: Vec::new(),
        };
        assert_eq!(outcome.to_string(), "churn against Rabbit\\nMQ \\u{1b}[2J, 1.00 s\n");
    }
}

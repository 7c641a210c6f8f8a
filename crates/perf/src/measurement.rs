//! Measurement of a run: warm-up, the measured time, a sample each second.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use hdrhistogram::Histogram;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::broker_process::{BrokerProcess, Usage};
use crate::format::{Short, Time};
use crate::metrics::{Counts, Metrics, histogram};

/// Interval of checks for the end of a run, and so the precision of its time.
const TICK: Duration = Duration::from_millis(10);

/// Interval of samples.
const INTERVAL: Duration = Duration::from_secs(1);

/// Shortest rest of a run behind its last whole second that gets a sample.
const LAST_INTERVAL_MIN: Duration = Duration::from_millis(200);

/// Condition for the end of a run.
pub(crate) enum Until {
    /// After a time, which begins behind a warm-up that does not count.
    Time { warm_up: Duration, measured: Duration },
    /// Once the function is true for the counts; after the time it is an error.
    Counts { reached: Box<dyn Fn(&Counts) -> bool + Send>, within: Duration },
}

/// One second of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Second {
    /// Seconds since the run began.
    pub(crate) at_s: f64,
    /// Counts in this second, per second.
    pub(crate) rates: Counts,
    /// Median and 99th percentile in microseconds, when something was measured: of what the run is
    /// about (deliveries, expiries, what comes and goes), or else of confirms.
    pub(crate) latency_us: Option<[f64; 2]>,
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) elapsed: Duration,
    pub(crate) counts: Counts,
    /// True if the user has interrupted the run.
    pub(crate) is_interrupted: bool,
    pub(crate) latencies: Latencies,
    pub(crate) seconds: Vec<Second>,
    pub(crate) usage: Option<Usage>,
}

/// DeliveryKind was timed, in nanoseconds; the kinds are those of [`Metrics`].
#[derive(Debug)]
pub(crate) struct Latencies {
    pub(crate) delivery: Histogram<u64>,
    pub(crate) dead_letter: Histogram<u64>,
    pub(crate) confirm: Histogram<u64>,
    pub(crate) lateness: Histogram<u64>,
}

impl Latencies {
    /// Takes the latencies that the tasks have recorded since the last call.
    fn taken_from(metrics: &Metrics) -> Self {
        Self {
            delivery: metrics.latency.take(),
            dead_letter: metrics.dead_letter_latency.take(),
            confirm: metrics.confirm_latency.take(),
            lateness: metrics.lateness.take(),
        }
    }

    fn none() -> Self {
        Self {
            delivery: histogram(),
            dead_letter: histogram(),
            confirm: histogram(),
            lateness: histogram(),
        }
    }

    fn add(&mut self, more: &Self) {
        self.delivery += &more.delivery;
        self.dead_letter += &more.dead_letter;
        self.confirm += &more.confirm;
        self.lateness += &more.lateness;
    }

    /// The latency that a sample shows: the one that the run measures, or else that of confirms.
    fn told(&self) -> Option<&Histogram<u64>> {
        [&self.delivery, &self.lateness, &self.confirm].into_iter().find(|kind| !kind.is_empty())
    }
}

/// Watches the tasks until the end of the run, then ends them, which closes their connections. The run
/// fails when a task fails.
///
/// # Errors
/// If a task fails, or the time is over before the counts are reached.
pub(crate) async fn watch(
    metrics: &Arc<Metrics>,
    mut tasks: JoinSet<Result<()>>,
    until: Until,
    process: Option<BrokerProcess>,
    is_quiet: bool,
) -> Result<Measured> {
    let measured = watch_tasks(metrics, &mut tasks, until, process, is_quiet).await;
    tasks.shutdown().await;
    measured
}

async fn watch_tasks(
    metrics: &Arc<Metrics>,
    tasks: &mut JoinSet<Result<()>>,
    until: Until,
    process: Option<BrokerProcess>,
    is_quiet: bool,
) -> Result<Measured> {
    let mut watcher = Watcher::new(Arc::clone(metrics), process, is_quiet)?;
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_warm = !matches!(until, Until::Time { .. });
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = &mut interrupted => return watcher.finish(true),
            Some(ended) = tasks.join_next() => ended??,
        }
        watcher.tell();
        match &until {
            Until::Time { warm_up, .. } if !is_warm => {
                if watcher.elapsed() >= *warm_up {
                    watcher.begin_again()?;
                    is_warm = true;
                }
            }
            Until::Time { measured, .. } if watcher.elapsed() >= *measured => {
                return watcher.finish(false);
            }
            Until::Counts { reached, .. } if reached(&watcher.counts()) => {
                return watcher.finish(false);
            }
            Until::Counts { within, .. } if watcher.elapsed() >= *within => {
                let counts = watcher.counts();
                bail!("not finished after {} s: {counts:?}", within.as_secs());
            }
            Until::Time { .. } | Until::Counts { .. } => {}
        }
    }
}

/// Counts and latencies since the beginning of the measured time.
struct Watcher {
    metrics: Arc<Metrics>,
    process: Option<BrokerProcess>,
    is_quiet: bool,
    run_began: Instant,
    began: Instant,
    base: Counts,
    usage_base: Option<Usage>,
    told: Instant,
    told_counts: Counts,
    latencies: Latencies,
    seconds: Vec<Second>,
}

impl Watcher {
    fn new(metrics: Arc<Metrics>, process: Option<BrokerProcess>, is_quiet: bool) -> Result<Self> {
        let now = Instant::now();
        let usage_base = process.as_ref().map(BrokerProcess::usage).transpose()?;
        Ok(Self {
            metrics,
            process,
            is_quiet,
            run_began: now,
            began: now,
            base: Counts::default(),
            usage_base,
            told: now,
            told_counts: Counts::default(),
            latencies: Latencies::none(),
            seconds: Vec::new(),
        })
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn counts(&self) -> Counts {
        self.metrics.counters.read().since(&self.base)
    }

    /// Begins the measured time: the warm-up does not count.
    fn begin_again(&mut self) -> Result<()> {
        self.take();
        self.latencies = Latencies::none();
        self.usage_base = self.process.as_ref().map(BrokerProcess::usage).transpose()?;
        self.base = self.metrics.counters.read();
        self.began = Instant::now();
        Ok(())
    }

    /// Takes the latencies that the tasks have recorded, adds them to the total, and returns them.
    fn take(&mut self) -> Latencies {
        let second = Latencies::taken_from(&self.metrics);
        self.latencies.add(&second);
        second
    }

    /// Samples a second that is over.
    fn tell(&mut self) {
        if self.told.elapsed() >= INTERVAL {
            self.sample();
        }
    }

    /// Samples the time since the last sample, and prints it.
    fn sample(&mut self) {
        let elapsed = self.told.elapsed();
        self.told = Instant::now();
        let counts = self.metrics.counters.read();
        let rates = counts.since(&self.told_counts).per_second(elapsed);
        self.told_counts = counts;
        let latencies = self.take();
        let latency_us = latencies.told().map(|told| {
            [0.5, 0.99].map(|quantile| told.value_at_quantile(quantile) as f64 / 1_000.0)
        });
        let second = Second { at_s: self.run_began.elapsed().as_secs_f64(), rates, latency_us };
        if !self.is_quiet {
            show(&second);
        }
        self.seconds.push(second);
    }

    fn finish(mut self, is_interrupted: bool) -> Result<Measured> {
        let elapsed = self.elapsed();
        let counts = self.counts();
        if self.told.elapsed() >= LAST_INTERVAL_MIN {
            self.sample();
        } else {
            self.take();
        }
        let usage = match (&self.process, self.usage_base) {
            (Some(process), Some(base)) => Some(process.usage()?.since(base)),
            _ => None,
        };
        if !self.is_quiet && stderr().is_terminal() {
            eprintln!();
        }
        Ok(Measured {
            elapsed,
            counts,
            is_interrupted,
            latencies: self.latencies,
            seconds: self.seconds,
            usage,
        })
    }
}

/// Prints one line to stderr; on a terminal it overwrites the line before.
fn show(second: &Second) {
    let mut line = format!("{:6.1} s", second.at_s);
    for (name, rate) in second.rates.named().into_iter().filter(|(_, rate)| *rate > 0) {
        let _ = write!(line, "  {} {}/s", name.replace('_', " "), Short(rate as f64));
    }
    if let Some([median, p99]) = second.latency_us {
        let _ = write!(line, "  p50 {}, p99 {}", Time(median), Time(p99));
    }
    let (begin, end) = if stderr().is_terminal() { ("\r\x1b[K", "") } else { ("", "\n") };
    let _ = write!(stderr(), "{begin}{line}{end}").and_then(|()| stderr().flush());
}

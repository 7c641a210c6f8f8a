//! Watches a run from its beginning to its end: warm-up, the measured time, a figure each second.

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
use crate::figure::{Short, Time};
use crate::meters::{Counts, Meters, histogram};

/// How often the end of a run is looked for, and how exact its time is.
const TICK: Duration = Duration::from_millis(10);

/// How often a figure is told.
const INTERVAL: Duration = Duration::from_secs(1);

/// What is left of a run behind its last whole second gets a figure when it is so long.
const LAST_INTERVAL_MIN: Duration = Duration::from_millis(200);

/// When a run is over.
pub(crate) enum Until {
    /// After so long, behind a warm-up that does not count.
    Time { warm_up: Duration, measured: Duration },
    /// When the counts are what the function waits for; within this time.
    Counts { reached: Box<dyn Fn(&Counts) -> bool + Send>, within: Duration },
}

/// One second of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Second {
    /// Seconds since the run began.
    pub(crate) at_s: f64,
    /// What happened in it, per second.
    pub(crate) rates: Counts,
    /// Median and 99th percentile in microseconds, when something was measured: of what the run is
    /// about (deliveries, expiries, what comes and goes), or else of confirms.
    pub(crate) latency_us: Option<[f64; 2]>,
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) elapsed: Duration,
    pub(crate) counts: Counts,
    /// Whether the user ended it before its time.
    pub(crate) is_interrupted: bool,
    pub(crate) latencies: Latencies,
    pub(crate) seconds: Vec<Second>,
    pub(crate) usage: Option<Usage>,
}

/// What was timed, in nanoseconds; the kinds are those of [`Meters`].
#[derive(Debug)]
pub(crate) struct Latencies {
    pub(crate) delivery: Histogram<u64>,
    pub(crate) dead_letter: Histogram<u64>,
    pub(crate) confirm: Histogram<u64>,
    pub(crate) lateness: Histogram<u64>,
}

impl Latencies {
    /// What the tasks have recorded since the last time.
    fn taken_from(meters: &Meters) -> Self {
        Self {
            delivery: meters.latency.take(),
            dead_letter: meters.dead_letter_latency.take(),
            confirm: meters.confirm_latency.take(),
            lateness: meters.lateness.take(),
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

    /// The kind that a second is told with: one of them is what the run is about.
    fn told(&self) -> Option<&Histogram<u64>> {
        [&self.delivery, &self.lateness, &self.confirm].into_iter().find(|kind| !kind.is_empty())
    }
}

/// Watches until the end, and ends the tasks, whose connections are closed then; when one of them
/// fails, the run does.
///
/// # Errors
/// When a task fails, or the time is over before the counts are reached.
pub(crate) async fn watch(
    meters: &Arc<Meters>,
    mut tasks: JoinSet<Result<()>>,
    until: Until,
    process: Option<BrokerProcess>,
    is_quiet: bool,
) -> Result<Measured> {
    let measured = watch_tasks(meters, &mut tasks, until, process, is_quiet).await;
    tasks.shutdown().await;
    measured
}

async fn watch_tasks(
    meters: &Arc<Meters>,
    tasks: &mut JoinSet<Result<()>>,
    until: Until,
    process: Option<BrokerProcess>,
    is_quiet: bool,
) -> Result<Measured> {
    let mut watcher = Watcher::new(Arc::clone(meters), process, is_quiet)?;
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

/// The figures since a beginning.
struct Watcher {
    meters: Arc<Meters>,
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
    fn new(meters: Arc<Meters>, process: Option<BrokerProcess>, is_quiet: bool) -> Result<Self> {
        let now = Instant::now();
        let usage_base = process.as_ref().map(BrokerProcess::usage).transpose()?;
        Ok(Self {
            meters,
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
        self.meters.counters.read().since(&self.base)
    }

    /// The warm-up is over: nothing that was measured counts.
    fn begin_again(&mut self) -> Result<()> {
        self.take();
        self.latencies = Latencies::none();
        self.usage_base = self.process.as_ref().map(BrokerProcess::usage).transpose()?;
        self.base = self.meters.counters.read();
        self.began = Instant::now();
        Ok(())
    }

    /// Moves what the tasks have recorded to the whole; the second's own is returned.
    fn take(&mut self) -> Latencies {
        let second = Latencies::taken_from(&self.meters);
        self.latencies.add(&second);
        second
    }

    /// Tells the figures of a second that is over.
    fn tell(&mut self) {
        if self.told.elapsed() >= INTERVAL {
            self.sample();
        }
    }

    /// Notes what happened since the last time, and tells it.
    fn sample(&mut self) {
        let elapsed = self.told.elapsed();
        self.told = Instant::now();
        let counts = self.meters.counters.read();
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

/// One line on stderr, written over the one before when a person looks.
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

//! The progress of a program, on a machine of any speed.
//!
//! Decides when a program counts as hung: by its output and its processor time, not by the time that it has taken.
//! A program that prints makes progress. A silent one that has used much processor time goes round in a circle, and
//! one that uses none waits for something that does not come; one that starves is neither.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, getpid};

/// Longest time without output of a program that waits.
const IDLE_SILENCE_MAX: Duration = Duration::from_mins(15);

/// Processor time below which a silent program counts as waiting.
const IDLE_CPU_TIME_MAX: Duration = Duration::from_secs(20);

/// Most processor time between two pieces of output: several times that of the longest silent task, which is
/// linking the broker.
const SILENT_CPU_TIME_MAX: Duration = Duration::from_mins(20);

/// Interval between two looks at the files of all processes.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// The reason for which a program counts as hung.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Hung {
    /// No output and next to no work for so long.
    Idle(Duration),
    /// So much processor time without output.
    Circles(Duration),
}

impl fmt::Display for Hung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle(time) => write!(f, "no output and no work for {} s", time.as_secs()),
            Self::Circles(time) => {
                write!(f, "{} s of processor time without output", time.as_secs())
            }
        }
    }
}

/// The progress of the programs of one process group, which write into one log.
#[derive(Debug)]
pub(crate) struct Activity {
    log: PathBuf,
    group: Option<Pid>,
    start: Instant,
    progress: Progress,
    cpu_time_max: Duration,
}

impl Activity {
    /// Begins to watch.
    pub(crate) fn new(log: &Path, group: Option<Pid>) -> Self {
        let (start, progress) = (Instant::now(), Progress::default());
        Self { log: log.to_owned(), group, start, progress, cpu_time_max: Duration::ZERO }
    }

    /// Looks at the log and the processes, unless that was done just before.
    ///
    /// # Errors
    /// When the programs count as hung.
    pub(crate) fn look(&mut self) -> Result<(), Hung> {
        let now = self.start.elapsed();
        if now < self.progress.looked_at + LOOK_INTERVAL {
            return Ok(());
        }
        let log_bytes = fs::metadata(&self.log).map_or(0, |log| log.len());
        let cpu_time = self.group.map_or(Duration::ZERO, cpu_time_of_group);
        self.cpu_time_max = self.cpu_time_max.max(cpu_time);
        self.progress.look(now, log_bytes, cpu_time)
    }

    /// Processor time that the programs had used at one of the looks, the most of all looks: up to two seconds of each
    /// processor are missing.
    pub(crate) const fn cpu_time(&self) -> Duration {
        self.cpu_time_max
    }
}

/// State at the last output, and at the last look.
#[derive(Debug, Default)]
struct Progress {
    looked_at: Duration,
    log_bytes: u64,
    output_at: Duration,
    cpu_time_at_output: Duration,
}

impl Progress {
    fn look(&mut self, now: Duration, log_bytes: u64, cpu_time: Duration) -> Result<(), Hung> {
        self.looked_at = now;
        if log_bytes != self.log_bytes {
            self.log_bytes = log_bytes;
            self.output_at = now;
            self.cpu_time_at_output = cpu_time;
        }
        // A process that ends takes its time along when nobody has waited for it: the sum may shrink.
        self.cpu_time_at_output = self.cpu_time_at_output.min(cpu_time);
        let silence = now - self.output_at;
        let work = cpu_time - self.cpu_time_at_output;
        if work >= SILENT_CPU_TIME_MAX {
            return Err(Hung::Circles(work));
        }
        if silence >= IDLE_SILENCE_MAX && work <= IDLE_CPU_TIME_MAX {
            return Err(Hung::Idle(silence));
        }
        Ok(())
    }
}

/// Processor time of the programs that this one has started and that have ended.
pub(crate) fn cpu_time_of_children() -> Duration {
    let text = fs::read_to_string(format!("/proc/{}/stat", getpid().as_raw_nonzero()));
    let stat = text.ok().and_then(|text| Stat::read(&text));
    stat.map_or(Duration::ZERO, |stat| duration(stat.ticks_of_children))
}

/// Processor time of all processes of a group and of those that they have waited for; nothing where there is no
/// `/proc`.
fn cpu_time_of_group(group: Pid) -> Duration {
    let group = i64::from(group.as_raw_nonzero().get());
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let stats = texts.filter_map(|text| Stat::read(&text)).filter(|stat| stat.group == group);
    duration(stats.map(|stat| stat.ticks + stat.ticks_of_children).sum())
}

fn duration(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 1000 / clock_ticks_per_second().max(1))
}

/// The fields of `/proc/PID/stat` that are needed.
#[derive(Debug, Eq, PartialEq)]
struct Stat {
    group: i64,
    ticks: u64,
    ticks_of_children: u64,
}

impl Stat {
    fn read(text: &str) -> Option<Self> {
        // The name of the program, in brackets, may contain anything.
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<i64> =
            fields.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
        let ticks = |user: usize| -> Option<u64> {
            u64::try_from(fields.get(user)? + fields.get(user + 1)?).ok()
        };
        Some(Self { group: *fields.get(1)?, ticks: ticks(10)?, ticks_of_children: ticks(12)? })
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::getpgrp;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn program_that_prints_makes_progress() {
        let mut progress = Progress::default();
        for minute in 1..600 {
            assert_eq!(progress.look(minute * MINUTE, u64::from(minute), Duration::ZERO), Ok(()));
        }
    }

    #[test]
    fn silent_program_that_waits_is_hung() {
        let mut progress = Progress::default();
        assert_eq!(progress.look(MINUTE, 1, MINUTE), Ok(()));
        assert_eq!(progress.look(15 * MINUTE, 1, MINUTE), Ok(()));
        assert_eq!(progress.look(16 * MINUTE, 1, MINUTE), Err(Hung::Idle(15 * MINUTE)));
    }

    #[test]
    fn silent_program_that_starves_is_not_hung() {
        let mut progress = Progress::default();
        assert_eq!(progress.look(120 * MINUTE, 0, 19 * MINUTE), Ok(()));
        assert_eq!(progress.look(121 * MINUTE, 0, 20 * MINUTE), Err(Hung::Circles(20 * MINUTE)));
    }

    #[test]
    fn processor_time_may_shrink() {
        let mut progress = Progress::default();
        assert_eq!(progress.look(MINUTE, 1, 10 * MINUTE), Ok(()));
        assert_eq!(progress.look(2 * MINUTE, 1, MINUTE), Ok(()));
    }

    #[test]
    fn stat_has_a_name_with_brackets() {
        let text = "7 (a ) b) S 1 70 70 0 -1 0 0 0 0 0 3 4 50 60 20 0 1 0 9 9 9\n";
        let stat = Stat { group: 70, ticks: 7, ticks_of_children: 110 };
        assert_eq!(Stat::read(text), Some(stat));
        assert_eq!(Stat::read("nonsense"), None);
    }

    #[test]
    fn own_group_has_used_processor_time() {
        while Path::new("/proc/self/stat").exists() && cpu_time_of_group(getpgrp()).is_zero() {
            std::hint::spin_loop();
        }
    }
}

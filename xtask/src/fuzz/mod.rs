//! `cargo xtask fuzz`: input that a fuzzer makes up, for seconds or for hours.
//!
//! Decides which targets run, for how long, and what is said about each. The targets are a table in
//! `targets`, how one is run is in `campaign`, what libFuzzer prints is read in `report`. Everything
//! works with the toolchain of the repository: coverage needs no nightly, only sanitizers would.

mod campaign;
mod report;
mod targets;

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::builder::PossibleValuesParser;

use self::campaign::Campaign;
use self::report::Report;
use self::targets::{TARGETS, Target};
use crate::test::{self, Place};
use crate::{process, repository};

/// How long each target of a test run is fuzzed beyond its seeds.
const TEST_SECONDS: u64 = 3;

/// What `cargo xtask fuzz` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run only these targets
    #[arg(value_name = "TARGET", value_parser = target_names())]
    targets: Vec<String>,

    /// How long each target runs
    #[arg(long, default_value_t = 5)]
    seconds: u64,

    /// How many hours each target runs
    #[arg(long, conflicts_with = "seconds")]
    hours: Option<u64>,
}

fn target_names() -> PossibleValuesParser {
    PossibleValuesParser::new(TARGETS.iter().map(|target| target.name))
}

/// Runs the targets that the options ask for, one after the other.
///
/// # Errors
/// When a target has found something, or cannot be built here.
pub(crate) fn run(options: &Options) -> Result<()> {
    test::set_up(&["fuzzer", "fuzz-packages"])?;
    process::watch_for_interrupts()?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let log = target.join("xtask").join("logs").join("fuzz.log");
    fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
    let place = Place { root: &root, target: &target, log: &log };
    let seconds = options.hours.map_or(options.seconds, |hours| hours * 3600);
    // What was found before is where it goes on.
    let campaign = Campaign::new(&place, seconds, &place.target.join("xtask").join("fuzz"))?;
    let is_asked = |target: &&Target| {
        options.targets.is_empty() || options.targets.iter().any(|name| name == target.name)
    };
    let mut findings = 0;
    for target in TARGETS.iter().filter(is_asked) {
        let report = campaign.run(target)?;
        println!("{:<14} {report}", target.name);
        findings += usize::from(report.finding.is_some());
    }
    ensure!(findings == 0, "{findings} targets have found something; {}", place.log.display());
    Ok(())
}

/// Plays the seeds of every target and fuzzes it for a moment, for `cargo xtask test`; how many inputs
/// were tried.
///
/// # Errors
/// As [`run`].
pub(crate) fn short(place: &Place<'_>) -> Result<u64> {
    let scratch = place.target.join("xtask").join("fuzz-test");
    if scratch.exists() {
        // A test begins with the seeds and nothing else.
        fs::remove_dir_all(&scratch)
            .with_context(|| format!("cannot empty {}", scratch.display()))?;
    }
    let campaign = Campaign::new(place, TEST_SECONDS, &scratch)?;
    let mut executions = 0;
    for target in TARGETS {
        let Report { finding, executions: more, .. } = campaign.run(target)?;
        ensure!(finding.is_none(), "{}: {}", target.name, finding.unwrap_or_default());
        executions += more;
    }
    Ok(executions)
}

/// Longest time for something that takes `seconds`: machines are slow and busy.
fn time_max(seconds: u64) -> Duration {
    Duration::from_secs(seconds * 2) + Duration::from_mins(10)
}

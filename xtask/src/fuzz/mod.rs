//! `cargo xtask fuzz`: input that a fuzzer makes up, for seconds or for hours.
//!
//! Decides which targets run, for how long, and what is printed about each. The targets are a table in
//! `targets`; `campaign` builds and runs one; `report` reads the output of libFuzzer. Everything works with
//! the toolchain of the repository: only sanitizers would need a nightly one.

mod campaign;
mod report;
mod targets;

use std::fs;

use anyhow::{Context as _, Result, ensure};
use clap::builder::PossibleValuesParser;

pub(crate) use self::campaign::Campaign;
pub(crate) use self::targets::{TARGETS, Target};
use crate::place::Place;
use crate::{process, repository, test};

/// Options of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run only these targets
    #[arg(value_name = "TARGET", value_parser = target_names())]
    targets: Vec<String>,

    /// Seconds that each target runs
    #[arg(long, default_value_t = 5)]
    seconds: u64,

    /// Hours that each target runs
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
    test::set_up(&["fuzz-packages"])?;
    process::watch_for_interrupts()?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let log = target.join("xtask").join("logs").join("fuzz.log");
    fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
    let place = Place::new(&root, &target, &log);
    let seconds = options.hours.map_or(options.seconds, |hours| hours * 3600);
    // A run goes on from the inputs that earlier runs have found.
    let found = place.target.join("xtask").join("fuzz");
    let campaign = Campaign::new(&place, &found)?;
    let is_asked = |target: &&Target| {
        options.targets.is_empty() || options.targets.iter().any(|name| name == target.name)
    };
    let mut findings = 0;
    for target in TARGETS.iter().filter(is_asked) {
        let report = campaign.run(target, seconds)?;
        println!("{:<14} {report}", target.name);
        findings += usize::from(report.finding.is_some());
    }
    ensure!(findings == 0, "{findings} targets have found something; logs: {}", log.display());
    Ok(())
}

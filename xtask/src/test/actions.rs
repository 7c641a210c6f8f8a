//! The programs that each kind of step runs.
//!
//! Knows the programs and their arguments; not which steps there are. Every program writes into
//! the log of the step and has the step's time.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::steps::{Action, Step};
use super::tally::Tally;
use super::{clippy, packages, python};
use crate::broker_process::BrokerProcess;
use crate::instructions::check as check_instructions;
use crate::place::Place;
use crate::{dist, process, repository, tidy};

/// Result of a step that did not fail.
#[derive(Debug)]
pub(super) enum Outcome {
    Done,
    Counted(Tally),
    /// The step needs a program that is optional and missing; with the reason.
    LeftOut(String),
}

impl Outcome {
    /// The result in a few words: `ok`, `231 black-box tests (2 skipped)`.
    pub(super) fn describe(&self, step: &Step) -> String {
        match self {
            Self::Done => "ok".to_owned(),
            Self::Counted(tally) => tally.describe(step.counts.unwrap_or("passed")),
            Self::LeftOut(reason) => format!("left out: {reason}"),
        }
    }
}

/// Runs the action of the step.
///
/// # Errors
/// When the check of the step fails, or it cannot run here.
pub(super) fn run(step: &Step, place: &Place<'_>) -> Result<Outcome> {
    match &step.action {
        Action::Cargo(arguments) => cargo(arguments, step, place),
        Action::ReleaseBuild(packages) => {
            cargo(&[&["build", "--release"], *packages].concat(), step, place)
        }
        Action::OptionalCargo { arguments, install } => {
            let subcommand = arguments.first().copied().unwrap_or_default();
            if is_installed(subcommand) {
                cargo(arguments, step, place)
            } else {
                let reason = format!("cargo-{subcommand} is not installed ({install})");
                Ok(Outcome::LeftOut(reason))
            }
        }
        Action::Lints => {
            process::run(clippy::build(place)?, place.log, step.time_max)?;
            Ok(Outcome::Done)
        }
        Action::RustTests => {
            process::run(clippy::test(place)?, place.log, step.time_max)?;
            Ok(Outcome::Counted(Tally::of_cargo(&read_log(place.log)?)?))
        }
        Action::Tidy => tidy(place),
        Action::PythonPackages(lists) => {
            python::install(lists, place, step.time_max)?;
            Ok(Outcome::Done)
        }
        Action::Python { program, arguments } => {
            let mut command = Command::new(python::interpreter(place));
            command.arg(place.root.join(program)).arg("--leveret").arg(broker_binary(place)?);
            command.args(*arguments).current_dir(place.root);
            process::run(command, place.log, step.time_max)?;
            Ok(Outcome::Counted(Tally::of_suite(&read_log(place.log)?)?))
        }
        Action::InteropClients => {
            let mut command = Command::new(python::interpreter(place));
            command.arg(place.root.join("tests/interop/matrix.py")).arg("--prepare");
            command.arg("--work").arg(place.target.join("xtask").join("interop"));
            command.current_dir(place.root);
            process::run(command, place.log, step.time_max)?;
            Ok(Outcome::Done)
        }
        Action::Pytest { folder, arguments } => pytest(folder, arguments, step, place),
        Action::DebianPackages(list) => {
            packages::install_list(list, place, step.time_max)?;
            Ok(Outcome::Done)
        }
        Action::Instructions => instructions(place),
        Action::Packages(folder) => {
            let programs = [
                broker_binary(place)?,
                place.target.join("debug").join("leveretctl"),
                place.target.join("debug").join("leveret-perf"),
            ];
            let packages = dist::pack_for_test(&programs, place)?;
            pytest(folder, &[&format!("--packages={}", packages.display())], step, place)
        }
        Action::DebianFiles(package) => {
            packages::unpack(package, place, step.time_max)?;
            Ok(Outcome::Done)
        }
        Action::AgainstBroker(program) => against_broker(program, step, place),
    }
}

fn cargo(arguments: &[&str], step: &Step, place: &Place<'_>) -> Result<Outcome> {
    let mut command = Command::new(repository::cargo());
    command.args(arguments).current_dir(place.root).env("CARGO_TERM_COLOR", "never");
    process::run(command, place.log, step.time_max)?;
    Ok(Outcome::Done)
}

/// True if cargo finds the subcommand, which is a program on the path.
fn is_installed(subcommand: &str) -> bool {
    let program = format!("cargo-{subcommand}");
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| folder.join(&program).is_file())
}

fn instructions(place: &Place<'_>) -> Result<Outcome> {
    let (cases, table) = check_instructions(place)?;
    let mut log = fs::OpenOptions::new().append(true).open(place.log)?;
    writeln!(log, "{table}")?;
    Ok(Outcome::Counted(Tally::of_checks(cases)?))
}

fn tidy(place: &Place<'_>) -> Result<Outcome> {
    let report = tidy::report()?;
    let mut log = fs::OpenOptions::new().append(true).open(place.log)?;
    for line in report.notes.iter().chain(&report.faults) {
        writeln!(log, "{line}")?;
    }
    ensure!(report.faults.is_empty(), "{} faults in {} files", report.faults.len(), report.files);
    Ok(Outcome::Done)
}

fn pytest(folder: &str, arguments: &[&str], step: &Step, place: &Place<'_>) -> Result<Outcome> {
    let mut command = Command::new(python::interpreter(place));
    command.args(["-m", "pytest", "--color=no", "--broker=leveret"]).args(arguments);
    command.env("LEVERET_BIN", broker_binary(place)?).current_dir(place.root.join(folder));
    // The tools are tested as the step `clippy` has built them: with assertions, and not optimised.
    let tools = place.target.join("debug");
    command.env("LEVERETCTL_BIN", tools.join("leveretctl"));
    command.env("LEVERET_PERF_BIN", tools.join("leveret-perf"));
    process::run(command, place.log, step.time_max)?;
    Ok(Outcome::Counted(Tally::of_suite(&read_log(place.log)?)?))
}

fn against_broker(program: &str, step: &Step, place: &Place<'_>) -> Result<Outcome> {
    let broker = BrokerProcess::start(&broker_binary(place)?, place.log)?;
    let mut command = Command::new(place.root.join(program));
    command.arg(&broker.amqp_address).current_dir(place.root);
    process::run(command, place.log, step.time_max)?;
    broker.stop()?;
    Ok(Outcome::Counted(Tally::of_suite(&read_log(place.log)?)?))
}

/// The broker that the step `build` has built.
///
/// # Errors
/// When there is none.
pub(super) fn broker_binary(place: &Place<'_>) -> Result<PathBuf> {
    release_binary("leveret", place)
}

/// A program that the step `build` has built.
///
/// # Errors
/// When there is none.
pub(super) fn release_binary(name: &str, place: &Place<'_>) -> Result<PathBuf> {
    let binary = place.target.join("release").join(name);
    if !binary.is_file() {
        bail!("there is no {}: run the step `build`", binary.display());
    }
    Ok(binary)
}

/// Text of a log.
///
/// # Errors
/// When the log is gone.
pub(super) fn read_log(log: &Path) -> Result<String> {
    let bytes = fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

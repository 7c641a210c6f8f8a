//! The programs that each kind of step runs.
//!
//! Knows the programs and their arguments; not which steps there are. Every program writes into
//! the log of the step and has the step's time.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::quick::Change;
use super::steps::{Action, Step};
use super::table::STEPS;
use super::tally::Tally;
use super::{clippy, packages, python};
use crate::broker_process::BrokerProcess;
use crate::instructions::{build as build_instructions, check as check_instructions};
use crate::place::Place;
use crate::{dist, process, repository, tidy};

/// The part of its tests that a step runs.
#[derive(Debug)]
pub(super) enum Part {
    All,
    /// The tests with this in their name, or this name.
    Filter(String),
    /// The tests that a quick run has for a change.
    Quick(Change),
}

/// Result of a step that did not fail.
#[derive(Debug)]
pub(super) enum Outcome {
    Done,
    Counted(Tally),
}

impl Outcome {
    /// The result in a few words: `ok`, `231 black-box tests (2 skipped)`.
    pub(super) fn describe(&self, step: &Step) -> String {
        match self {
            Self::Done => "ok".to_owned(),
            Self::Counted(tally) => tally.describe(step.counts.unwrap_or("passed")),
        }
    }
}

/// Runs the action of the step.
///
/// # Errors
/// When the check of the step fails, or it cannot run here.
pub(super) fn run(step: &Step, part: &Part, place: &Place<'_>) -> Result<Outcome> {
    match &step.action {
        Action::Cargo(arguments) => cargo(arguments, place),
        Action::SuiteBuild => {
            let packages = [repository::BROKER_PACKAGE, repository::SIMULATOR_PACKAGE].concat();
            cargo(&[&["build", "--profile", repository::SUITE_PROFILE], &*packages].concat(), place)
        }
        Action::ReleaseBuild => {
            cargo(&[&["build", "--release"], repository::BROKER_PACKAGE].concat(), place)?;
            cargo(&[&["build", "--release"], repository::TOOL_PACKAGES].concat(), place)
        }
        Action::Lints => {
            process::run_while_active(clippy::build(place)?, place)?;
            Ok(Outcome::Done)
        }
        Action::RustTests => rust_tests(part, place),
        Action::Tidy => tidy(place),
        Action::PythonPackages(lists) => {
            python::install(lists, place)?;
            Ok(Outcome::Done)
        }
        Action::PythonLints => python_lints(place),
        Action::Python { program, arguments } => {
            let mut command = Command::new(python::interpreter(place));
            command.arg(place.root.join(program)).arg("--leveret").arg(broker_binary(place)?);
            command.args(*arguments).current_dir(place.root);
            process::run_while_active(command, place)?;
            Ok(Outcome::Counted(Tally::of_suite(&read_log(place.log)?)?))
        }
        Action::InteropClients => {
            let mut command = Command::new(python::interpreter(place));
            command.arg(place.root.join("tests/interop/matrix.py")).arg("--prepare");
            command.arg("--work").arg(place.target.join("xtask").join("interop"));
            command.current_dir(place.root);
            process::run_while_active(command, place)?;
            Ok(Outcome::Done)
        }
        Action::Pytest { folder, arguments } => match part {
            Part::Quick(change) => smoke(folder, change, place),
            Part::All | Part::Filter(_) => pytest(folder, arguments, part, place),
        },
        Action::DebianPackages(list) => {
            packages::install_list(list, place)?;
            Ok(Outcome::Done)
        }
        Action::InstructionsBuild => {
            build_instructions(place)?;
            Ok(Outcome::Done)
        }
        Action::Instructions => count_instructions(place),
        Action::Simulator(arguments) => {
            let mut command =
                Command::new(program(repository::SUITE_PROFILE, "leveret-sim", place)?);
            command.args(*arguments).current_dir(place.root);
            process::run_while_active(command, place)?;
            Ok(Outcome::Done)
        }
        Action::Packages(folder) => {
            let programs = [
                broker_binary(place)?,
                place.target.join("debug").join("leveretctl"),
                place.target.join("debug").join("leveret-perf"),
            ];
            let packages = dist::pack_for_test(&programs, place)?;
            pytest(folder, &[&format!("--packages={}", packages.display())], part, place)
        }
        Action::DebianFiles(package) => {
            packages::unpack(package, place)?;
            Ok(Outcome::Done)
        }
        Action::AgainstBroker(program) => against_broker(program, place),
    }
}

fn cargo(arguments: &[&str], place: &Place<'_>) -> Result<Outcome> {
    let mut command = Command::new(repository::cargo());
    command.args(arguments).current_dir(place.root).env("CARGO_TERM_COLOR", "never");
    process::run_while_active(command, place)?;
    Ok(Outcome::Done)
}

fn count_instructions(place: &Place<'_>) -> Result<Outcome> {
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

/// Lints the files in Python, and has pytest read every suite: a name that a test imports and that is gone is found
/// before anything is compiled.
fn python_lints(place: &Place<'_>) -> Result<Outcome> {
    let mut lints = Command::new(python::interpreter(place));
    lints.args(["-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F", "tests"]);
    lints.current_dir(place.root);
    process::run_while_active(lints, place)?;
    let mut folders: Vec<&str> = STEPS.iter().filter_map(Step::folder).collect();
    folders.sort_unstable();
    folders.dedup();
    for folder in folders {
        let mut command = pytest_command(folder, Path::new("none"), place);
        command.args(["--collect-only", "--quiet", "--quiet"]);
        process::run_while_active(command, place)?;
    }
    Ok(Outcome::Done)
}

/// Runs the Rust tests; those of the changed crates alone in a quick run.
fn rust_tests(part: &Part, place: &Place<'_>) -> Result<Outcome> {
    let Part::Quick(change) = part else {
        let mut command = clippy::test(place)?;
        if let Part::Filter(filter) = part {
            command.arg("--").arg(filter);
        }
        process::run_while_active(command, place)?;
        return Ok(Outcome::Counted(Tally::of_cargo(&read_log(place.log)?)?));
    };
    let lines = process::output(clippy::list_tests(place)?, process::QUESTION_TIME_MAX)?;
    let programs = change.programs(&lines, place);
    if programs.is_empty() {
        return Ok(Outcome::Done);
    }
    for program in programs {
        process::run_while_active(program, place)?;
    }
    Ok(Outcome::Counted(Tally::of_cargo(&read_log(place.log)?)?))
}

/// Runs a suite of pytest against the broker of the step `build`.
fn pytest(folder: &str, arguments: &[&str], part: &Part, place: &Place<'_>) -> Result<Outcome> {
    let mut command = pytest_command(folder, &broker_binary(place)?, place);
    command.args(arguments);
    if let Part::Filter(filter) = part {
        // The name of one test, or a part of the names of some.
        if filter.contains("::") {
            command.arg(filter);
        } else {
            command.args(["-k", filter]);
        }
    }
    process::run_while_active(command, place)?;
    Ok(Outcome::Counted(Tally::of_suite(&read_log(place.log)?)?))
}

/// Runs a few files of a suite, and the changed ones, against the broker that is not optimised.
fn smoke(folder: &str, change: &Change, place: &Place<'_>) -> Result<Outcome> {
    let broker = place.target.join("debug").join("leveret");
    let mut command = pytest_command(folder, &broker, place);
    command.args(change.black_box_tests());
    process::run_while_active(command, place)?;
    Ok(Outcome::Counted(Tally::of_suite(&read_log(place.log)?)?))
}

fn pytest_command(folder: &str, broker: &Path, place: &Place<'_>) -> Command {
    let mut command = Command::new(python::interpreter(place));
    command.args(["-m", "pytest", "--color=no", "--broker=leveret"]);
    // What the end of the run shows: failures, tests that did not run, and slow ones.
    command.args(["-rfEs", "--durations=10", "--durations-min=2"]);
    // A dot for each test as it ends, for the progress.
    command.env("PYTHONUNBUFFERED", "1");
    command.env("LEVERET_BIN", broker).current_dir(place.root.join(folder));
    // The tools are tested as the step `clippy` has built them: with assertions, and not optimised.
    let tools = place.target.join("debug");
    command.env("LEVERETCTL_BIN", tools.join("leveretctl"));
    command.env("LEVERET_PERF_BIN", tools.join("leveret-perf"));
    command
}

fn against_broker(program: &str, place: &Place<'_>) -> Result<Outcome> {
    let broker = BrokerProcess::start(&broker_binary(place)?, place.log)?;
    let mut command = Command::new(place.root.join(program));
    command.arg(&broker.amqp_address).current_dir(place.root);
    process::run_while_active(command, place)?;
    broker.stop()?;
    Ok(Outcome::Counted(Tally::of_suite(&read_log(place.log)?)?))
}

/// The broker that the step `build` has built.
///
/// # Errors
/// When there is none.
pub(super) fn broker_binary(place: &Place<'_>) -> Result<PathBuf> {
    program(repository::SUITE_PROFILE, "leveret", place)
}

/// A program that was built with this profile.
///
/// # Errors
/// When there is none.
pub(super) fn program(profile: &str, name: &str, place: &Place<'_>) -> Result<PathBuf> {
    let binary = place.target.join(profile).join(name);
    if !binary.is_file() {
        bail!("there is no {}: run the step that builds it", binary.display());
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

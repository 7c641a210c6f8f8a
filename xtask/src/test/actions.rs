//! How each kind of step is done.
//!
//! Knows the programs and their arguments; not which steps there are. Every program writes into
//! the log of the step and has the step's time.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::steps::{Action, Step};
use super::tally::Tally;
use super::{Place, packages, python};
use crate::broker_process::BrokerProcess;
use crate::{fuzz, instructions, process, repository, tidy};

/// How a step ended that did not fail.
#[derive(Debug)]
pub(super) enum Outcome {
    Done,
    Counted(Tally),
    /// It could not be done here and need not be, for this reason.
    LeftOut(String),
}

impl Outcome {
    /// What is said about it before its duration.
    pub(super) fn remark(&self) -> String {
        match self {
            Self::Done => String::new(),
            Self::Counted(tally) => format!("{}, ", tally.describe("passed")),
            Self::LeftOut(reason) => format!("left out: {reason}, "),
        }
    }
}

/// Does what the step says.
///
/// # Errors
/// When what the step checks does not hold, or it cannot be done here.
pub(super) fn run(step: &Step, place: &Place<'_>) -> Result<Outcome> {
    match &step.action {
        Action::Cargo(arguments) => cargo(arguments, step, place),
        Action::OptionalCargo { arguments, install } => {
            let subcommand = arguments.first().copied().unwrap_or_default();
            if is_installed(subcommand) {
                cargo(arguments, step, place)
            } else {
                let reason = format!("cargo-{subcommand} is not installed ({install})");
                Ok(Outcome::LeftOut(reason))
            }
        }
        Action::RustTests(arguments) => {
            cargo(arguments, step, place)?;
            Ok(Outcome::Counted(Tally::of_cargo(&read_log(place)?)?))
        }
        Action::Tidy => tidy(place),
        Action::PythonPackages(lists) => python::install(lists, place, step.time_max),
        Action::Python { program, arguments } => {
            let mut command = Command::new(python::interpreter(place));
            command.arg(place.root.join(program)).arg("--leveret").arg(broker_binary(place)?);
            command.args(*arguments).current_dir(place.root);
            process::run(command, place.log, step.time_max)?;
            Ok(Outcome::Counted(Tally::of_suite(&read_log(place)?)?))
        }
        Action::Pytest(folder) => pytest(folder, step, place),
        Action::DebianPackages(list) => {
            packages::install_list(list, place, step.time_max)?;
            Ok(Outcome::Done)
        }
        Action::CargoTool { package, version } => cargo_tool(package, version, step, place),
        Action::Instructions => instructions(place),
        Action::Fuzz => fuzz(place),
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

/// Installs a program that tests run as its users do; cargo does nothing when it is there. Compiled without
/// optimisation, which would take longer than all they do, and without the assertions that no user's copy has:
/// those of clap end `rabbitmqadmin import definitions` before it has begun.
fn cargo_tool(package: &str, version: &str, step: &Step, place: &Place<'_>) -> Result<Outcome> {
    let mut command = Command::new(repository::cargo());
    command.args([
        "install",
        "--locked",
        "--quiet",
        "--debug",
        package,
        "--version",
        version,
        "--root",
    ]);
    command.arg(place.target.join("xtask").join("tools"));
    command.current_dir(place.root).env("CARGO_TERM_COLOR", "never");
    command.env("CARGO_PROFILE_DEV_DEBUG_ASSERTIONS", "false").env("CARGO_PROFILE_DEV_DEBUG", "0");
    process::run(command, place.log, step.time_max)?;
    Ok(Outcome::Done)
}

/// Whether cargo finds the subcommand, which is a program on the path.
fn is_installed(subcommand: &str) -> bool {
    let program = format!("cargo-{subcommand}");
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| folder.join(&program).is_file())
}

fn fuzz(place: &Place<'_>) -> Result<Outcome> {
    let executions = fuzz::short(place)?;
    Ok(Outcome::Counted(Tally::of_executions(executions)?))
}

fn instructions(place: &Place<'_>) -> Result<Outcome> {
    let (cases, table) = instructions::check(place)?;
    let mut log = fs::OpenOptions::new().append(true).open(place.log)?;
    writeln!(log, "{table}")?;
    Ok(Outcome::Counted(Tally::of_executions(cases)?))
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

fn pytest(folder: &str, step: &Step, place: &Place<'_>) -> Result<Outcome> {
    let mut command = Command::new(python::interpreter(place));
    command.args(["-m", "pytest", "--color=no", "--broker=leveret"]);
    command.env("LEVERET_BIN", broker_binary(place)?).current_dir(place.root.join(folder));
    process::run(command, place.log, step.time_max)?;
    Ok(Outcome::Counted(Tally::of_suite(&read_log(place)?)?))
}

fn against_broker(program: &str, step: &Step, place: &Place<'_>) -> Result<Outcome> {
    let broker = BrokerProcess::start(&broker_binary(place)?, place.log)?;
    let mut command = Command::new(place.root.join(program));
    command.arg(&broker.amqp_address).current_dir(place.root);
    process::run(command, place.log, step.time_max)?;
    broker.stop()?;
    Ok(Outcome::Counted(Tally::of_suite(&read_log(place)?)?))
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

/// What the step has printed so far.
///
/// # Errors
/// When the log is gone.
pub(super) fn read_log(place: &Place<'_>) -> Result<String> {
    let bytes =
        fs::read(place.log).with_context(|| format!("cannot read {}", place.log.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

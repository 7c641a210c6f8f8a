//! `cargo xtask test`: the one test command of the project, for people and for CI.
//!
//! Decides which steps run. The steps are the table `table`, their order is decided in `schedule`, their
//! programs are in `actions`, the printed lines in `announcement` and `summary`. The output of a step goes to a log of
//! its own below the target folder and is shown when the step fails. The run goes on after a failure; its end lists all.

mod actions;
mod announcement;
mod clippy;
mod findings;
mod packages;
mod python;
mod quick;
mod schedule;
mod steps;
mod summary;
mod table;
mod tally;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::builder::PossibleValuesParser;

use self::actions::Part;
pub(crate) use self::findings::failed_test;
use self::quick::Change;
use self::schedule::{End, Event, StepResult};
use self::steps::{Action, Step};
use self::table::STEPS;
use crate::activity::cpu_time_of_children;
use crate::place::Place;
use crate::{process, repository};

/// Lines of a failed step that are shown; the whole is in its log.
const SHOWN_LINES_MAX: usize = 200;

/// Interval between two lines that tell how far the running steps have come, while none begins or ends.
const TICK: Duration = Duration::from_mins(1);

/// Options of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run only these steps and what they need
    #[arg(long, value_name = "STEP", value_delimiter = ',', value_parser = step_names())]
    only: Vec<String>,

    /// Leave these steps out
    #[arg(long, value_name = "STEP", value_delimiter = ',', value_parser = step_names())]
    skip: Vec<String>,

    /// Run only the tests with this in their name, or the test of this name; for steps of cargo or pytest
    #[arg(long, value_name = "TEXT", requires = "only")]
    filter: Option<String>,

    /// Answer for a change within three minutes once everything is compiled: formatting, taste, lints, the tests of
    /// the changed crates, and some black-box tests
    #[arg(long, conflicts_with_all = ["only", "filter"])]
    quick: bool,

    /// Run one step at a time, in the order of the list
    #[arg(long)]
    serial: bool,

    /// Show the steps and end
    #[arg(long)]
    list: bool,
}

fn step_names() -> PossibleValuesParser {
    PossibleValuesParser::new(STEPS.iter().map(|step| step.name))
}

/// Programs for a command that runs a suite.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The Python of the suites.
    pub(crate) interpreter: PathBuf,
    /// The broker.
    pub(crate) broker: PathBuf,
}

/// Prepares the programs for another command: builds the broker, makes the Python environment of the
/// suites, and runs further steps of setup.
///
/// # Errors
/// As [`set_up`].
pub(crate) fn prepare(steps: &[&str]) -> Result<Prepared> {
    set_up(&[&["build", "python"], steps].concat())?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let log = target.join("xtask").join("logs").join("python.log");
    let place = Place::new(&root, &target, &log);
    let interpreter = python::interpreter(&place);
    let broker = actions::broker_binary(&place)?;
    Ok(Prepared { interpreter, broker })
}

/// Program or folder of a suite, and its arguments, as its step runs it, for another command.
pub(crate) fn suite(name: &str) -> Option<(&'static str, &'static [&'static str])> {
    let step = STEPS.iter().find(|step| step.name == name)?;
    let (Action::Python { program: of, arguments } | Action::Pytest { folder: of, arguments }) =
        step.action
    else {
        return None;
    };
    Some((of, arguments))
}

/// Builds `leveretctl` in release, beside the other programs, for another command.
///
/// # Errors
/// As [`set_up`].
pub(crate) fn prepare_ctl() -> Result<PathBuf> {
    set_up(&["release"])?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let log = target.join("xtask").join("logs").join("release.log");
    actions::program("release", "leveretctl", &Place::new(&root, &target, &log))
}

/// Installs what a list of Debian packages names, for another command.
///
/// # Errors
/// When something is missing and cannot be installed from here.
pub(crate) fn install_packages(list: &str) -> Result<()> {
    process::watch_for_interrupts()?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let log = logs_folder(&target)?.join("packages.log");
    let place = Place::new(&root, &target, &log);
    packages::install_list(list, &place)
}

/// The folder with the logs of steps, which is there afterwards.
fn logs_folder(target: &Path) -> Result<PathBuf> {
    let logs = target.join("xtask").join("logs");
    fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
    Ok(logs)
}

/// Runs steps of setup, for another command.
///
/// # Errors
/// When a step fails or cannot be done on this machine, or the user interrupts.
pub(crate) fn set_up(steps: &[&str]) -> Result<()> {
    let only: Vec<String> = steps.iter().map(|&name| name.to_owned()).collect();
    for end in run_steps(&selection(&only, &[]), true, &Part::All)? {
        match end.end {
            End::Ran(result) => result?,
            End::LeftOut(_) => bail!("step `{}` did not run", end.step.name),
        };
    }
    Ok(())
}

/// Runs the steps that the options ask for.
///
/// # Errors
/// When nothing is left to run, or the log folder cannot be made. The exit code shows whether all steps
/// passed.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let (steps, part) = asked(options)?;
    if options.list {
        for step in steps {
            println!("{:<18} {}", step.name, step.what);
        }
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(!steps.is_empty(), "nothing left to run");
    let (root, target) = (repository::root(), repository::target_folder()?);
    let logs = logs_folder(&target)?;
    print!("{}", announcement::text(&steps, &root, &target));
    if let Part::Quick(change) = &part {
        println!("quick: tests of {}, and some of the broker", change.describe());
    }
    let start = Instant::now();
    let ends = run_steps(&steps, options.serial, &part)?;
    let text = |step: &Step| actions::read_log(&log(&logs, step)).unwrap_or_default();
    print!("{}", summary::table(&ends, start.elapsed(), cpu_time_of_children()));
    print!("{}", summary::slow_tests(&ends, text));
    print!("{}", summary::skips(&ends, text));
    print!("{}", summary::failures(&ends, text));
    let has_passed = ends.iter().all(StepResult::has_passed);
    if has_passed {
        announcement::keep_duration(&steps, start.elapsed(), &target);
    }
    println!("{}", summary::tally(&ends, text).closing_line());
    Ok(if has_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The steps that the options ask for, and the part of their tests.
fn asked(options: &Options) -> Result<(Vec<&'static Step>, Part)> {
    if options.quick {
        let only: Vec<String> = quick::STEPS.iter().map(|&name| name.to_owned()).collect();
        let mut steps = selection(&only, &options.skip);
        // The broker of a quick run is the one that the tests are built with.
        steps.retain(|step| quick::STEPS.contains(&step.name));
        return Ok((steps, Part::Quick(Change::of_repository()?)));
    }
    let steps = selection(&options.only, &options.skip);
    let Some(filter) = options.filter.clone() else { return Ok((steps, Part::All)) };
    for step in steps.iter().filter(|step| options.only.iter().any(|name| name == step.name)) {
        ensure!(step.has_single_tests(), "step `{}` has no tests to choose from", step.name);
    }
    Ok((steps, Part::Filter(filter)))
}

/// Runs steps and prints their progress.
fn run_steps(steps: &[&'static Step], is_serial: bool, part: &Part) -> Result<Vec<StepResult>> {
    process::watch_for_interrupts()?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let logs = logs_folder(&target)?;
    for step in steps {
        // The log is of this run only.
        let log = log(&logs, step);
        fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
    }
    let start = Instant::now();
    let action = |step: &'static Step| {
        let log = log(&logs, step);
        let place = Place::new(&root, &target, &log);
        let result = actions::run(step, part, &place);
        (result, place.cpu_time())
    };
    let tell = |event: Event<'_>| {
        let line = match event {
            Event::Began(step) => summary::began(step),
            Event::Ended(end) => summary::ended(end),
            Event::Tick(running) => summary::running(running, |step| {
                actions::read_log(&log(&logs, step)).unwrap_or_default()
            }),
        };
        println!("{}  {line}", summary::clock(start.elapsed()));
        if let Event::Ended(end) = event
            && let Some(error) = end.error()
        {
            show_end(&log(&logs, end.step));
            println!("error: step `{}`: {error:#}", end.step.name);
        }
    };
    Ok(schedule::run(steps, is_serial, TICK, action, tell))
}

fn log(logs: &Path, step: &Step) -> PathBuf {
    logs.join(format!("{}.log", step.name))
}

/// The steps to run, in the order of the table: those asked for, and those they need.
fn selection(only: &[String], skip: &[String]) -> Vec<&'static Step> {
    let is_in = |names: &[String], step: &Step| names.iter().any(|name| name == step.name);
    let is_asked = |step: &&Step| {
        let is_chosen = if only.is_empty() { !step.is_setup } else { is_in(only, step) };
        is_chosen && !is_in(skip, step)
    };
    let asked: Vec<&Step> = STEPS.iter().filter(is_asked).collect();
    let is_needed = |step: &Step| asked.iter().any(|other| other.needs.contains(&step.name));
    let is_selected = |step: &&Step| is_asked(step) || is_needed(step) && !is_in(skip, step);
    STEPS.iter().filter(is_selected).collect()
}

/// Prints the end of a log.
fn show_end(log: &Path) {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return;
    }
    println!();
    let hidden = lines.len().saturating_sub(SHOWN_LINES_MAX);
    if hidden > 0 {
        println!("({hidden} lines before these are in {})", log.display());
    }
    for line in &lines[hidden..] {
        println!("{line}");
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(only: &[&str], skip: &[&str]) -> Vec<&'static str> {
        let owned =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        selection(&owned(only), &owned(skip)).iter().map(|step| step.name).collect()
    }

    #[test]
    fn selection_is_in_the_order_of_the_table() {
        let for_other_commands = ["release", "fuzz-packages"];
        let names_of_all = STEPS.iter().map(|step| step.name);
        let of_test = names_of_all.filter(|name| !for_other_commands.contains(name));
        assert_eq!(names(&[], &[]), of_test.collect::<Vec<_>>());
    }

    #[test]
    fn only_brings_the_needs_of_a_step() {
        assert_eq!(names(&["hostile"], &[]), ["build", "python", "hostile"]);
        assert_eq!(names(&["clippy", "fmt"], &[]), ["fmt", "clippy"]);
        assert_eq!(names(&["python"], &[]), ["python"]);
    }

    #[test]
    fn skip_leaves_out_needs_of_no_other_step() {
        let names_without = |skip| names(&["fmt", "blackbox", "java"], skip);
        assert_eq!(names_without(&["blackbox"]), ["fmt", "build", "packages", "java"]);
        assert_eq!(names_without(&["build", "java"]), ["fmt", "python", "blackbox"]);
    }

    #[test]
    fn need_is_an_earlier_step() {
        for (at, step) in STEPS.iter().enumerate() {
            for need in step.needs {
                let found = STEPS[..at].iter().find(|earlier| earlier.name == *need);
                assert!(found.is_some(), "{}: {need}", step.name);
            }
        }
    }
}

//! `cargo xtask test`: the one test command of the project, for people and for CI.
//!
//! Decides which steps run, in which order, and what is said about them; the steps are a table in
//! `steps`, how each kind is done is in `actions`. A step's output goes to a log of its own below
//! the target folder and is shown only when the step fails. The first failure ends the run.

mod actions;
mod packages;
mod python;
mod steps;
mod tally;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::builder::PossibleValuesParser;

use self::actions::Outcome;
use self::steps::{STEPS, Step};
use crate::{process, repository};

/// Lines of a failed step that are shown; the whole is in its log.
const SHOWN_LINES_MAX: usize = 400;

/// Longest time that packages of another command may take.
const PACKAGES_TIME_MAX: Duration = Duration::from_mins(20);

/// What `cargo xtask test` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run only these steps and what they need
    #[arg(long, value_name = "STEP", value_delimiter = ',', value_parser = step_names())]
    only: Vec<String>,

    /// Leave these steps out
    #[arg(long, value_name = "STEP", value_delimiter = ',', value_parser = step_names())]
    skip: Vec<String>,

    /// Show the steps and end
    #[arg(long)]
    list: bool,
}

fn step_names() -> PossibleValuesParser {
    PossibleValuesParser::new(STEPS.iter().map(|step| step.name))
}

/// Where a step works.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// The root of the repository.
    pub(crate) root: &'a Path,
    /// The folder cargo builds into.
    pub(crate) target: &'a Path,
    /// The log of the step.
    pub(crate) log: &'a Path,
}

/// What a command needs that runs a program of the tests.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The Python of the suites.
    pub(crate) interpreter: PathBuf,
    /// The broker.
    pub(crate) broker: PathBuf,
    /// `leveretctl`.
    pub(crate) ctl: PathBuf,
}

/// Does for another command what its program needs: builds the broker, makes the environment of the
/// suites, and runs further steps of setup.
///
/// # Errors
/// As [`run`].
pub(crate) fn prepare(steps: &[&str]) -> Result<Prepared> {
    set_up(&[&["build", "python"], steps].concat())?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let log = target.join("xtask").join("logs").join("python.log");
    let place = Place { root: &root, target: &target, log: &log };
    let interpreter = python::interpreter(&place);
    let broker = actions::broker_binary(&place)?;
    Ok(Prepared { interpreter, broker, ctl: actions::release_binary("leveretctl", &place)? })
}

/// Installs what a list of Debian packages names, for another command.
///
/// # Errors
/// When something is missing and cannot be installed from here.
pub(crate) fn install_packages(list: &str) -> Result<()> {
    process::watch_for_interrupts()?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let logs = logs_folder(&target)?;
    let place = Place { root: &root, target: &target, log: &logs.join("packages.log") };
    packages::install_list(list, &place, PACKAGES_TIME_MAX)
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
/// As [`run`].
pub(crate) fn set_up(steps: &[&str]) -> Result<()> {
    let only = steps.iter().map(|&name| name.to_owned()).collect();
    run(&Options { only, skip: Vec::new(), list: false })
}

/// Runs the steps that the options ask for.
///
/// # Errors
/// When a step fails, a step cannot be done on this machine, or the user interrupts.
pub(crate) fn run(options: &Options) -> Result<()> {
    let steps = selection(&options.only, &options.skip);
    if options.list {
        for step in steps {
            println!("{:<10} {}", step.name, step.what);
        }
        return Ok(());
    }
    ensure!(!steps.is_empty(), "nothing left to run");
    process::watch_for_interrupts()?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let logs = logs_folder(&target)?;

    let start = Instant::now();
    let mut outcomes = Vec::with_capacity(steps.len());
    for step in steps {
        let log = logs.join(format!("{}.log", step.name));
        let place = Place { root: &root, target: &target, log: &log };
        outcomes.push((step, run_step(step, &place)?));
    }
    println!("{}", summary(&outcomes, start.elapsed()));
    Ok(())
}

/// Runs one step and prints its line.
fn run_step(step: &Step, place: &Place<'_>) -> Result<Outcome> {
    print!("{:<10} {} ... ", step.name, step.what);
    io::stdout().flush().context("cannot write to stdout")?;
    // The log is of this run only.
    fs::write(place.log, "").with_context(|| format!("cannot write {}", place.log.display()))?;
    let start = Instant::now();
    match actions::run(step, place) {
        Ok(outcome) => {
            println!("{}{}", outcome.remark(), duration(start.elapsed()));
            Ok(outcome)
        }
        Err(error) => {
            println!("failed after {}", duration(start.elapsed()));
            show_end(place.log);
            Err(anyhow!("step `{}`: {error:#}", step.name))
        }
    }
}

/// The steps to run, in the order of the table: what is asked for and what that needs.
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

/// The last line of a run: what ran and how long it took.
fn summary(outcomes: &[(&Step, Outcome)], elapsed: Duration) -> String {
    let is_setup_only = outcomes.iter().all(|(step, _)| step.is_setup);
    let (mut ran, mut left_out) = (Vec::new(), Vec::new());
    for (step, outcome) in outcomes.iter().filter(|(step, _)| is_setup_only || !step.is_setup) {
        match outcome {
            Outcome::Done => ran.push(step.name.to_owned()),
            Outcome::Counted(tally) => ran.push(tally.describe(step.counts.unwrap_or(step.name))),
            Outcome::LeftOut(_) => left_out.push(step.name),
        }
    }
    if ran.is_empty() {
        ran.push("nothing".to_owned());
    }
    let mut line = format!("ok: {} in {}", ran.join(", "), duration(elapsed));
    if !left_out.is_empty() {
        line.push_str(&format!("; left out: {}", left_out.join(", ")));
    }
    line
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

/// A duration as people say it: `0.4 s`, `37 s`, `6 min 12 s`.
fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::tally::Tally;
    use super::*;

    fn names(only: &[&str], skip: &[&str]) -> Vec<&'static str> {
        let owned =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        selection(&owned(only), &owned(skip)).iter().map(|step| step.name).collect()
    }

    #[test]
    fn everything_is_selected_in_the_order_of_the_table() {
        assert_eq!(names(&[], &[]), STEPS.iter().map(|step| step.name).collect::<Vec<_>>());
    }

    #[test]
    fn only_brings_what_a_step_needs() {
        assert_eq!(names(&["hostile"], &[]), ["build", "python", "hostile"]);
        assert_eq!(names(&["clippy", "fmt"], &[]), ["fmt", "clippy"]);
        assert_eq!(names(&["python"], &[]), ["python"]);
    }

    #[test]
    fn skip_leaves_out_what_nobody_else_needs() {
        let names_without = |skip| names(&["fmt", "blackbox", "java"], skip);
        assert_eq!(names_without(&["blackbox"]), ["fmt", "build", "packages", "java"]);
        assert_eq!(names_without(&["build", "java"]), ["fmt", "python", "blackbox"]);
    }

    #[test]
    fn every_need_is_an_earlier_step_of_setup() {
        for (at, step) in STEPS.iter().enumerate() {
            for need in step.needs {
                let found = STEPS[..at].iter().find(|earlier| earlier.name == *need);
                assert!(found.is_some_and(|found| found.is_setup), "{}: {need}", step.name);
            }
        }
    }

    #[test]
    fn summary_says_what_ran() {
        let outcome = |name: &str| match name {
            "unit" => Outcome::Counted(Tally { passed: 412, skipped: 0 }),
            "blackbox" => Outcome::Counted(Tally { passed: 231, skipped: 2 }),
            "deny" => Outcome::LeftOut("why".to_owned()),
            _ => Outcome::Done,
        };
        let wanted = ["fmt", "deny", "unit", "python", "blackbox"];
        let steps = STEPS.iter().filter(|step| wanted.contains(&step.name));
        let outcomes: Vec<_> = steps.map(|step| (step, outcome(step.name))).collect();
        assert_eq!(
            summary(&outcomes, Duration::from_secs(372)),
            "ok: fmt, 412 unit and property tests, 231 black-box tests (2 skipped) in 6 min 12 s; \
             left out: deny"
        );
    }

    #[test]
    fn summary_of_nothing_says_so() {
        let step = |name| STEPS.iter().find(|step| step.name == name).unwrap();
        let left_out = (step("deny"), Outcome::LeftOut("why".to_owned()));
        let line = summary(&[left_out], Duration::ZERO);
        assert_eq!(line, "ok: nothing in 0.0 s; left out: deny");
        let line = summary(&[(step("python"), Outcome::Done)], Duration::ZERO);
        assert_eq!(line, "ok: python in 0.0 s");
    }

    #[test]
    fn durations_are_said_as_people_say_them() {
        let said = [400, 37_200, 60_000].map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(said, ["0.4 s", "37 s", "1 min 0 s"]);
    }
}

//! `cargo xtask instructions`: what a message costs, in instructions and allocations.
//!
//! Decides which cases run and what a difference means. The cases are a program of their own, the
//! example `instructions` of the server's crate; how one is counted is in `callgrind`, what is written
//! down in `figures`. Instructions are counted and not time, because they are the same again on a busy
//! machine: a change of a few in a hundred shows.

mod callgrind;
mod figures;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use self::figures::{Count, Figures};
use crate::test::{self, Place};
use crate::{process, repository};

/// Where the figures are that others are compared with.
const FIGURES: &str = "docs/internals/instructions.md";

/// Dearer by so much is too dear, in parts of a hundred; less may come of another processor, for which the
/// C library has other functions.
const DEARER_PERCENT_MAX: f64 = 5.0;

/// More allocations for a message than this are too many: an amortised one may move a little.
const ALLOCATIONS_MORE_MAX: f64 = 0.05;

/// Longest time to compile the cases on a slow machine.
const BUILD_TIME_MAX: Duration = Duration::from_mins(20);

/// Longest time for a question to a program.
const QUESTION_TIME_MAX: Duration = Duration::from_secs(30);

/// What `cargo xtask instructions` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Count only the cases whose name contains this text
    #[arg(conflicts_with = "write")]
    filter: Option<String>,

    /// Write the figures down instead of comparing them
    #[arg(long)]
    write: bool,
}

/// A case and how many messages it handles while it is counted.
struct Case {
    name: String,
    messages: u64,
}

/// Counts what the options ask for, and compares or writes it.
///
/// # Errors
/// When something cannot be counted, or costs more than is written down.
pub(crate) fn run(options: &Options) -> Result<()> {
    test::install_packages("crates/server/examples/instructions/packages.txt")?;
    process::watch_for_interrupts()?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let log = target.join("xtask").join("logs").join("instructions.log");
    fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
    let place = Place { root: &root, target: &target, log: &log };
    let figures = count(&place, options.filter.as_deref().unwrap_or_default())?;
    if options.write {
        let file = root.join(FIGURES);
        fs::write(&file, figures.page())
            .with_context(|| format!("cannot write {}", file.display()))?;
        println!("{} cases are in {FIGURES}", figures.counts.len());
        return Ok(());
    }
    let (table, faults) = compare(&place, &figures, options.filter.is_none())?;
    println!("{table}");
    println!("where they go: callgrind_annotate {}/CASE.out", outputs(&place).display());
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

/// Counts all cases and compares them, for `cargo xtask test`; how many there are and what is said
/// about them.
///
/// # Errors
/// As [`run`].
pub(crate) fn check(place: &Place<'_>) -> Result<(u64, String)> {
    let figures = count(place, "")?;
    let (table, faults) = compare(place, &figures, true)?;
    ensure!(faults.is_empty(), "{table}\n{}", faults.join("\n"));
    Ok((figures.counts.len() as u64, table))
}

/// Compares with what is written down: a table for people, and what is wrong.
fn compare(place: &Place<'_>, now: &Figures, is_all: bool) -> Result<(String, Vec<String>)> {
    let file = place.root.join(FIGURES);
    let text = fs::read_to_string(&file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    let written = Figures::read(&text)?;
    Ok(now.compare(&written, is_all))
}

/// Where callgrind's outputs are.
fn outputs(place: &Place<'_>) -> PathBuf {
    place.target.join("xtask").join("instructions")
}

/// Compiles the cases and counts those whose name contains `filter`.
fn count(place: &Place<'_>, filter: &str) -> Result<Figures> {
    let mut build = Command::new(repository::cargo());
    // The packages of the step `build` together, so that cargo finds compiled what that has compiled.
    build.args(["build", "--release", "--package", "leveret", "--package", "leveretctl"]);
    build.args(["--example", "instructions"]);
    build.current_dir(place.root).env("CARGO_TERM_COLOR", "never");
    process::run(build, place.log, BUILD_TIME_MAX)?;
    let program = place.target.join("release").join("examples").join("instructions");
    let cases = cases(&program, filter)?;
    ensure!(!cases.is_empty(), "no case is called like that");
    let outputs = outputs(place);
    fs::create_dir_all(&outputs).with_context(|| format!("cannot create {}", outputs.display()))?;
    let next = Mutex::new(cases.iter());
    let worker = || -> Result<Vec<Count>> {
        let mut counted = Vec::new();
        loop {
            let case = next.lock().ok().and_then(|mut next| next.next());
            let Some(case) = case else { return Ok(counted) };
            counted.push(callgrind::count(&program, &case.name, case.messages, &outputs)?);
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(4);
    let counted: Vec<Count> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let mut counted = Vec::new();
        for worker in workers {
            let one = worker.join().map_err(|_| anyhow::anyhow!("a worker has panicked"))?;
            counted.extend(one?);
        }
        anyhow::Ok(counted)
    })?;
    // As the program lists them.
    let find = |case: &Case| counted.iter().find(|count| count.name == case.name).cloned();
    Ok(Figures { compiler: compiler()?, counts: cases.iter().filter_map(find).collect() })
}

fn cases(program: &std::path::Path, filter: &str) -> Result<Vec<Case>> {
    let mut list = Command::new(program);
    list.arg("list");
    let text = process::output(list, QUESTION_TIME_MAX)?;
    let case = |line: &str| {
        let (messages, name) = line.split_once(' ').context("a line of the list of cases")?;
        Ok(Case { name: name.to_owned(), messages: messages.parse()? })
    };
    let cases: Result<Vec<Case>> = text.lines().map(case).collect();
    Ok(cases?.into_iter().filter(|case| case.name.contains(filter)).collect())
}

/// What the figures depend on beside the code: the compiler, and the processors it compiles for.
fn compiler() -> Result<String> {
    let mut command = Command::new("rustc");
    command.arg("--version").current_dir(repository::root());
    let version = process::output(command, QUESTION_TIME_MAX)?;
    Ok(format!("{}, {}", version.trim(), std::env::consts::ARCH))
}

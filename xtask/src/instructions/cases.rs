//! The cases of the count: building, counting, and comparing them with the page.
//!
//! The cases are a program of their own, that of the crate `leveret-instructions`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context as _, Result, ensure};

use super::callgrind;
use super::figures::{Count, Figures};
use crate::place::Place;
use crate::process::{self, QUESTION_TIME_MAX};
use crate::repository;

/// The page with the figures to compare with.
pub(super) const FIGURES: &str = "docs/internals/instructions.md";

/// A case and how many messages it handles while it is counted.
struct Case {
    name: String,
    messages: u64,
}

/// Counts all cases and compares them, for `cargo xtask test`; the number of cases, and the table of
/// changes.
///
/// # Errors
/// When something cannot be counted, or costs more than the page says.
pub(crate) fn check(place: &Place<'_>) -> Result<(usize, String)> {
    let figures = count(place, "")?;
    let (table, faults) = compare(place, &figures, true)?;
    ensure!(faults.is_empty(), "{table}\n{}", faults.join("\n"));
    Ok((figures.counts.len(), table))
}

/// Compares with what is written down: a table for people, and what is wrong.
pub(super) fn compare(
    place: &Place<'_>,
    now: &Figures,
    is_all: bool,
) -> Result<(String, Vec<String>)> {
    let file = place.root.join(FIGURES);
    let text = fs::read_to_string(&file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    let written = Figures::read(&text)?;
    Ok(now.compare(&written, is_all))
}

/// Compiles the cases.
///
/// # Errors
/// When they cannot be compiled.
pub(crate) fn build(place: &Place<'_>) -> Result<()> {
    let mut build = Command::new(repository::cargo());
    build.args([
        "build",
        "--release",
        "--package",
        "leveret-instructions",
        "--bin",
        "instructions",
    ]);
    build.current_dir(place.root).env("CARGO_TERM_COLOR", "never");
    process::run_while_active(build, place)
}

/// Folder of callgrind's outputs.
pub(super) fn outputs(place: &Place<'_>) -> PathBuf {
    place.target.join("xtask").join("instructions")
}

/// Compiles the cases and counts those whose name contains `filter`.
pub(super) fn count(place: &Place<'_>, filter: &str) -> Result<Figures> {
    build(place)?;
    let program = place.target.join("release").join("instructions");
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

/// Compiler, and the architecture it compiles for: the figures depend on both.
fn compiler() -> Result<String> {
    let version = repository::ask_compiler(&["--version"])?;
    Ok(format!("{}, {}", version.trim(), std::env::consts::ARCH))
}

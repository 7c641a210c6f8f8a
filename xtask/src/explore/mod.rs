//! `cargo xtask explore`: input that no run had before, for minutes or for a night.
//!
//! Decides which part has the next turn, and for how long. The parts and their commands are in `parts`, the reading of their
//! logs and the places where findings stay in `finding`. The test command plays fixed input; what is found here is
//! kept where it plays it, too.

mod finding;
mod parts;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::builder::PossibleValuesParser;

use self::finding::Finding;
use self::parts::{PARTS, Part, Workshop};
use crate::place::Place;
use crate::{process, repository, test};

/// Turns of all parts while the time lasts, if each takes its share: some, so that all parts have had one early.
const ROUNDS: u32 = 2;

/// Options of `cargo xtask explore`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Minutes, which the parts share; turns that have begun come to their end
    #[arg(long, default_value_t = 60)]
    minutes: u32,

    /// Explore only with these parts
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = part_names())]
    only: Vec<String>,
}

fn part_names() -> PossibleValuesParser {
    PossibleValuesParser::new(PARTS.iter().map(|part| part.name))
}

/// A part, and its turns so far.
struct Turns {
    part: &'static Part,
    count: u32,
    took: Duration,
}

/// Builds everything, then gives turns to the parts until the time is over.
///
/// # Errors
/// When something cannot be built or started.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let is_asked =
        |part: &&Part| options.only.is_empty() || options.only.iter().any(|name| name == part.name);
    let parts: Vec<&'static Part> = PARTS.iter().filter(is_asked).collect();
    let test::Prepared { interpreter, broker } = test::prepare(&[])?;
    process::watch_for_interrupts()?;
    let (root, target) = (repository::root(), repository::target_folder()?);
    let log = target.join("xtask").join("logs").join("explore.log");
    fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
    let time = Duration::from_secs(u64::from(options.minutes) * 60);
    let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let share = time / (count * ROUNDS);
    let place = Place::new(&root, &target, &log);
    let mut workshop =
        Workshop { place: &place, interpreter, broker, share, campaign: None, turn: 0 };
    let parts = workshop.build(&parts)?;
    ensure!(!parts.is_empty(), "no part can run here");
    let mut turns: Vec<Turns> =
        parts.into_iter().map(|part| Turns { part, count: 0, took: Duration::ZERO }).collect();
    let findings = explore(&mut workshop, &mut turns, time);
    for Turns { part, count, took } in &turns {
        println!("{:<14} {count:>4} turns in {:>6} s", part.name, took.as_secs());
    }
    Ok(conclude(&root, &findings))
}

/// Gives the next turn to the part that has had the least time, until the time is over.
fn explore(workshop: &mut Workshop<'_>, turns: &mut [Turns], time: Duration) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < time && !process::is_interrupted() {
        let Some(next) = turns.iter_mut().min_by_key(|turns| turns.took) else {
            break;
        };
        let began = Instant::now();
        let result = workshop.take_turn(next.part);
        next.took += began.elapsed();
        next.count += 1;
        let at = begin.elapsed().as_secs();
        print!("{:>4}:{:02}  {:<14} ", at / 60, at % 60, next.part.name);
        match result {
            _ if process::is_interrupted() => println!("interrupted"),
            Ok(turn) => {
                println!("{} in {} s", turn.what, began.elapsed().as_secs());
                for found in turn.findings {
                    let is_new = findings.iter().all(|known| known.kept != found.kept);
                    if is_new || found.kept.is_none() {
                        println!("{found}");
                        findings.push(found);
                    }
                }
            }
            Err(error) => {
                println!("FOUND: {error:#}");
                findings.push(Finding::of_error(next.part.name, &error));
            }
        }
    }
    findings
}

/// Keeps what was found, and says it again.
fn conclude(root: &Path, findings: &[Finding]) -> ExitCode {
    for found in findings {
        match found.keep(root) {
            Ok(Some(place)) => println!("{found}\n  kept:  {place}"),
            Ok(None) => println!("{found}"),
            Err(error) => println!("{found}\n  not kept: {error:#}"),
        }
    }
    println!("{} found", findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

//! Runs the simulation over seeds, or one seed with its story.
#![allow(clippy::print_stdout, reason = "a program for people: printing is its purpose")]

use std::iter;
use std::ops::Range;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser};
use sim::{Counts, GroupContent, Outcome, Plan, SABOTAGES, Sabotage, run, shrink};

/// A third of the time of a run was that of the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Events of a failed run that are printed.
const SHOWN: usize = 120;

/// Seeds within which a sabotage must show.
const SEEDS_OF_SABOTAGE: usize = 300;

/// Seeds from one line of progress to the next.
const PROGRESS_SEEDS: u64 = 100;

/// Runs clusters in one thread, each with clients and faults from a seed, and checks what clients were promised.
#[derive(Parser)]
#[command(name = "leveret-sim", after_help = sabotage_names())]
struct Options {
    /// Number of seeds; the first violation ends the program
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    seeds: u64,
    /// First of the seeds
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    first: u64,
    /// Of the seeds, run only those whose group has the metadata of a cluster
    #[arg(long)]
    metadata: bool,
    /// Run this seed alone and print its story; of a run that fails, a smaller one, too
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "first", "check"])]
    seed: Option<u64>,
    /// Events of a story that are printed, the last ones
    #[arg(long, value_name = "EVENTS", default_value_t = SHOWN)]
    story: usize,
    /// Leave out a guard, and run seeds until the checks see it; `all` takes one guard after the other
    #[arg(long, value_name = "NAME", value_parser = sabotages, conflicts_with = "check")]
    sabotage: Option<Sabotages>,
    /// Let clients connect to any node in every run, not in a share of them
    #[arg(long)]
    any_node: bool,
    /// Run the seeds, one of them twice, those that found something once, and then every sabotage
    #[arg(long)]
    check: bool,
}

/// Seeds with which something was found once.
fn kept() -> impl Iterator<Item = u64> {
    let lines = include_str!("../../../tests/seeds.txt").lines();
    let seeds = lines.filter_map(|line| line.strip_prefix("sim "));
    seeds.map(|seed| seed.split('#').next().unwrap_or_default().trim().parse().expect("a seed"))
}

/// The sabotages that `--sabotage` names.
#[derive(Clone, Copy)]
enum Sabotages {
    All,
    One(Sabotage),
}

fn sabotages(name: &str) -> Result<Sabotages, String> {
    match Sabotage::named(name) {
        _ if name == "all" => Ok(Sabotages::All),
        Some(sabotage) => Ok(Sabotages::One(sabotage)),
        None => Err(format!("no such sabotage. {}", sabotage_names())),
    }
}

fn sabotage_names() -> String {
    let names: Vec<&str> = SABOTAGES.iter().map(|(name, ..)| *name).collect();
    format!("Sabotages: {}", names.join(", "))
}

fn main() -> ExitCode {
    let options = Options::parse();
    let has_passed = match (options.seed, options.sabotage) {
        (Some(_), Some(Sabotages::All)) => {
            let mut command = Options::command();
            command.error(ErrorKind::ArgumentConflict, "--seed takes one sabotage").exit()
        }
        (Some(seed), Some(Sabotages::One(sabotage))) => {
            one(&options.plan(seed, Some(sabotage)), options.story)
        }
        (Some(seed), None) => one(&options.plan(seed, None), options.story),
        (None, Some(Sabotages::All)) => {
            let seen =
                SABOTAGES.iter().filter(|(_, sabotage, _)| catch(options.seeds(), *sabotage));
            seen.count() == SABOTAGES.len()
        }
        (None, Some(Sabotages::One(sabotage))) => catch(options.seeds(), sabotage),
        (None, None) if options.check => check(options.seeds()),
        (None, None) if options.metadata => {
            let is_of_metadata = |seed: &u64| GroupContent::of(*seed) == GroupContent::Metadata;
            many(options.seeds().filter(is_of_metadata), options.any_node)
        }
        (None, None) => many(options.seeds(), options.any_node),
    };
    if has_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Options {
    fn seeds(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.seeds)
    }

    fn plan(&self, seed: u64, sabotage: Option<Sabotage>) -> Plan {
        let drawn = Plan::draw(seed, sabotage);
        Plan { any_node: self.any_node || drawn.any_node, ..drawn }
    }
}

/// Runs some seeds, one of them twice, and sees that every sabotage shows.
fn check(seeds: Range<u64>) -> bool {
    let hash = || run(&Plan::draw(seeds.start, None), false).story.hash();
    if hash() != hash() {
        println!("seed {} does not repeat itself", seeds.start);
        return false;
    }
    many(seeds.clone(), false)
        && kept().all(|seed| many(seed..seed + 1, false))
        && SABOTAGES.iter().all(|(_, sabotage, seed)| {
            let others = (0..).filter(|seed| sabotage.shows_with(*seed));
            catch(iter::once(*seed).chain(others.take(SEEDS_OF_SABOTAGE)), *sabotage)
        })
}

/// Runs seeds until the checks see the sabotage; the same run without it must pass.
fn catch(seeds: impl IntoIterator<Item = u64>, sabotage: Sabotage) -> bool {
    let mut tried = 0;
    for seed in seeds.into_iter().filter(|seed| sabotage.shows_with(*seed)) {
        tried += 1;
        let plan = Plan::draw(seed, Some(sabotage));
        if let Some(violation) = run(&plan, false).violations.first() {
            println!("{:<26} {tried:>5} seeds: seed {seed}, {violation}", sabotage.name());
            let sound = run(&Plan { sabotage: None, ..plan }, false);
            sound.violations.iter().for_each(|it| println!("seed {seed} without it: {it}"));
            return sound.violations.is_empty();
        }
    }
    println!("{:<26} not seen in {tried} seeds", sabotage.name());
    false
}

/// Runs a plan, and prints its story.
fn one(plan: &Plan, shown: usize) -> bool {
    let outcome = run(plan, true);
    println!("{plan:#?}");
    tell(&outcome, shown);
    if outcome.violations.is_empty() {
        return true;
    }
    let small = shrink(plan);
    println!("a smaller run that fails: {small:#?}");
    tell(&run(&small, true), shown);
    false
}

fn tell(outcome: &Outcome, shown: usize) {
    for (at_us, line) in outcome.story.last(shown) {
        println!("{:>12.6} {line}", std::time::Duration::from_micros(*at_us).as_secs_f64());
    }
    println!("{}, hash {:016x}", outcome.counts, outcome.story.hash());
    outcome.violations.iter().for_each(|violation| println!("VIOLATION: {violation}"));
}

/// Runs many seeds; the first failure ends them.
fn many(seeds: impl Iterator<Item = u64>, any_node: bool) -> bool {
    let (mut counts, mut done) = (Counts::default(), 0_u64);
    for seed in seeds {
        let drawn = Plan::draw(seed, None);
        let outcome = run(&Plan { any_node: any_node || drawn.any_node, ..drawn }, false);
        if let Some(violation) = outcome.violations.first() {
            println!("seed {seed}: {violation}");
            let any_node = if any_node { " --any-node" } else { "" };
            println!("repeat with: --seed {seed}{any_node}");
            return false;
        }
        counts += outcome.counts;
        done += 1;
        if done.is_multiple_of(PROGRESS_SEEDS) {
            println!("{done} seeds, {} confirmed, {} changes", counts.confirmed, counts.changes.0);
        }
    }
    println!("{done} seeds, 0 violations: {counts}");
    true
}

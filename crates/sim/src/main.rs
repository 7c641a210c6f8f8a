//! Runs the simulation over seeds, or one seed with its story.
#![allow(clippy::print_stdout, reason = "a program for people: printing is its purpose")]
#![allow(clippy::print_stderr, reason = "a program for people: printing is its purpose")]

use std::process::ExitCode;

use sim::{Counts, Outcome, Plan, SABOTAGES, Sabotage, run, shrink};

/// A third of the time of a run was that of the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Events of a failed run that are printed.
const SHOWN: usize = 120;

/// Seeds within which a sabotage must show.
const SEEDS_OF_SABOTAGE: u64 = 300;

/// Seeds from one line of progress to the next.
const PROGRESS_SEEDS: u64 = 100;

/// Options of the command line.
#[derive(Default)]
struct Options {
    seeds: u64,
    first: u64,
    is_one: bool,
    sabotage: Option<Sabotage>,
    all: bool,
    is_check: bool,
    story: usize,
}

fn options() -> Result<Options, String> {
    let mut options = Options { seeds: 100, story: SHOWN, ..Options::default() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|error| error.to_string());
        match argument.as_str() {
            "--seeds" => options.seeds = number(value()?)?,
            "--first" => options.first = number(value()?)?,
            "--story" => options.story = usize::try_from(number(value()?)?).unwrap_or(SHOWN),
            "--seed" => {
                options.first = number(value()?)?;
                options.is_one = true;
            }
            "--check" => options.is_check = true,
            "--sabotage" => {
                let name = value()?;
                options.all = name == "all";
                options.sabotage = Sabotage::named(&name);
                if options.sabotage.is_none() && !options.all {
                    let names: Vec<&str> = SABOTAGES.iter().map(|(name, _)| *name).collect();
                    return Err(format!(
                        "no sabotage '{name}'; there are: all {}",
                        names.join(" ")
                    ));
                }
            }
            _ => return Err(format!("unknown option {argument}")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("error: {problem}");
            return ExitCode::from(2);
        }
    };
    let has_passed = if options.is_check {
        check(&options)
    } else if options.all {
        let seen = SABOTAGES.iter().filter(|(_, sabotage)| catch(&options, *sabotage));
        seen.count() == SABOTAGES.len()
    } else if let (Some(sabotage), false) = (options.sabotage, options.is_one) {
        catch(&options, sabotage)
    } else if options.is_one {
        one(&options)
    } else {
        many(&options)
    };
    if has_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs some seeds, one of them twice, and sees that every sabotage shows.
fn check(options: &Options) -> bool {
    let hash = || run(&Plan::draw(options.first, None), false).story.hash();
    if hash() != hash() {
        println!("seed {} does not repeat itself", options.first);
        return false;
    }
    let sabotaged = Options { seeds: SEEDS_OF_SABOTAGE, ..Options::default() };
    many(options) && SABOTAGES.iter().all(|(_, sabotage)| catch(&sabotaged, *sabotage))
}

/// Runs seeds until the checks see the sabotage; the same run without it must pass.
fn catch(options: &Options, sabotage: Sabotage) -> bool {
    for seed in options.first..options.first + options.seeds {
        let plan = Plan::draw(seed, Some(sabotage));
        if let Some(violation) = run(&plan, false).violations.first() {
            let seeds = seed + 1 - options.first;
            println!("{:<24} {seeds:>5} seeds: {violation}", sabotage.name());
            let sound = run(&Plan { sabotage: None, ..plan }, false);
            sound.violations.iter().for_each(|it| println!("seed {seed} without it: {it}"));
            return sound.violations.is_empty();
        }
    }
    println!("{:<24} not seen in {} seeds", sabotage.name(), options.seeds);
    false
}

/// Runs one seed, and prints its story.
fn one(options: &Options) -> bool {
    let plan = Plan::draw(options.first, options.sabotage);
    let outcome = run(&plan, true);
    println!("{plan:#?}");
    tell(&outcome, options.story);
    if outcome.violations.is_empty() {
        return true;
    }
    let small = shrink(&plan);
    println!("a smaller run that fails: {small:#?}");
    tell(&run(&small, true), options.story);
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
fn many(options: &Options) -> bool {
    let mut counts = Counts::default();
    for seed in options.first..options.first + options.seeds {
        let outcome = run(&Plan::draw(seed, None), false);
        if let Some(violation) = outcome.violations.first() {
            println!("seed {seed}: {violation}");
            println!("repeat with: --seed {seed}");
            return false;
        }
        counts += outcome.counts;
        let done = seed + 1 - options.first;
        if done.is_multiple_of(PROGRESS_SEEDS) {
            println!("{done} seeds, {} confirmed", counts.confirmed);
        }
    }
    println!("{} seeds, 0 violations: {counts}", options.seeds);
    true
}

//! Runs of the simulation: nothing is lost, the same seed gives the same run, and every sabotage is seen.
//!
//! The long ones need an optimised build; the step `sim` of the test command runs them.

#![allow(clippy::print_stdout, reason = "the figures of a run are for people")]

use sim::{Plan, SABOTAGES, Sabotage, run, shrink};

/// Seeds of a run without a sabotage.
const SEEDS: u64 = 60;

/// Seeds within which a sabotage must be seen.
const SEEDS_OF_SABOTAGE: u64 = 100;

fn check(seeds: std::ops::Range<u64>) {
    let (mut confirmed, mut dead_letters) = (0, 0);
    for seed in seeds {
        let outcome = run(&Plan::draw(seed, None), false);
        assert_eq!(outcome.violations, Vec::<String>::new(), "cargo xtask sim --seed {seed}");
        confirmed += outcome.confirmed;
        dead_letters += outcome.dead_letters;
    }
    assert!(confirmed > 0 && dead_letters > 0, "{confirmed} confirmed, {dead_letters} dead letters");
}

#[test]
fn nothing_is_lost_in_a_few_runs() {
    check(0..2);
}

#[test]
#[ignore = "takes minutes without optimisation; the step sim runs it"]
fn nothing_is_lost_in_many_runs() {
    check(2..SEEDS);
}

#[test]
fn same_seed_gives_the_same_run() {
    let plan = Plan::draw(3, None);
    let once = run(&plan, false).story.hash();
    assert_eq!(once, run(&plan, true).story.hash(), "the same, whether lines are kept or not");
    assert_ne!(once, run(&Plan::draw(4, None), false).story.hash(), "another seed");
}

/// Seeds until the checks see the sabotage, and what they see.
fn seeds_until_seen(sabotage: Sabotage) -> Option<(u64, String)> {
    (0..SEEDS_OF_SABOTAGE).find_map(|seed| {
        let outcome = run(&Plan::draw(seed, Some(sabotage)), false);
        Some((seed + 1, outcome.violations.into_iter().next()?))
    })
}

#[test]
#[ignore = "takes minutes without optimisation; the step sim runs it"]
fn every_sabotage_is_seen() {
    for (name, sabotage) in SABOTAGES {
        let (seeds, seen) = seeds_until_seen(*sabotage).unwrap_or_else(|| panic!("{name}"));
        println!("{name:<24} {seeds:>4} seeds: {seen}");
    }
}

#[test]
fn failing_run_is_made_smaller() {
    let plan = Plan::draw(0, Some(Sabotage::ConfirmAtOwnSync));
    assert!(!run(&plan, false).violations.is_empty(), "the sabotage is seen at once");
    let small = shrink(&plan);
    assert!(small.nemeses.is_empty() && small.chaos_us < plan.chaos_us, "{small:?}");
    let outcome = run(&small, true);
    assert!(outcome.violations.first().is_some_and(|it| it.starts_with("confirmed early")));
    assert!(outcome.story.last(1).any(|(_, line)| line.starts_with("VIOLATION")));
}

#[test]
fn sabotages_have_names() {
    for (name, sabotage) in SABOTAGES {
        assert_eq!((Sabotage::named(name), sabotage.name()), (Some(*sabotage), *name));
    }
    assert_eq!(Sabotage::named("none"), None);
}

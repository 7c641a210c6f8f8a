//! Runs of the simulation: nothing is lost, the same seed gives the same run, and sabotages are seen.
//!
//! These are few, because the broker is not optimised here; the step `sim` of the test command runs more.

use sim::{Counts, Plan, SABOTAGES, Sabotage, run, shrink};

/// Sabotages that the first seed shows.
const SHOWN_AT_ONCE: [Sabotage; 4] = [
    Sabotage::ConfirmAtOwnSync,
    Sabotage::DeliverBeforeCommit,
    Sabotage::RecordSkipped,
    Sabotage::DeathTorn,
];

#[test]
fn runs_without_a_sabotage_break_no_check() {
    let mut counts = Counts::default();
    for seed in 0..2 {
        let outcome = run(&Plan::draw(seed, None), false);
        assert_eq!(outcome.violations, Vec::<String>::new(), "cargo xtask sim --seed {seed}");
        counts += outcome.counts;
    }
    assert!(counts.confirmed > 0 && counts.redriven > 0, "{counts}");
}

#[test]
fn same_seed_gives_the_same_run() {
    let plan = Plan { chaos_us: 6_000_000, ..Plan::draw(3, None) };
    let once = run(&plan, false).story.hash();
    assert_eq!(once, run(&plan, true).story.hash(), "the same, whether lines are kept or not");
    let other = Plan { seed: 4, ..plan };
    assert_ne!(once, run(&other, false).story.hash(), "another seed");
}

#[test]
fn sabotages_are_seen() {
    for sabotage in SHOWN_AT_ONCE {
        let outcome = run(&Plan::draw(0, Some(sabotage)), false);
        assert!(!outcome.violations.is_empty(), "{}", sabotage.name());
    }
}

#[test]
fn failing_run_is_made_smaller() {
    let plan = Plan::draw(0, Some(Sabotage::ConfirmAtOwnSync));
    let small = shrink(&plan);
    assert!(small.nemeses.is_empty() && small.chaos_us < plan.chaos_us, "{small:?}");
    let outcome = run(&small, true);
    assert!(outcome.violations.first().is_some_and(|it| it.starts_with("confirmed early")));
    assert!(outcome.story.last(1).any(|(_, line)| line.starts_with("VIOLATION")));
}

#[test]
fn sabotages_have_names() {
    for (name, sabotage, _) in SABOTAGES {
        assert_eq!((Sabotage::named(name), sabotage.name()), (Some(*sabotage), *name));
    }
    assert_eq!(Sabotage::named("none"), None);
}

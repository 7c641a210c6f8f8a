//! Smaller runs that fail in the same way.

use crate::plan::Plan;
use crate::run::run;

/// Runs that are tried.
const RUNS_MAX: usize = 200;

/// The kind of a violation: its words up to the first number.
fn kind(violation: &str) -> &str {
    let end = violation.find(|letter: char| letter.is_ascii_digit()).unwrap_or(violation.len());
    &violation[..end]
}

/// A plan with fewer faults, fewer clients and less time that breaks the same check. The plan itself if it breaks none.
#[must_use]
pub fn shrink(plan: &Plan) -> Plan {
    let first = run(plan, false).violations.into_iter().next();
    let Some(first) = first else { return plan.clone() };
    let mut runs = 0;
    let mut fails = |plan: &Plan| {
        runs += 1;
        let outcome = (runs <= RUNS_MAX).then(|| run(plan, false));
        outcome.is_some_and(|it| it.violations.first().is_some_and(|it| kind(it) == kind(&first)))
    };
    let mut best = plan.clone();
    loop {
        let before = best.clone();
        for at in (0..best.nemeses.len()).rev() {
            let mut smaller = best.clone();
            smaller.nemeses.remove(at);
            if fails(&smaller) {
                best = smaller;
            }
        }
        for clients in [(1, best.clients.1), (best.clients.0, 1)] {
            let smaller = Plan { clients, ..best.clone() };
            if smaller != best && fails(&smaller) {
                best = smaller;
            }
        }
        let without = Plan { schedulers: 0, ..best.clone() };
        if without != best && fails(&without) {
            best = without;
        }
        let last_us = best.nemeses.last().map_or(3_000_000, |(at_us, _)| *at_us + 500_000);
        for chaos_us in [last_us, best.chaos_us / 2, best.chaos_us * 3 / 4] {
            let smaller = Plan { chaos_us, ..best.clone() };
            if chaos_us < best.chaos_us && fails(&smaller) {
                best = smaller;
            }
        }
        if best == before {
            return best;
        }
    }
}

//! The lines that a test run prints: progress, the table of times, and the numbers of tests.
//!
//! Knows the results of steps and nothing of how they came about.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;

use super::actions::Outcome;
use super::schedule::{Event, StepResult};
use super::steps::Step;
use super::tally::Tally;
use crate::process::Cancelled;

/// True if the step was ended because another one failed.
pub(super) fn is_cancelled(end: &StepResult) -> bool {
    end.result.as_ref().is_err_and(|error| error.is::<Cancelled>())
}

/// The line of an event, without its time.
pub(super) fn progress(event: &Event<'_>) -> String {
    match event {
        Event::Began(step) => format!("{:<16} {} ...", step.name, step.what),
        Event::Ended(end) => {
            format!("{:<16} {} in {}", end.step.name, describe(end), duration(end.elapsed))
        }
    }
}

/// Time and result of every step, then the sum of the times beside the duration of the run.
pub(super) fn table(ends: &[StepResult], elapsed: Duration) -> String {
    let mut table = String::from("\n");
    for end in ends {
        // Writing into a string cannot fail.
        let _ = writeln!(
            table,
            "{:<16} {:>12}  {}",
            end.step.name,
            duration(end.elapsed),
            describe(end)
        );
    }
    let sum = ends.iter().map(|end| end.elapsed).sum();
    let _ = writeln!(table, "{:<16} {:>12}", "sum of steps", duration(sum));
    let _ = writeln!(table, "{:<16} {:>12}", "whole run", duration(elapsed));
    table
}

/// Numbers of all tests. A check without numbers counts as one; setup does not count unless it fails.
pub(super) fn tally(ends: &[StepResult], log: impl Fn(&Step) -> Result<String>) -> Tally {
    let mut sum = Tally::default();
    for end in ends {
        match &end.result {
            Ok(Outcome::Counted(tally)) => sum += *tally,
            Ok(_) if end.step.is_setup => {}
            Ok(Outcome::Done) => sum.passed += 1,
            Ok(Outcome::LeftOut(_)) => sum.skipped += 1,
            Err(_) if is_cancelled(end) => {}
            Err(_) => sum += Tally::of_failure(&log(end.step).unwrap_or_default()),
        }
    }
    sum
}

fn describe(end: &StepResult) -> String {
    match &end.result {
        Ok(outcome) => outcome.describe(end.step),
        Err(_) if is_cancelled(end) => "cancelled".to_owned(),
        Err(_) => "FAILED".to_owned(),
    }
}

/// A duration as people say it: `0.4 s`, `37 s`, `6 min 12 s`.
fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// The time since the start of the run, in minutes and seconds: ` 6:12`.
pub(super) fn clock(elapsed: Duration) -> String {
    format!("{:>2}:{:02}", elapsed.as_secs() / 60, elapsed.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::super::steps::STEPS;
    use super::*;

    fn end(name: &str, result: Result<Outcome>, seconds: u64) -> StepResult {
        let step = STEPS.iter().find(|step| step.name == name).unwrap();
        StepResult { step, result, elapsed: Duration::from_secs(seconds) }
    }

    fn counted(passed: usize, skipped: usize) -> Result<Outcome> {
        Ok(Outcome::Counted(Tally { passed, failed: 0, skipped }))
    }

    #[test]
    fn progress_has_beginnings_and_ends() {
        let end = end("blackbox", counted(231, 2), 131);
        let began = progress(&Event::Began(end.step));
        assert_eq!(began, "blackbox         behaviour, seen by a client ...");
        let ended = progress(&Event::Ended(&end));
        assert_eq!(ended, "blackbox         231 black-box tests (2 skipped) in 2 min 11 s");
        assert_eq!(clock(Duration::from_secs(372)), " 6:12");
    }

    #[test]
    fn table_has_each_step_and_both_sums() {
        let ends = [
            end("fmt", Ok(Outcome::Done), 1),
            end("clippy", Err(anyhow!("a lint")), 64),
            end("unit", Err(Cancelled.into()), 61),
        ];
        assert_eq!(
            table(&ends, Duration::from_secs(65)),
            "\nfmt                     1.0 s  ok\n\
             clippy              1 min 4 s  FAILED\n\
             unit                1 min 1 s  cancelled\n\
             sum of steps        2 min 6 s\n\
             whole run           1 min 5 s\n"
        );
    }

    #[test]
    fn tally_counts_checks_and_tests() {
        let ends = [
            end("fmt", Ok(Outcome::Done), 0),
            end("build", Ok(Outcome::Done), 0),
            end("deny", Ok(Outcome::LeftOut("missing".to_owned())), 0),
            end("unit", counted(412, 0), 0),
            end("blackbox", Err(anyhow!("pytest failed")), 0),
            end("hostile", Err(Cancelled.into()), 0),
        ];
        let log = |_: &Step| Ok("=== 3 failed, 231 passed, 2 skipped in 61.20s ===".to_owned());
        assert_eq!(tally(&ends, log).closing_line(), "644 passed, 3 failed, 3 skipped");
    }

    #[test]
    fn durations_are_said_as_people_say_them() {
        let said = [400, 37_200, 60_000].map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(said, ["0.4 s", "37 s", "1 min 0 s"]);
    }
}

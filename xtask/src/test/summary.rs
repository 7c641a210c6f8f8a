//! The lines that a test run prints: progress, the table of times, what has failed, and the numbers of tests.
//!
//! Knows the results of steps and their logs, and nothing of how they came about.

use std::fmt::Write as _;
use std::time::Duration;

use super::actions::Outcome;
use super::findings;
use super::schedule::{End, StepResult};
use super::steps::Step;
use super::tally::Tally;

/// Slow tests that are named.
const SLOW_TESTS_MAX: usize = 10;

/// Failed tests of a step that are named; all are in its log.
const FAILED_TESTS_MAX: usize = 50;

/// Last lines that are shown of a failed step without failed tests.
const LAST_LINES_MAX: usize = 10;

/// The line of a step that begins, without its time.
pub(super) fn began(step: &Step) -> String {
    format!("{:<18} {} ...", step.name, step.what)
}

/// The line of a step that has ended, without its time.
pub(super) fn ended(end: &StepResult) -> String {
    format!("{:<18} {} in {}", end.step.name, describe(end), duration(end.elapsed))
}

/// The line of the steps that run: `running: blackbox 43 % (2 min 10 s), unit (12 s)`.
pub(super) fn running(
    steps: &[(&'static Step, Duration)],
    log: impl Fn(&Step) -> String,
) -> String {
    let of = |(step, elapsed): &(&'static Step, Duration)| {
        let progress = findings::progress(&log(step)).map(|text| format!(" {text}"));
        format!("{}{} ({})", step.name, progress.unwrap_or_default(), duration(*elapsed))
    };
    format!("running: {}", steps.iter().map(of).collect::<Vec<_>>().join(", "))
}

/// Time, processor time and result of every step, then the sums, and the duration of the run with all its processor time.
pub(super) fn table(ends: &[StepResult], elapsed: Duration, cpu_time: Duration) -> String {
    let mut table = String::from("\n");
    // Writing into a string cannot fail.
    let mut row = |name: &str, time: &str, cpu_time: &str, result: &str| {
        let line = format!("{name:<18} {time:>12} {cpu_time:>12}  {result}");
        let _ = writeln!(table, "{}", line.trim_end());
    };
    row("step", "time", "processors", "result");
    let mut timed = |name: &str, time: Duration, cpu_time: Duration, result: &str| {
        row(name, &duration(time), &duration(cpu_time), result);
    };
    for end in ends {
        timed(end.step.name, end.elapsed, end.cpu_time, &describe(end));
    }
    let sum = |of: fn(&StepResult) -> Duration| ends.iter().map(of).sum();
    timed("sum of steps", sum(|end| end.elapsed), sum(|end| end.cpu_time), "");
    timed("whole run", elapsed, cpu_time, "");
    table
}

/// The slowest tests of all steps that name theirs.
pub(super) fn slow_tests(ends: &[StepResult], log: impl Fn(&Step) -> String) -> String {
    let mut slow: Vec<(f64, String)> = Vec::new();
    for end in ends {
        let log = log(end.step);
        let tests = findings::slow_tests(&log).into_iter();
        slow.extend(tests.map(|(seconds, test)| (seconds, format!("{}: {test}", end.step.name))));
    }
    slow.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut text = String::new();
    for (at, (seconds, test)) in slow.iter().take(SLOW_TESTS_MAX).enumerate() {
        let heading = if at == 0 { "\nslowest tests:\n" } else { "" };
        let _ = writeln!(text, "{heading}{seconds:>8.1} s  {test}");
    }
    text
}

/// The tests and steps that did not run, with the reasons.
pub(super) fn skips(ends: &[StepResult], log: impl Fn(&Step) -> String) -> String {
    let mut reasons = String::new();
    for end in ends {
        for skip in findings::skips(&log(end.step)) {
            let _ = writeln!(reasons, "{:>8}  {}: {}", skip.count, end.step.name, skip.reason);
        }
        if let End::LeftOut(_) = end.end {
            let _ = writeln!(reasons, "    step  {}: {}", end.step.name, describe(end));
        }
    }
    match reasons.as_str() {
        "" => "\nevery test ran\n".to_owned(),
        _ => format!(
            "\nthese tests did not run, so that what they promise was not tested:\n{reasons}"
        ),
    }
}

/// The tests and steps that have failed, each with its reason and the command that repeats it.
pub(super) fn failures(ends: &[StepResult], log: impl Fn(&Step) -> String) -> String {
    let mut text = String::new();
    for end in ends {
        let Some(error) = end.error() else { continue };
        let heading = if text.is_empty() { "\nfailed:\n" } else { "" };
        let name = end.step.name;
        let _ = writeln!(text, "{heading}  {name}: {error:#}");
        let log = log(end.step);
        let tests = findings::failed_tests(&log);
        for test in tests.iter().take(FAILED_TESTS_MAX) {
            let reason = findings::reason(&log, test).map(|reason| format!(": {reason}"));
            let reason = reason.unwrap_or_default();
            let _ = writeln!(
                text,
                "    {test}{reason}\n      again: {} --filter '{test}'",
                again(name)
            );
        }
        if tests.len() > FAILED_TESTS_MAX {
            let _ = writeln!(text, "    and {} more", tests.len() - FAILED_TESTS_MAX);
        }
        if tests.is_empty() {
            for line in findings::last_lines(&log, LAST_LINES_MAX) {
                let _ = writeln!(text, "    | {line}");
            }
            let _ = writeln!(text, "      again: {}", again(name));
        }
    }
    text
}

fn again(step: &str) -> String {
    format!("cargo xtask test --only {step}")
}

/// Numbers of all tests. A check without numbers counts as one; setup does not count unless it fails.
pub(super) fn tally(ends: &[StepResult], log: impl Fn(&Step) -> String) -> Tally {
    let mut sum = Tally::default();
    for end in ends {
        match &end.end {
            End::Ran(Ok(Outcome::Counted(tally))) => sum += *tally,
            End::Ran(Ok(Outcome::Done)) => sum.passed += usize::from(!end.step.is_setup),
            End::Ran(Err(_)) => sum += Tally::of_failure(&log(end.step)),
            End::LeftOut(_) => sum.skipped += usize::from(!end.step.is_setup),
        }
    }
    sum
}

fn describe(end: &StepResult) -> String {
    match &end.end {
        End::Ran(Ok(outcome)) => outcome.describe(end.step),
        End::Ran(Err(_)) => "FAILED".to_owned(),
        End::LeftOut(Some(need)) => format!("did not run, as it needs `{need}`"),
        End::LeftOut(None) => "did not run".to_owned(),
    }
}

/// A duration as people say it: `0.4 s`, `37 s`, `6 min 12 s`.
pub(super) fn duration(duration: Duration) -> String {
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

    use super::super::table::STEPS;
    use super::*;

    const DONE: End = End::Ran(Ok(Outcome::Done));

    fn end(name: &str, end: End, seconds: u64) -> StepResult {
        let step = STEPS.iter().find(|step| step.name == name).unwrap();
        let (elapsed, cpu_time) = (Duration::from_secs(seconds), Duration::from_secs(2 * seconds));
        StepResult { step, end, elapsed, cpu_time }
    }

    fn counted(passed: usize, skipped: usize) -> End {
        End::Ran(Ok(Outcome::Counted(Tally { passed, failed: 0, skipped })))
    }

    fn failed() -> End {
        End::Ran(Err(anyhow!("broken")))
    }

    #[test]
    fn progress_has_beginnings_and_ends() {
        let end = end("blackbox", counted(231, 2), 131);
        assert_eq!(began(end.step), "blackbox           behaviour, seen by a client ...");
        let text = ended(&end);
        assert_eq!(text, "blackbox           231 black-box tests (2 skipped) in 2 min 11 s");
        assert_eq!(clock(Duration::from_secs(372)), " 6:12");
        let steps = [(end.step, Duration::from_secs(61)), (&STEPS[0], Duration::from_secs(3))];
        let log =
            |step: &Step| if step.name == "blackbox" { "... [ 43%]\n" } else { "" }.to_owned();
        assert_eq!(running(&steps, log), "running: blackbox 43 % (1 min 1 s), fmt (3.0 s)");
    }

    #[test]
    fn table_has_each_step_and_the_sums() {
        let ends = [
            end("fmt", DONE, 1),
            end("clippy", failed(), 64),
            end("unit", End::LeftOut(Some("clippy")), 0),
        ];
        assert_eq!(
            table(&ends, Duration::from_secs(65), Duration::from_secs(180)),
            "\nstep                       time   processors  result\n\
             fmt                       1.0 s        2.0 s  ok\n\
             clippy                1 min 4 s    2 min 8 s  FAILED\n\
             unit                      0.0 s        0.0 s  did not run, as it needs `clippy`\n\
             sum of steps          1 min 5 s   2 min 10 s\n\
             whole run             1 min 5 s    3 min 0 s\n"
        );
    }

    #[test]
    fn tally_counts_checks_and_tests() {
        let ends = [
            end("fmt", DONE, 0),
            end("build", DONE, 0),
            end("unit", counted(412, 0), 0),
            end("blackbox", failed(), 0),
            end("hostile", End::LeftOut(None), 0),
        ];
        let log = |_: &Step| "=== 3 failed, 231 passed, 2 skipped in 61.20s ===".to_owned();
        assert_eq!(tally(&ends, log).closing_line(), "644 passed, 3 failed, 3 skipped");
    }

    #[test]
    fn failures_have_the_command_that_repeats_them() {
        let ends = [
            end("crash", failed(), 1),
            end("clippy", counted(1, 0), 1),
            end("unit", failed(), 1),
            end("web", failed(), 1),
        ];
        let log = |step: &Step| {
            let log = match step.name {
                "crash" => "run 1\nrun 2: a message is lost\n",
                "unit" => "test queue::tests::b ... FAILED\n",
                "web" => "FAILED test_a.py::test_b - OSError: gone\n",
                _ => "",
            };
            log.to_owned()
        };
        assert_eq!(
            failures(&ends, log),
            "\nfailed:\n  crash: broken\n    | run 1\n    | run 2: a message is lost\n      \
             again: cargo xtask test --only crash\n  unit: broken\n    queue::tests::b\n      \
             again: cargo xtask test --only unit --filter 'queue::tests::b'\n  web: broken\n    \
             test_a.py::test_b: OSError: gone\n      \
             again: cargo xtask test --only web --filter 'test_a.py::test_b'\n"
        );
        assert_eq!(failures(&ends[1..2], |_| String::new()), "");
    }

    #[test]
    fn tests_that_did_not_run_have_reasons() {
        let ends = [
            end("clippy", failed(), 1),
            end("unit", End::LeftOut(Some("clippy")), 0),
            end("blackbox", counted(9, 2), 1),
        ];
        let log = |step: &Step| {
            let skip = "SKIPPED [2] test_a.py:3: no streams\n";
            if step.name == "blackbox" { skip.to_owned() } else { String::new() }
        };
        assert_eq!(
            skips(&ends, log),
            "\nthese tests did not run, so that what they promise was not tested:\n    \
             step  unit: did not run, as it needs `clippy`\n       2  blackbox: no streams\n"
        );
        assert_eq!(skips(&[], |_| String::new()), "\nevery test ran\n");
    }

    #[test]
    fn slow_tests_are_sorted_over_all_steps() {
        let ends = [end("web", counted(1, 0), 1), end("blackbox", counted(1, 0), 1)];
        let log = |step: &Step| match step.name {
            "web" => "1.5s call a.py::one\n".to_owned(),
            _ => "9.0s call b.py::two\n".to_owned(),
        };
        assert_eq!(
            slow_tests(&ends, log),
            "\nslowest tests:\n     9.0 s  blackbox: b.py::two\n     1.5 s  web: a.py::one\n"
        );
    }

    #[test]
    fn durations_are_said_as_people_say_them() {
        let said = [400, 37_200, 60_000].map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(said, ["0.4 s", "37 s", "1 min 0 s"]);
    }
}

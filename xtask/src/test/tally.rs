//! How many tests ran, read from what cargo, pytest and the Java checks print.
//!
//! Knows the three summaries and nothing else of the logs. A suite in which no test passed is a
//! failure: a filter or a broken collection must not look like success.

use anyhow::{Result, ensure};

/// The numbers of one suite that did not fail.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) skipped: usize,
}

impl Tally {
    /// Adds up the summaries of all test programs: `test result: ok. 5 passed; ... 0 ignored; ...`.
    ///
    /// # Errors
    /// When no test passed.
    pub(super) fn of_cargo(log: &str) -> Result<Self> {
        let mut tally = Self::default();
        for line in log.lines().filter(|line| line.starts_with("test result: ")) {
            tally.passed += number_before(line, "passed").unwrap_or(0);
            tally.skipped += number_before(line, "ignored").unwrap_or(0);
        }
        tally.checked()
    }

    /// Reads the last summary: `=== 5 passed, 1 skipped in 0.12s ===` `5 checks passed` or `5 passed`.
    ///
    /// # Errors
    /// When no test passed.
    pub(super) fn of_suite(log: &str) -> Result<Self> {
        let passed = |line: &str| {
            number_before(line, "passed").or_else(|| number_before(line, "checks passed"))
        };
        let summary = log.lines().rev().find(|line| passed(line).is_some()).unwrap_or_default();
        let skipped = number_before(summary, "skipped").unwrap_or(0);
        Self { passed: passed(summary).unwrap_or(0), skipped }.checked()
    }

    /// Inputs that were tried.
    ///
    /// # Errors
    /// When there was none.
    pub(super) fn of_executions(executions: u64) -> Result<Self> {
        let passed = usize::try_from(executions).unwrap_or(usize::MAX);
        Self { passed, skipped: 0 }.checked()
    }

    /// The numbers with what they count: `231 black-box tests (2 skipped)`.
    pub(super) fn describe(&self, what: &str) -> String {
        let Self { passed, skipped } = self;
        if *skipped == 0 {
            format!("{passed} {what}")
        } else {
            format!("{passed} {what} ({skipped} skipped)")
        }
    }

    fn checked(self) -> Result<Self> {
        ensure!(self.passed > 0, "no test ran");
        Ok(self)
    }
}

/// The number that stands right before the first `words` of the line.
fn number_before(line: &str, words: &str) -> Option<usize> {
    let before = line[..line.find(words)?].strip_suffix(' ')?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_prints_one_summary_per_test_program() {
        let log = "running 2 tests\n\
            test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished\n\
            test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished\n\
            test result: ok. 30 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished\n";
        assert_eq!(Tally::of_cargo(log).unwrap(), Tally { passed: 42, skipped: 1 });
    }

    #[test]
    fn pytest_prints_its_summary_last() {
        let log =
            "test_a.py::b asserts 3 passed\n=== 231 passed, 2 skipped in 61.20s (0:01:01) ===\n";
        assert_eq!(Tally::of_suite(log).unwrap(), Tally { passed: 231, skipped: 2 });
        assert_eq!(Tally::of_suite("7 passed in 0.1s\n").unwrap().passed, 7);
    }

    #[test]
    fn java_checks_print_how_many_passed() {
        assert_eq!(Tally::of_suite("17 checks passed\n").unwrap().passed, 17);
    }

    #[test]
    fn nothing_that_passed_is_a_failure() {
        let summary = "test result: ok. 0 passed; 0 failed; 0 ignored\n";
        assert_eq!(Tally::of_cargo(summary).unwrap_err().to_string(), "no test ran");
        assert!(Tally::of_suite("=== 3 skipped in 0.1s ===").is_err());
        assert!(Tally::of_suite("").is_err());
    }

    #[test]
    fn skipped_tests_are_said() {
        let describe = |skipped| Tally { passed: 5, skipped }.describe("checks");
        assert_eq!([describe(0), describe(2)], ["5 checks", "5 checks (2 skipped)"]);
    }
}

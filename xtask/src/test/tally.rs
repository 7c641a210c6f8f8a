//! Numbers of tests, read from the output of cargo, pytest and the suites' own programs.
//!
//! Knows the three kinds of summaries and nothing else of the logs. A suite in which no test passed is a
//! failure: a filter or a broken collection must not look like success.

use std::ops::AddAssign;

use anyhow::{Result, ensure};

/// Numbers of tests by their result.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl Tally {
    /// Adds up the summaries of all test programs: `test result: ok. 5 passed; 0 failed; 0 ignored; ...`.
    ///
    /// # Errors
    /// When no test passed.
    pub(super) fn of_cargo(log: &str) -> Result<Self> {
        Self::sum_of_cargo(log).checked()
    }

    /// Reads the last summary: `=== 5 passed, 1 skipped in 0.12s ===` `5 checks passed` or `5 passed`.
    ///
    /// # Errors
    /// When no test passed.
    pub(super) fn of_suite(log: &str) -> Result<Self> {
        Self::last_of_suite(log).checked()
    }

    /// So many checks that all passed.
    ///
    /// # Errors
    /// When there was none.
    pub(super) fn of_checks(passed: usize) -> Result<Self> {
        Self { passed, ..Self::default() }.checked()
    }

    /// Numbers of a step that failed, from its log: at least one failure, even if no summary has any.
    pub(super) fn of_failure(log: &str) -> Self {
        let mut tally = Self::sum_of_cargo(log);
        if tally == Self::default() {
            tally = Self::last_of_suite(log);
        }
        Self { failed: tally.failed.max(1), ..tally }
    }

    /// The numbers with a noun for them: `231 black-box tests (2 skipped)`.
    pub(super) fn describe(&self, noun: &str) -> String {
        let Self { passed, skipped, .. } = self;
        if *skipped == 0 {
            format!("{passed} {noun}")
        } else {
            format!("{passed} {noun} ({skipped} skipped)")
        }
    }

    /// The closing line of a run.
    pub(super) fn closing_line(&self) -> String {
        let Self { passed, failed, skipped } = self;
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }

    fn sum_of_cargo(log: &str) -> Self {
        let mut sum = Self::default();
        for line in log.lines().filter(|line| line.starts_with("test result: ")) {
            let number = |words| number_before(line, words).unwrap_or(0);
            sum += Self {
                passed: number("passed"),
                failed: number("failed"),
                skipped: number("ignored"),
            };
        }
        sum
    }

    fn last_of_suite(log: &str) -> Self {
        let passed = |line: &str| {
            number_before(line, "passed").or_else(|| number_before(line, "checks passed"))
        };
        let failed = |line: &str| number_before(line, "failed");
        let is_summary = |line: &&str| passed(line).is_some() || failed(line).is_some();
        let summary = log.lines().rev().find(is_summary).unwrap_or_default();
        Self {
            passed: passed(summary).unwrap_or(0),
            failed: failed(summary).unwrap_or(0),
            skipped: number_before(summary, "skipped").unwrap_or(0),
        }
    }

    fn checked(self) -> Result<Self> {
        ensure!(self.passed > 0, "no test ran");
        Ok(self)
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// The number right before the first `words` of the line.
fn number_before(line: &str, words: &str) -> Option<usize> {
    let before = line[..line.find(words)?].strip_suffix(' ')?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_cargo_are_added_up() {
        let log = "running 2 tests\n\
            test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished\n\
            test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished\n\
            test result: ok. 30 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished\n";
        assert_eq!(Tally::of_cargo(log).unwrap(), Tally { passed: 42, failed: 0, skipped: 1 });
    }

    #[test]
    fn summary_of_pytest_is_the_last() {
        let log =
            "test_a.py::b asserts 3 passed\n=== 231 passed, 2 skipped in 61.20s (0:01:01) ===\n";
        assert_eq!(Tally::of_suite(log).unwrap(), Tally { passed: 231, failed: 0, skipped: 2 });
        assert_eq!(Tally::of_suite("7 passed in 0.1s\n").unwrap().passed, 7);
    }

    #[test]
    fn summary_of_java_checks_is_read() {
        assert_eq!(Tally::of_suite("17 checks passed\n").unwrap().passed, 17);
    }

    #[test]
    fn suite_without_a_passed_test_is_a_failure() {
        let summary = "test result: ok. 0 passed; 0 failed; 0 ignored\n";
        assert_eq!(Tally::of_cargo(summary).unwrap_err().to_string(), "no test ran");
        assert!(Tally::of_suite("=== 3 skipped in 0.1s ===").is_err());
        assert!(Tally::of_suite("").is_err());
    }

    #[test]
    fn skipped_tests_are_described() {
        let describe = |skipped| Tally { passed: 5, failed: 0, skipped }.describe("checks");
        assert_eq!([describe(0), describe(2)], ["5 checks", "5 checks (2 skipped)"]);
    }

    #[test]
    fn failed_step_has_at_least_one_failure() {
        let pytest = "=== 3 failed, 231 passed, 2 skipped in 61.20s ===\n";
        assert_eq!(Tally::of_failure(pytest), Tally { passed: 231, failed: 3, skipped: 2 });
        let cargo = "test result: FAILED. 12 passed; 2 failed; 1 ignored; 0 measured\n\
            test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured\n";
        assert_eq!(Tally::of_failure(cargo), Tally { passed: 15, failed: 2, skipped: 1 });
        let crashed = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured\n";
        assert_eq!(Tally::of_failure(crashed), Tally { passed: 3, failed: 1, skipped: 0 });
        assert_eq!(Tally::of_failure("error: it does not compile\n").failed, 1);
    }

    #[test]
    fn closing_line_has_all_three_numbers() {
        let tally = Tally { passed: 3042, failed: 1, skipped: 4 };
        assert_eq!(tally.closing_line(), "3042 passed, 1 failed, 4 skipped");
    }
}

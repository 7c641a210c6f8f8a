//! Single tests in the logs of steps: which have failed, were skipped, or took long.
//!
//! Knows the lines of cargo and of pytest. A program that prints its own way names no tests: then the step stands for
//! them.

/// A test that did not run, or several for the same reason.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Skip {
    pub(super) count: usize,
    pub(super) reason: String,
}

/// Names of the tests that have failed, as `--filter` takes them.
pub(super) fn failed_tests(log: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in log.lines().filter_map(failed_test) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Name of the test that has failed, in a line of cargo or pytest.
pub(crate) fn failed_test(line: &str) -> Option<&str> {
    // `test queue::tests::name ... FAILED`, `test queue::tests::name - should panic ... FAILED`
    if let Some(test) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
    {
        return test.split(' ').next();
    }
    // `FAILED test_a.py::test_b[classic] - AssertionError`, `ERROR test_a.py::test_b - OSError`
    let rest = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "))?;
    // Parameters may contain anything.
    let has_parameters = rest.find('[') < rest.find(" - ") && rest.contains('[');
    let name = match rest.find("] - ").filter(|_| has_parameters) {
        Some(end) => &rest[..=end],
        None => rest.split(" - ").next()?.trim(),
    };
    name.split("::").next().is_some_and(|file| file.ends_with(".py")).then_some(name)
}

/// The reason that pytest gives in one line for the failure of a test.
pub(super) fn reason<'log>(log: &'log str, test: &str) -> Option<&'log str> {
    let line = log.lines().find(|line| failed_test(line) == Some(test))?;
    Some(line.split_once(test)?.1.strip_prefix(" - ")?.trim()).filter(|reason| !reason.is_empty())
}

/// The last lines of a log that say something, the latest last.
pub(super) fn last_lines(log: &str, count_max: usize) -> Vec<&str> {
    let said: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    said[said.len().saturating_sub(count_max)..].to_vec()
}

/// The reasons for which tests did not run: `SKIPPED [3] test_a.py:12: no streams`.
pub(super) fn skips(log: &str) -> Vec<Skip> {
    let mut skips: Vec<Skip> = Vec::new();
    for skip in log.lines().filter_map(skip) {
        match skips.iter_mut().find(|known| known.reason == skip.reason) {
            Some(known) => known.count += skip.count,
            None => skips.push(skip),
        }
    }
    skips
}

fn skip(line: &str) -> Option<Skip> {
    let (count, rest) = line.strip_prefix("SKIPPED [")?.split_once("] ")?;
    let place_and_reason = rest.split_once(": ");
    let reason = place_and_reason.map_or(rest, |(_, reason)| reason);
    Some(Skip { count: count.parse().ok()?, reason: reason.trim().to_owned() })
}

/// The slowest parts of tests, in seconds: `12.34s call     test_a.py::test_b`.
pub(super) fn slow_tests(log: &str) -> Vec<(f64, &str)> {
    log.lines().filter_map(slow_test).collect()
}

fn slow_test(line: &str) -> Option<(f64, &str)> {
    let mut words = line.split_whitespace();
    let seconds = words.next()?.strip_suffix('s')?.parse().ok()?;
    let phase = words.next()?;
    let name = words.next()?;
    (["call", "setup", "teardown"].contains(&phase) && name.contains("::"))
        .then_some((seconds, name))
}

/// Progress of a step, by its log: `43 %` of pytest, `212 crates` of cargo, `1,200 tests` of its tests.
pub(super) fn progress(log: &str) -> Option<String> {
    if let Some(percent) = log.lines().rev().find_map(percent) {
        return Some(format!("{percent} %"));
    }
    let count = |is_one: fn(&&str) -> bool| log.lines().filter(is_one).count();
    let tests = count(|line| line.starts_with("test ") && line.ends_with(" ... ok"));
    let crates = count(|line| line.trim_start().starts_with("Compiling "));
    match (tests, crates) {
        (0, 0) => None,
        (0, crates) => Some(format!("{crates} crates")),
        (tests, _) => Some(format!("{tests} tests")),
    }
}

/// `....F... [ 43%]`
fn percent(line: &str) -> Option<u32> {
    line.trim_end().strip_suffix("%]")?.rsplit('[').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_of_both_kinds_are_named_once() {
        let log = "test queue::tests::a ... ok\n\
            test queue::tests::b ... FAILED\n\
            test queue::tests::c - should panic ... FAILED\n\
            FAILED test_a.py::test_b[x - y] - AssertionError: 1 - 2\n\
            ERROR test_a.py::test_d - OSError\n\
            ERROR test_a.py::test_d - OSError\n\
            ERROR: something else\n\
            FAILED to do something\n";
        assert_eq!(
            failed_tests(log),
            ["queue::tests::b", "queue::tests::c", "test_a.py::test_b[x - y]", "test_a.py::test_d"]
        );
    }

    #[test]
    fn reasons_of_failures_are_those_of_pytest() {
        let log = "test queue::tests::b ... FAILED\n\
            FAILED test_a.py::test_b[x - y] - AssertionError: 1 - 2\n\
            ERROR test_a.py::test_d\n";
        assert_eq!(reason(log, "test_a.py::test_b[x - y]"), Some("AssertionError: 1 - 2"));
        assert_eq!(reason(log, "test_a.py::test_d"), None);
        assert_eq!(reason(log, "queue::tests::b"), None);
    }

    #[test]
    fn last_lines_are_not_empty() {
        assert_eq!(last_lines("a\nb\n\nc\n \n", 2), ["b", "c"]);
        assert_eq!(last_lines("a\n", 2), ["a"]);
    }

    #[test]
    fn skips_with_the_same_reason_are_one() {
        let log = "SKIPPED [3] test_a.py:12: needs root\n\
            SKIPPED [1] test_b.py:3: no streams: later\n\
            SKIPPED [1] test_c.py:7: needs root\n";
        let skip = |count, reason: &str| Skip { count, reason: reason.to_owned() };
        assert_eq!(skips(log), [skip(4, "needs root"), skip(1, "no streams: later")]);
    }

    #[test]
    fn slow_tests_have_seconds() {
        let log = "=== slowest 2 durations ===\n\
            12.34s call     test_a.py::test_b[classic]\n\
            0.5s setup    test_a.py::test_c\n\
            3 passed in 12.90s\n";
        assert_eq!(
            slow_tests(log),
            [(12.34, "test_a.py::test_b[classic]"), (0.5, "test_a.py::test_c")]
        );
    }

    #[test]
    fn progress_is_read_in_logs_of_all_kinds() {
        assert_eq!(progress("...... [  9%]\n..F... [ 43%]\n..").unwrap(), "43 %");
        assert_eq!(progress("   Compiling a v1\n   Compiling b v1\n").unwrap(), "2 crates");
        assert_eq!(
            progress("   Compiling a v1\ntest a ... ok\ntest b ... ok\n").unwrap(),
            "2 tests"
        );
        assert_eq!(progress("$ java\n"), None);
    }
}

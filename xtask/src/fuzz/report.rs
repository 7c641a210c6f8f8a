//! The result of fuzzing one target, read from the output of libFuzzer.

use std::fmt;

/// The result of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Report {
    /// Inputs that were tried.
    pub(crate) executions: u64,
    seconds: u64,
    /// Edges of the program that were reached.
    edges: u64,
    /// Inputs that each reach something that no other does.
    inputs: u64,
    /// Failure of the target, with the input and the command that tries it again.
    pub(crate) finding: Option<String>,
}

impl Report {
    /// Reads the log of a run that was to take so many seconds and is repeated by the command `again`.
    pub(crate) fn read(log: &str, seconds: u64, again: &str) -> Self {
        let status =
            log.lines().rev().find(|line| line.starts_with('#') && line.contains(" cov: "));
        let behind = |name: &str| number_behind(status.unwrap_or_default(), name);
        let executions = log.lines().rev().find_map(|line| {
            line.strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok()
        });
        Self {
            executions: executions.unwrap_or(0),
            seconds: log.lines().rev().find_map(seconds_of_run).unwrap_or(seconds),
            edges: behind(" cov: ").unwrap_or(0),
            inputs: behind(" corp: ").unwrap_or(0),
            finding: finding(log, again),
        }
    }
}

/// `Done 1905 runs in 7 second(s)`
fn seconds_of_run(line: &str) -> Option<u64> {
    number_behind(line.strip_prefix("Done ")?, " runs in ")
}

/// The number that begins right behind `words`.
fn number_behind(line: &str, words: &str) -> Option<u64> {
    let rest = &line[line.find(words)? + words.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The summary of libFuzzer, the panic of the program, the input, and the command that tries it again.
fn finding(log: &str, again: &str) -> Option<String> {
    let summary = log.lines().find_map(|line| line.strip_prefix("SUMMARY: libFuzzer: "))?;
    let mut lines = vec![summary.to_owned()];
    let mut panic = log.lines().skip_while(|line| !line.contains(" panicked at "));
    lines.extend(panic.by_ref().take(2).map(|line| line.trim().to_owned()));
    let written = log.lines().find_map(|line| line.split_once("Test unit written to "));
    if let Some((_, path)) = written {
        lines.push(format!("input: {path}"));
        lines.push(format!("again: {again} {path}"));
    }
    Some(lines.join("\n               "))
}

impl fmt::Display for Report {
    /// Prints one line, and some more for a finding.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { executions, seconds, edges, inputs, finding } = self;
        let per_second = executions / (*seconds).max(1);
        write!(f, "{executions} executions, {per_second}/s, {edges} edges, {inputs} inputs, ")?;
        match finding {
            None => f.write_str("nothing found"),
            Some(finding) => write!(f, "FOUND: {finding}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_has_the_numbers_of_the_end() {
        let log = "#2\tINITED cov: 3 ft: 4 corp: 1/1b exec/s: 0 rss: 30Mb\n\
            #99\tDONE   cov: 412 ft: 1300 corp: 102/20Kb lim: 64 exec/s: 9 rss: 31Mb\n\
            Done 990 runs in 7 second(s)\n\
            stat::number_of_executed_units: 990\n";
        let report = Report::read(log, 5, "FUZZ_TARGET=topic fuzz-target");
        assert_eq!(
            report.to_string(),
            "990 executions, 141/s, 412 edges, 102 inputs, nothing found"
        );
    }

    #[test]
    fn finding_comes_with_its_input() {
        let log = "thread '<unnamed>' (7) panicked at src/topic.rs:108:9:\n\
            assertion failed\n\
            SUMMARY: libFuzzer: deadly signal\n\
            artifact_prefix='a/'; Test unit written to a/crash-0b02\n\
            stat::number_of_executed_units: 12\n";
        let report = Report::read(log, 5, "FUZZ_TARGET=topic fuzz-target");
        assert_eq!(report.executions, 12);
        let finding = report.finding.unwrap();
        let lines: Vec<&str> = finding.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "deadly signal",
                "thread '<unnamed>' (7) panicked at src/topic.rs:108:9:",
                "assertion failed",
                "input: a/crash-0b02",
                "again: FUZZ_TARGET=topic fuzz-target a/crash-0b02",
            ]
        );
    }
}

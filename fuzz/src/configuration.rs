//! `rabbitmq.conf`: problems are reported with their place, and the printed configuration can be read again.

use std::path::Path;

use server::Configuration;

/// File name in the texts of problems.
const FILE: &str = "fuzz.conf";

/// Checks the text of a configuration file.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // What another file says is not for a fuzzer to read.
    if text.lines().any(|line| line.trim_start().starts_with("include ")) {
        return;
    }
    match Configuration::parse(text, Path::new(FILE)) {
        Ok(configuration) => said_again(&configuration),
        Err(problems) => {
            assert!(!problems.is_empty());
            problems.iter().for_each(|problem| has_its_place(problem, text.lines().count()));
        }
    }
}

/// A problem of a line names it; others are of keys that cannot be together.
fn has_its_place(problem: &str, lines: usize) {
    assert!(!problem.contains(char::is_control), "{problem:?} is not one line");
    let Some(rest) = problem.strip_prefix("fuzz.conf, line ") else {
        let is_of_keys =
            problem.starts_with("listeners.ssl") || problem.starts_with("management.ssl");
        return assert!(is_of_keys, "{problem}");
    };
    let (number, what) = rest.split_once(": ").expect("a place and a problem");
    let number: usize = number.parse().expect("the number of a line");
    assert!((1..=lines).contains(&number), "{problem} of {lines} lines");
    assert!(!what.is_empty());
}

/// Reads a configuration as it is shown, which must be the same configuration.
fn said_again(configuration: &Configuration) {
    let shown: Vec<String> = configuration.in_force().collect();
    for line in &shown {
        assert!(!line.contains(char::is_control), "{line:?} is not one line");
    }
    let again = match Configuration::parse(&shown.join("\n"), Path::new(FILE)) {
        Ok(again) => again,
        Err(problems) => panic!("{problems:?} in {shown:#?}"),
    };
    let settings = |lines: &[String]| {
        let setting = |line: &String| {
            line.rsplit_once(" # ").map(|(setting, _)| setting.trim_end().to_owned())
        };
        let mut settings: Vec<_> = lines.iter().map(setting).collect();
        settings.sort();
        settings
    };
    assert_eq!(settings(&again.in_force().collect::<Vec<_>>()), settings(&shown));
}

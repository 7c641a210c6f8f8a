//! Checks for operators and monitors: `doctor` and `dlq check`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::command::{Call, Command, Section};
use crate::commands::answer::{items, number, word};
use crate::failure::Failure;
use crate::format::Output;
use crate::http::path;
use crate::printable::in_line;
use crate::term::Term;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Monitoring,
        "doctor",
        "doctor [--vhost <vhost>] [--timeout <timeout>]",
        "Lists everything that is wrong, with the way to mend it; exit code 1 for warnings, 2 for errors",
        doctor,
    )
    .everywhere()
    .banner(|call| format!("Diagnosing node {} ...", call.node.name())),
    Command::new(
        Section::Queues,
        "dlq check",
        "dlq check [--vhost <vhost>] [--timeout <timeout>]",
        "Checks where dead letters go; exit code 1 for warnings, 2 if dead letters are lost",
        check,
    )
    .everywhere()
    .banner(|call| format!("Checking dead letters of node {} ...", call.node.name())),
];

/// Exit code for warnings without errors.
const WARNING: u8 = 1;
/// Exit code for errors.
const ERROR: u8 = 2;

/// The path of a resource for all vhosts, or for the one in the options.
fn of_vhosts(call: &Call<'_>, names: &[&str]) -> String {
    let vhost = call.options.text("vhost");
    path(&names.iter().copied().chain(vhost).collect::<Vec<_>>())
}

fn get(call: &Call<'_>, path: &str) -> Result<Value, Failure> {
    call.node.api.find(path)?.ok_or_else(|| Failure::no_such_vhost(call.vhost()))
}

fn doctor(call: &Call<'_>) -> Result<Output, Failure> {
    let told = get(call, &of_vhosts(call, &["health", "findings"]))?;
    let findings: Vec<&Value> = items(&told, "findings").iter().collect();
    let mut text = in_words(&findings, "Nothing is wrong.", &hints(call, "leveretctl doctor"));
    if told.get("includes_node") == Some(&json!(false)) && call.options.text("vhost").is_none() {
        text.push_str("\nThe node was not examined: your user lacks the tag monitoring.");
    }
    Ok(graded(text, &findings, told.clone()))
}

fn check(call: &Call<'_>) -> Result<Output, Failure> {
    let findings = get(call, &of_vhosts(call, &["health", "findings"]))?;
    let map = get(call, &format!("{}?page=1&page_size=1", of_vhosts(call, &["dead-letter-map"])))?;
    let lost =
        items(&findings, "findings").iter().filter(|one| word(one, "kind") == "dead_letters_lost");
    let found: Vec<&Value> = lost.chain(items(&map, "warning_groups")).collect();
    let hints = hints(call, "leveretctl dlq check");
    let text = in_words(&found, "All dead letters have a place to go.", &hints);
    Ok(graded(text, &found, json!({"findings": found})))
}

/// The output with the exit code for these findings.
fn graded(text: String, findings: &[&Value], told: Value) -> Output {
    let has = |severity| findings.iter().any(|one| word(one, "severity") == severity);
    let code = match (has("error"), has("warning")) {
        (true, _) => ERROR,
        (false, true) => WARNING,
        (false, false) => 0,
    };
    Output::Graded { output: Box::new(Output::Both(text, told)), code }
}

/// The source of hints below a finding.
struct Hints<'a> {
    /// Address of the node that was asked, which serves the documents.
    url: &'a str,
    /// The command that runs, which is no hint.
    own: &'a str,
}

fn hints<'a>(call: &Call<'a>, own: &'a str) -> Hints<'a> {
    Hints { url: call.node.api.url(), own }
}

impl Hints<'_> {
    /// The command and the page that help with a finding, in one line.
    fn of(&self, finding: &Value) -> Option<String> {
        let command = in_line(word(finding, "command"));
        let page = word(finding, "docs").replace(".md", ".html");
        let page = (!page.is_empty()).then(|| format!("{}/docs/{}", self.url, in_line(&page)));
        let command = (!command.is_empty() && command != self.own).then(|| command.into_owned());
        let hints: Vec<String> = command.into_iter().chain(page).collect();
        (!hints.is_empty()).then(|| hints.join(", "))
    }
}

/// The findings for people, and a line with their number.
fn in_words(findings: &[&Value], nothing: &str, hints: &Hints<'_>) -> String {
    let mut text = String::new();
    for finding in findings {
        let severity = word(finding, "severity").to_uppercase();
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "{severity:8} {}", in_line(word(finding, "text")));
        let named: Vec<String> =
            items(finding, "resources").iter().chain(items(finding, "queues")).map(named).collect();
        for name in &named {
            let _ = writeln!(text, "         - {}", in_line(name));
        }
        let more = number(finding, "count").saturating_sub(named.len() as u64);
        if !named.is_empty() && more > 0 {
            let _ = writeln!(text, "         - and {more} more");
        }
        if let Some(hint) = hints.of(finding) {
            let _ = writeln!(text, "         See: {hint}");
        }
    }
    let number = |severity: &str| {
        let found = findings.iter().filter(|one| word(one, "severity") == severity).count();
        let plural = if found == 1 { "" } else { "s" };
        (found > 0).then(|| format!("{found} {severity}{plural}"))
    };
    let numbers: Vec<String> = ["error", "warning"].iter().filter_map(|one| number(one)).collect();
    text.push_str(&if numbers.is_empty() { nothing.to_owned() } else { numbers.join(", ") });
    text
}

/// A resource: its name, its vhost, and details.
fn named(resource: &Value) -> String {
    let mut text = Term::of(resource.get("name")).shown();
    if text.is_empty() && word(resource, "type") == "exchange" {
        "(default exchange)".clone_into(&mut text);
    }
    let vhost = word(resource, "vhost");
    if !vhost.is_empty() && word(resource, "type") != "vhost" {
        let _ = write!(text, " in vhost {vhost}");
    }
    let detail = word(resource, "detail");
    if !detail.is_empty() {
        let _ = write!(text, ": {detail}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HINTS: Hints<'static> = Hints { url: "http://h:1", own: "leveretctl doctor" };

    fn finding(severity: &str) -> Value {
        json!({
            "severity": severity,
            "text": "7 queues lose dead letters (34/s).",
            "count": 7,
            "resources": [
                {"type": "queue", "vhost": "/", "name": "payments", "detail": "17/s"},
                {"type": "vhost", "vhost": "v", "name": "v", "detail": ""},
            ],
            "command": "leveretctl dlq check",
            "docs": "guides/find-lost-messages.md",
        })
    }

    #[test]
    fn findings_are_printed_with_names_and_the_way_to_mend_them() {
        let (error, plain) = (finding("error"), json!({"severity": "info", "text": "So it is."}));
        assert_eq!(
            in_words(&[&error, &plain], "Nothing.", &HINTS),
            "ERROR    7 queues lose dead letters (34/s).
         - payments in vhost /: 17/s
         - v
         - and 5 more
         See: leveretctl dlq check, http://h:1/docs/guides/find-lost-messages.html
INFO     So it is.
1 error"
        );
        assert_eq!(in_words(&[], "Nothing.", &HINTS), "Nothing.");
        let checked = in_words(&[&error], "", &Hints { own: "leveretctl dlq check", ..HINTS });
        assert!(checked.contains("See: http://h:1/docs/guides/find-lost"), "{checked}");
    }

    #[test]
    fn name_in_a_finding_ends_no_line() {
        let finding = json!({
            "severity": "error", "text": "queue 'a\nb'", "count": 1, "command": "leveretctl x 'a\nb'", "docs": "d",
            "resources": [{"type": "queue", "vhost": "v\nw", "name": "a\rb", "detail": "\u{2028}"}],
        });
        let text = in_words(&[&finding], "", &HINTS);
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "ERROR    queue 'a\\u000ab'",
                "         - a\\u000db in vhost v\\u000aw: \\u2028",
                "         See: leveretctl x 'a\\u000ab', http://h:1/docs/d",
                "1 error",
            ]
        );
    }

    #[test]
    fn exit_code_is_that_of_the_worst_finding() {
        let code = |severities: &[&str]| {
            let findings: Vec<Value> = severities.iter().map(|one| finding(one)).collect();
            let findings: Vec<&Value> = findings.iter().collect();
            let output = graded(String::new(), &findings, Value::Null);
            let Output::Graded { code, .. } = output else { panic!("{output:?}") };
            code
        };
        assert_eq!([&[] as &[&str], &["info"]].map(code), [0, 0]);
        assert_eq!([&["info", "warning"][..], &["warning", "error"]].map(code), [1, 2]);
    }
}

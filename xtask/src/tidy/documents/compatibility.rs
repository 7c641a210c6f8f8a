//! Every deviation from RabbitMQ stands in two places that name each other.
//!
//! In the source it is a comment that begins with the mark, a topic and a colon; in the document
//! it is the mark and the same topic in backticks. The rule checks both directions, so neither
//! side can be changed alone. Each difference in the document has a reason, and the document stays short. The rule does
//! not know whether the texts agree.

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::Tree;

const DOCUMENT: &str = "COMPATIBILITY.md";

/// Words of the document: what a user reads before a migration. The matrix in docs/reference has the rest.
const WORDS_MAX: usize = 5000;

/// Cells of a row about a difference, the last one with its reason.
const CELLS: usize = 4;

/// Mark at the beginning of a comment about a deviation.
const MARK: &str = "COMPAT:";

/// Characters before the topic in the document.
const OPENING: &str = "`COMPAT ";

/// The longest topic, in bytes: a keyword, not the sentence.
const TOPIC_BYTES_MAX: usize = 50;

/// A topic and where it stands.
struct Topic<'a> {
    name: &'a str,
    path: &'a str,
    line: usize,
}

/// Checks that source and document list the same deviations.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let in_source = source_topics(tree, &mut findings);
    let in_document = document_topics(tree);
    let is_in = |topics: &[Topic<'_>], name: &str| topics.iter().any(|topic| topic.name == name);
    for Topic { name, path, line } in &in_source {
        if !is_in(&in_document, name) {
            let message = format!("{DOCUMENT} does not list it: write `COMPAT {name}` there");
            findings.push(Finding::at(path, *line, message));
        }
    }
    for Topic { name, path, line } in &in_document {
        if !is_in(&in_source, name) {
            let message = format!(
                "no comment `{MARK} {name}: ...` in the source: take the entry out, or mark the \
                 place"
            );
            findings.push(Finding::at(path, *line, message));
        }
    }
    findings.extend(unfinished(tree.text(DOCUMENT).unwrap_or_default()));
    findings
}

/// Rows without a reason, and a document that is too long.
fn unfinished(document: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let words = document.split_whitespace().count();
    if words > WORDS_MAX {
        let message =
            format!("{words} words: {WORDS_MAX} at most; the matrix has what is no difference");
        findings.push(Finding::in_file(DOCUMENT, message));
    }
    for (index, line) in document.lines().enumerate() {
        let Some(row) = line.strip_prefix("| ").and_then(|row| row.strip_suffix('|')) else {
            continue;
        };
        let cells: Vec<&str> = row.split(" |").collect();
        if cells.len() == CELLS && cells.last().is_some_and(|reason| reason.trim().is_empty()) {
            let message = "no reason for the difference".to_owned();
            findings.push(Finding::at(DOCUMENT, index + 1, message));
        }
    }
    findings
}

fn source_topics<'a>(tree: &'a Tree, findings: &mut Vec<Finding>) -> Vec<Topic<'a>> {
    let mut topics = Vec::new();
    for (file, source) in tree.rust_sources() {
        for (at, comment) in source.comments() {
            let text = comment.trim_start_matches(['/', '!', '*']).trim_start();
            let Some(text) = text.strip_prefix(MARK) else {
                continue;
            };
            let line = source.line(at);
            match text.split_once(':').map(|(name, _)| name.trim()) {
                Some(name) if !name.is_empty() && name.len() <= TOPIC_BYTES_MAX => {
                    topics.push(Topic { name, path: &file.path, line });
                }
                _ => {
                    let message = format!(
                        "a deviation needs a topic: `{MARK} <topic>: ...` on one line, the topic \
                         at most {TOPIC_BYTES_MAX} bytes"
                    );
                    findings.push(Finding::at(&file.path, line, message));
                }
            }
        }
    }
    topics
}

fn document_topics(tree: &Tree) -> Vec<Topic<'_>> {
    let mut topics = Vec::new();
    for (index, text) in tree.text(DOCUMENT).unwrap_or_default().lines().enumerate() {
        for (at, _) in text.match_indices(OPENING) {
            let rest = &text[at + OPENING.len()..];
            let name = rest.split('`').next().unwrap_or(rest).trim();
            topics.push(Topic { name, path: DOCUMENT, line: index + 1 });
        }
    }
    topics
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(source: &str, document: &str) -> String {
        lines(&check(&Tree::of(&[("a.rs", source), (DOCUMENT, document)])))
    }

    #[test]
    fn both_sides_agree() {
        let source =
            "//! Doc.\n// COMPAT: table depth: 32 at most.\n/// COMPAT: expiry-order: own.\n";
        let document = "# C\n| depth | no | `COMPAT table depth` |\n`COMPAT expiry-order`\n";
        assert_eq!(findings(source, document), "");
    }

    #[test]
    fn deviation_without_an_entry_is_a_fault() {
        assert_eq!(
            findings("\n// COMPAT: table depth: 32 at most.\n", "# C\n"),
            "a.rs:2: COMPATIBILITY.md does not list it: write `COMPAT table depth` there\n"
        );
    }

    #[test]
    fn entry_without_a_deviation_is_a_fault() {
        assert_eq!(
            findings("// We keep COMPAT: table depth: elsewhere.", "# C\n`COMPAT table depth`\n"),
            "COMPATIBILITY.md:2: no comment `COMPAT: table depth: ...` in the source: take the \
             entry out, or mark the place\n"
        );
    }

    #[test]
    fn difference_needs_a_reason() {
        let head = "# C\n| Topic | Theirs | Ours | Reason |\n| --- | --- | --- | --- |\n";
        assert_eq!(findings("", &format!("{head}| a | b | c | d |\n| a | b |\n")), "");
        assert_eq!(
            findings("", &format!("{head}| a | b | c | |\n")),
            "COMPATIBILITY.md:4: no reason for the difference\n"
        );
    }

    #[test]
    fn long_document_is_a_fault() {
        let text = format!("# C\n{}", "word\n".repeat(WORDS_MAX));
        assert!(findings("", &text).starts_with("COMPATIBILITY.md:1: 5002 words: 5000 at most"));
    }

    #[test]
    fn deviation_needs_a_topic() {
        let needs = "a.rs:1: a deviation needs a topic";
        assert!(findings("// COMPAT: tables are limited.", "").starts_with(needs));
        let long = format!("// COMPAT: {}: b", "a".repeat(51));
        assert!(findings(&long, "").starts_with(needs));
    }
}

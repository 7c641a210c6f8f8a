//! Every deviation from RabbitMQ stands in two places that name each other.
//!
//! In the source it is a comment that begins with the mark, a topic and a colon; in the document
//! it is the mark and the same topic in backticks. The rule checks both directions, so neither
//! side can be changed alone. It does not know whether the two texts agree.

use super::finding::Finding;
use super::tree::Tree;

const DOCUMENT: &str = "COMPATIBILITY.md";

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
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
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
    use super::super::finding::lines;
    use super::*;

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
    fn deviation_needs_a_topic() {
        let needs = "a.rs:1: a deviation needs a topic";
        assert!(findings("// COMPAT: tables are limited.", "").starts_with(needs));
        let long = format!("// COMPAT: {}: b", "a".repeat(51));
        assert!(findings(&long, "").starts_with(needs));
    }
}

//! Marks of unfinished work that must not be committed.
//!
//! A comment that promises to come back belongs into the tracker, a debug print nowhere, and a
//! test that does not run is no test. What a program printed is not a source. Documents are free: they may
//! describe this rule.

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::rust_source::words;
use crate::tidy::sources::tree::Tree;

/// Words that mark a place as unfinished, in any text but a document.
const MARKS: &[&str] = &["FIXME", "TODO", "XXX"];

/// Code that marks a place as unfinished, in Rust.
const CODE: &[(&str, &str)] = &[
    ("dbg!", "a debug print: take it out"),
    ("todo!", "unfinished: write it"),
    ("unimplemented!", "unfinished: write it, or return an error"),
    ("#[ignore", "a test that does not run: mend it or delete it"),
];

/// Checks for marks of unfinished work.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust_sources() {
        let mut report = |at, message| {
            findings.push(Finding::at(&file.path, source.line(at), message));
        };
        for (start, comment) in source.comments() {
            for (at, mark) in marks(comment) {
                report(start + at, unfinished(mark));
            }
        }
        for (at, mark) in marks(&source.code) {
            report(at, unfinished(mark));
        }
        for (code, message) in CODE {
            for at in source.mentions(code) {
                report(at, format!("`{code}`: {message}"));
            }
        }
    }
    for (file, text) in tree.texts() {
        if file.has_extension("rs") || file.has_extension("md") {
            continue;
        }
        if file.has_extension("log") {
            let message = "what a program printed: take it out".to_owned();
            findings.push(Finding::at(&file.path, 1, message));
        }
        for (index, line) in text.lines().enumerate() {
            for (_, mark) in marks(line) {
                findings.push(Finding::at(&file.path, index + 1, unfinished(mark)));
            }
        }
    }
    findings
}

fn unfinished(mark: &str) -> String {
    format!("`{mark}`: finish it, or write it into the tracker and take the mark out")
}

/// The marks in a text as whole words, with their offsets.
fn marks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    words(text).filter(|(_, word)| MARKS.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(path: &str, text: &str) -> String {
        lines(&check(&Tree::of(&[(path, text)])))
    }

    #[test]
    fn log_is_a_fault() {
        assert_eq!(
            findings("build.log", "rc 1\n"),
            "build.log:1: what a program printed: take it out\n"
        );
        assert_eq!(findings("build.md", "rc 1\n"), "");
    }

    #[test]
    fn marks_in_comments_are_faults() {
        assert_eq!(
            findings("a.rs", "fn a() {} // FIXME: later\n/* b\nXXX */"),
            "a.rs:1: `FIXME`: finish it, or write it into the tracker and take the mark out\n\
             a.rs:3: `XXX`: finish it, or write it into the tracker and take the mark out\n"
        );
        assert!(findings("a.py", "pass  # TODO\n").starts_with("a.py:1: `TODO`"));
    }

    #[test]
    fn unfinished_code_is_a_fault() {
        for code in ["dbg!(a)", "todo!()", "unimplemented!()", "#[ignore]", "#[ignore = \"b\"]"] {
            assert_eq!(findings("a.rs", code).lines().count(), 1, "{code}");
        }
    }

    #[test]
    fn literals_documents_and_parts_of_words_pass() {
        assert_eq!(findings("a.rs", "let a = \"XXX\"; mytodo!(); // mastodon TODOS"), "");
        assert_eq!(findings("a.md", "No FIXME in the source."), "");
    }
}

//! Limits for the length of a Rust file.
//!
//! Three steps: look twice, give a reason, split. Functions are clippy's (`too_many_lines`). Files
//! of tests only may be longer, because a list of cases is read one case at a time.

use crate::tidy::code::module_doc::DOC_LINES_MAX;
use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::Tree;

/// From here on a file deserves a second look, in lines.
const LOOK_TWICE: usize = 500;

/// From here on the module doc gives a reason, in lines.
const REASON: usize = 700;

/// The longest file, in lines.
const LINES_MAX: usize = 1000;

/// The longest file of tests, in lines.
const TEST_LINES_MAX: usize = 1500;

/// Checks the length of every Rust file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust_sources() {
        let lines = source.text.lines().count();
        let gives_reason = || {
            let doc =
                source.text.lines().take(DOC_LINES_MAX).filter(|line| line.starts_with("//!"));
            doc.flat_map(str::split_whitespace).any(|word| word.to_lowercase().contains("reason"))
        };
        let lines_max = if file.is_test() { TEST_LINES_MAX } else { LINES_MAX };
        let finding = |message| Finding::in_file(&file.path, message);
        if lines > lines_max {
            let message =
                format!("{lines} lines, at most {lines_max}: which second noun hides in it?");
            findings.push(finding(message));
        } else if lines > REASON && !file.is_test() && !gives_reason() {
            let message = format!(
                "{lines} lines: split it, or give the reason (with that word) in the first \
                 {DOC_LINES_MAX} lines of the module doc"
            );
            findings.push(finding(message));
        } else if lines > LOOK_TWICE && !file.is_test() {
            findings.push(finding(format!("{lines} lines: look twice")).into_note());
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(path: &str, doc: &str, length: usize) -> String {
        let text = format!("{doc}\n{}", "\n".repeat(length - 1));
        lines(&check(&Tree::of(&[(path, &text)])))
    }

    #[test]
    fn short_files_pass() {
        assert_eq!(findings("a.rs", "//! Doc.", 500), "");
        assert_eq!(findings("a.txt", "", 5000), "");
    }

    #[test]
    fn long_files_are_looked_at_twice() {
        assert_eq!(findings("a.rs", "//! Doc.", 501), "a.rs:1: 501 lines: look twice\n");
        let note = check(&Tree::of(&[("a.rs", &"\n".repeat(501))]));
        assert_eq!(note[0].weight, crate::tidy::report::finding::Weight::Note);
    }

    #[test]
    fn longer_files_give_a_reason() {
        let fault = findings("a.rs", "//! Doc.", 701);
        assert!(fault.starts_with("a.rs:1: 701 lines: split it, or give the reason"));
        let note = findings("a.rs", "//! One table, for the reason that it is read as one.", 701);
        assert_eq!(note, "a.rs:1: 701 lines: look twice\n");
    }

    #[test]
    fn too_long_is_too_long() {
        let doc = "//! The reason.";
        assert!(findings("a.rs", doc, 1001).starts_with("a.rs:1: 1001 lines, at most 1000"));
        assert_eq!(findings("crates/broker/tests/a.rs", doc, 1500), "");
        let fault = findings("crates/broker/tests/a.rs", doc, 1501);
        assert!(fault.contains("1501 lines, at most 1500"));
    }
}

//! ARCHITECTURE.md stays short, and the files that it names exist.
//!
//! In the section of a crate a name is one below that crate, elsewhere one of the repository. Whether the sentences
//! about the files are true is a question for review.

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::Tree;

const DOCUMENT: &str = "ARCHITECTURE.md";

/// Words of the document: what a newcomer reads in twenty minutes.
const WORDS_MAX: usize = 4000;

/// Characters of a line outside tables and drawings.
const LINE_MAX: usize = 130;

/// Ends of a text in backticks that is the name of a file or folder.
const ENDS: [&str; 4] = [".rs", ".md", ".toml", "/"];

/// Checks the length of the document and the names in it.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let text = tree.text(DOCUMENT).unwrap_or_default();
    let words = text.split_whitespace().count();
    if words > WORDS_MAX {
        let message =
            format!("{words} words: {WORDS_MAX} at most; move what is about one subject to docs/");
        findings.push(Finding::in_file(DOCUMENT, message));
    }
    let mut crates = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            crates = quoted(line).filter(|name| name.starts_with("crates/")).collect();
        }
        if !line.starts_with('|') && line.chars().count() > LINE_MAX {
            findings.push(Finding::at(
                DOCUMENT,
                index + 1,
                format!("more than {LINE_MAX} characters"),
            ));
        }
        for name in quoted(line).filter(|name| is_path(name)) {
            if !exists(tree, name, &crates) {
                let place = match crates.as_slice() {
                    [] => "in the repository".to_owned(),
                    crates => format!("in {}", crates.join(" or ")),
                };
                findings.push(Finding::at(DOCUMENT, index + 1, format!("`{name}` is not {place}")));
            }
        }
    }
    findings
}

/// The texts in backticks of a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// True for the name of a file or folder.
fn is_path(name: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    !name.starts_with('/')
        && name.bytes().all(is_name)
        && ENDS.iter().any(|end| name.ends_with(end))
}

/// True if the name is a whole path, or the end of one below these crates.
fn exists(tree: &Tree, name: &str, crates: &[&str]) -> bool {
    tree.files.iter().any(|file| {
        let path = file.path.as_str();
        let begins =
            path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || name.ends_with('/'));
        let below = match crates {
            [] => Some(path),
            crates => crates.iter().find_map(|folder| path.strip_prefix(folder)),
        };
        let inner = below.is_some_and(|path| {
            let found = path.split_once(&format!("/{name}"));
            found.is_some_and(|(_, rest)| rest.is_empty() || name.ends_with('/'))
        });
        begins || inner
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(text: &str) -> String {
        let files = ["crates/a/src/b/c.rs", "crates/d/src/e.rs"];
        let mut all = vec![(DOCUMENT, text)];
        all.extend(files.map(|path| (path, "")));
        lines(&check(&Tree::of(&all)))
    }

    #[test]
    fn names_lead_to_files_and_folders() {
        let good =
            "`b/c.rs` `b/` `c.rs` `crates/d/src/e.rs` `crates/d/` `/api` `x-y` `A::b` `d_*.rs`";
        assert_eq!(
            findings(&format!("# A\n### `crates/a`: first\n{good}\n## B\n`e.rs` `src/b/`\n")),
            ""
        );
    }

    #[test]
    fn name_without_a_file_is_a_fault() {
        assert_eq!(
            findings("# A\n`gone.rs`\n### `crates/a`: first\n`e.rs` and `f/`\n"),
            "ARCHITECTURE.md:2: `gone.rs` is not in the repository\n\
             ARCHITECTURE.md:4: `e.rs` is not in crates/a\n\
             ARCHITECTURE.md:4: `f/` is not in crates/a\n"
        );
    }

    #[test]
    fn long_document_and_long_line_are_faults() {
        let long = findings(&format!("# A\n{}", "word\n".repeat(WORDS_MAX)));
        assert!(long.starts_with("ARCHITECTURE.md:1: 4002 words: 4000 at most"), "{long}");
        assert_eq!(findings(&format!("# A\n{}\n", "-".repeat(130))), "");
        assert_eq!(
            findings(&format!("# A\n{}\n", "-".repeat(131))),
            "ARCHITECTURE.md:2: more than 130 characters\n"
        );
    }
}

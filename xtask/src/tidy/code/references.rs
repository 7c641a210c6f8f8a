//! No reference to a document that is not in the repository.
//!
//! The word `spec` and a number mean a document that a reader cannot open. Sections of AMQP's own
//! specification are called sections.

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::Tree;

/// Checks every Rust file and every document.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, text) in tree.texts() {
        if !["md", "py", "rs", "txt"].iter().any(|extension| file.has_extension(extension)) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            if let Some(section) = section(line) {
                let message = format!(
                    "`spec {section}` is not in the repository: name a page of docs/, or the rule"
                );
                findings.push(Finding::at(&file.path, index + 1, message));
            }
        }
    }
    findings
}

/// The number behind the word `spec`.
fn section(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || "(),;".contains(c)).collect();
    let behind = words.windows(2).find(|pair| pair[0] == "spec").map(|pair| pair[1])?;
    behind.starts_with(|c: char| c.is_ascii_digit()).then(|| behind.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_is_the_word_and_a_number() {
        // In parts, so that this file passes its own rule.
        let spec = |before: &str, behind: &str| format!("{before}spec {behind}");
        assert_eq!(section(&spec("/// Rules as in (", "3.3).")), Some("3.3"));
        assert_eq!(section(&spec("//! as in ", "3.1, 6.6 and")), Some("3.1"));
        assert_eq!(section("// (AMQP 0-9-1 section 3.1.3)"), None);
        assert_eq!(section("let spec = 3; inspect 4; the spec says"), None);
    }
}

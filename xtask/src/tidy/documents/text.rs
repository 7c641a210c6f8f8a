//! The bytes of text files: line ends, trailing blanks, ASCII in Rust.
//!
//! A literal of a test may hold any character: that is how the tests prove what names and headers
//! survive. Everything else in a Rust file is ASCII, so that what is read is what is there.

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::rust_source::RustSource;
use crate::tidy::sources::tree::{Content, Tree, TreeFile};

/// Checks every text file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, text) in tree.texts() {
        for (index, line) in text.split('\n').enumerate() {
            if line.ends_with([' ', '\t', '\r']) {
                findings.push(Finding::at(&file.path, index + 1, "trailing blanks: take them out"));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            let line = text.lines().count();
            findings.push(Finding::at(&file.path, line, "the last line has no end: add one"));
        }
        if let Content::Rust(source) = &file.content {
            findings.extend(not_ascii(file, source));
        }
    }
    findings
}

fn not_ascii(file: &TreeFile, source: &RustSource) -> Option<Finding> {
    let is_free = |at| source.is_literal(at) && (file.is_test() || source.is_test(at));
    let (at, character) =
        source.text.char_indices().find(|(at, c)| !c.is_ascii() && !is_free(*at))?;
    let message = format!(
        "U+{:04X} is not ASCII: write it in ASCII, or as an escape in a literal",
        u32::from(character)
    );
    Some(Finding::at(&file.path, source.line(at), message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(path: &str, text: &str) -> String {
        lines(&check(&Tree::of(&[(path, text)])))
    }

    #[test]
    fn lines_end_where_their_text_ends() {
        assert_eq!(
            findings("a.txt", "a\nb \n\tc\t\nd\r\n"),
            "a.txt:2: trailing blanks: take them out\n\
             a.txt:3: trailing blanks: take them out\n\
             a.txt:4: trailing blanks: take them out\n"
        );
    }

    #[test]
    fn files_end_in_a_line_end() {
        assert_eq!(findings("a.txt", "a\nb"), "a.txt:2: the last line has no end: add one\n");
        assert_eq!(findings("a.txt", ""), "");
    }

    #[test]
    fn rust_is_ascii() {
        assert_eq!(
            findings("src/a.rs", "\n// caf\u{e9}\n"),
            "src/a.rs:2: U+00E9 is not ASCII: write it in ASCII, or as an escape in a literal\n"
        );
        assert!(findings("src/a.rs", "f(\"\u{20ac}\");\n").contains("U+20AC"));
        assert_eq!(findings("a.md", "caf\u{e9}\n"), "");
    }

    #[test]
    fn literals_of_tests_are_free() {
        assert_eq!(findings("tests/a.rs", "f(\"\u{20ac}\", '\u{e9}');\n"), "");
        assert!(findings("tests/a.rs", "// \u{20ac}\n").contains("U+20AC"));
        let text = "#[cfg(test)]\nmod tests { f(\"\u{20ac}\"); }\n";
        assert_eq!(findings("src/a.rs", text), "");
    }
}

//! Doc comments open with a noun or a verb, and say something.
//!
//! A pronoun at the start has nothing to refer to, a free relative (`What a queue does`) hides the noun,
//! and a line of one word repeats a name. The rule looks at the first line of every block of `///` and
//! `//!`. A block of code names its language, `text` mostly: rustdoc takes a block without a language for a
//! test, and tests of documentation are not run (they would compile every crate once more).

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::rust_source::RustSource;
use crate::tidy::sources::tree::Tree;

/// Words that no doc comment opens with.
const OPENINGS: &[&str] = &[
    "Anything",
    "Everybody",
    "Everything",
    "He",
    "Him",
    "His",
    "How",
    "It",
    "Its",
    "Nobody",
    "Nothing",
    "Somebody",
    "Something",
    "That",
    "Their",
    "Theirs",
    "Them",
    "These",
    "They",
    "This",
    "Those",
    "What",
    "Whatever",
    "When",
    "Where",
    "Whether",
    "Which",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "Why",
];

/// Checks every doc comment.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let sources = tree.rust_sources();
    let of_file = |path: &str, source| {
        let mut findings = faults(path, source);
        findings.extend(code_blocks(path, source));
        findings
    };
    sources.flat_map(|(file, source)| of_file(&file.path, source)).collect()
}

/// Blocks of code that rustdoc takes for tests.
fn code_blocks(path: &str, source: &RustSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_inside = false;
    for (index, line) in source.text.lines().enumerate() {
        let fence = doc(line).and_then(|(_, text)| text.strip_prefix("```"));
        is_inside &= doc(line).is_some();
        let Some(language) = fence else { continue };
        if !is_inside && (language.is_empty() || language.starts_with("rust")) {
            let message =
                "block of code without a language other than Rust: write a test".to_owned();
            findings.push(Finding::at(path, index + 1, message));
        }
        is_inside = !is_inside;
    }
    findings
}

fn faults(path: &str, source: &RustSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut previous = None;
    let lines: Vec<&str> = source.text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let Some((mark, text)) = doc(line) else {
            previous = None;
            continue;
        };
        if previous == Some(mark) {
            continue;
        }
        previous = Some(mark);
        let is_alone = lines.get(index + 1).and_then(|next| doc(next)).is_none_or(|d| d.0 != mark);
        let mut words = text.split_whitespace();
        let (first, second) = (words.next().unwrap_or_default(), words.next());
        let opening = first.trim_end_matches(|c: char| !c.is_alphanumeric());
        let message = if OPENINGS.contains(&opening) {
            format!("doc comment opens with `{opening}`: write the noun, or a verb")
        } else if second.is_none() && is_alone && !text.is_empty() {
            format!("doc comment of one word, `{first}`: say more than the name, or delete it")
        } else {
            continue;
        };
        findings.push(Finding::at(path, index + 1, message));
    }
    findings
}

/// The mark and the text of a line of a doc comment.
fn doc(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let is_doc = |mark: &&str| line.starts_with(mark) && !line.starts_with("////");
    let mark = ["///", "//!"].into_iter().find(is_doc)?;
    Some((mark, line[mark.len()..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(text: &str) -> String {
        lines(&faults("a.rs", &RustSource::new(text.to_owned())))
    }

    #[test]
    fn openings_that_refer_to_nothing_are_faults() {
        let advice = "write the noun, or a verb";
        assert_eq!(
            findings("/// What a queue does.\nfn a() {}\n    /// Its name.\n    b: c,\n"),
            format!(
                "a.rs:1: doc comment opens with `What`: {advice}\n\
                 a.rs:3: doc comment opens with `Its`: {advice}\n"
            )
        );
        assert!(findings("//! Whether, and when.\n").contains("`Whether`"));
    }

    #[test]
    fn doc_of_one_word_is_a_fault() {
        assert!(findings("/// Why.\na,\n").contains("opens with `Why`"));
        assert!(findings("/// Name.\na,\n").contains("of one word, `Name.`"));
    }

    #[test]
    fn block_of_code_names_its_language() {
        let blocks = |text: &str| lines(&code_blocks("a.rs", &RustSource::new(text.to_owned())));
        assert_eq!(blocks("//! ```text\n//! a\n//! ```\n\n/// ```sh\n/// b\n/// ```\n"), "");
        assert!(blocks("/// Sum.\n///\n/// ```\n/// a();\n/// ```\n").starts_with("a.rs:3: "));
        assert!(blocks("/// ```rust,ignore\n/// a();\n/// ```\n").starts_with("a.rs:1: "));
    }

    #[test]
    fn later_lines_and_comments_are_free() {
        assert_eq!(findings("/// The queue.\n/// It waits.\n///\n/// What else.\n// Who.\n"), "");
        assert_eq!(findings("/// Messages\n/// of the queue.\n//// Name.\n/// Whats of it.\n"), "");
        assert_eq!(findings("//! Reads.\n\n/// Writes files.\n"), findings("//! Reads.\n"));
    }
}

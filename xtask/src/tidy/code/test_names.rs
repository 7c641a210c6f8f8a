//! A test is named after the thing that it tests: `queue_at_its_limit_refuses`.
//!
//! A name that begins with a pronoun, an article or a quantity says nothing in a list of names, and is found
//! by no search. Looks at test functions of Rust and of pytest.

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::rust_source::words;
use crate::tidy::sources::tree::Tree;

/// Words that no test's name begins with.
const OPENINGS: &[&str] = &[
    "anybody",
    "anything",
    "everybody",
    "everything",
    "he",
    "his",
    "how",
    "it",
    "its",
    "nobody",
    "nothing",
    "somebody",
    "something",
    "that",
    "their",
    "them",
    "there",
    "these",
    "they",
    "this",
    "those",
    "what",
    "whatever",
    "when",
    "where",
    "whether",
    "which",
    "who",
    "whoever",
    "whose",
    "why",
];

/// Checks the names of all test functions.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust_sources() {
        for at in source.mentions("#[test]") {
            let mut words = words(&source.code[at..]).skip_while(|(_, word)| *word != "fn");
            if let Some((offset, name)) = words.nth(1) {
                let line = source.line(at + offset);
                findings.extend(fault(name).map(|message| Finding::at(&file.path, line, message)));
            }
        }
    }
    for (file, text) in tree.texts().filter(|(file, _)| file.has_extension("py")) {
        for (index, line) in text.lines().enumerate() {
            let name =
                line.trim_start().strip_prefix("def test_").and_then(|l| l.split('(').next());
            let message = name.and_then(fault);
            findings.extend(message.map(|message| Finding::at(&file.path, index + 1, message)));
        }
    }
    findings
}

fn fault(name: &str) -> Option<String> {
    let first = name.split('_').next()?;
    OPENINGS.contains(&first).then(|| {
        format!("test `{name}` begins with `{first}`: begin with the thing that is tested")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(path: &str, text: &str) -> String {
        lines(&check(&Tree::of(&[(path, text)])))
    }

    #[test]
    fn test_of_rust_begins_with_its_subject() {
        let text =
            "#[test]\nfn queue_is_purged() {}\n#[test]\n#[cfg(unix)]\nfn it_is() {}\nfn who() {}\n";
        assert_eq!(
            findings("a.rs", text),
            "a.rs:5: test `it_is` begins with `it`: begin with the thing that is tested\n"
        );
    }

    #[test]
    fn test_of_python_begins_with_its_subject() {
        let text = "def test_what_is_left(ch):\ndef test_purge(ch):\ndef what():\n";
        assert_eq!(
            findings("a.py", text),
            "a.py:1: test `what_is_left` begins with `what`: begin with the thing that is tested\n"
        );
    }
}

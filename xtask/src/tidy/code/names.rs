//! Words that no file, folder or identifier may be made of.
//!
//! They say that a thing has no place yet, or they are another system's word for ours. The rule
//! looks at whole words inside names (`user_manager`, `TenantId`), not at parts of words. In
//! languages other than Rust only file names are looked at.

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::Tree;

/// The word, and what to do instead.
const BANNED: &[(&str, &str)] = &[
    ("common", "name what its users have in common"),
    ("helper", "name what it does"),
    ("helpers", "name what they do, or put each beside its user"),
    ("manager", "name what it decides or owns"),
    ("misc", "give each thing its own place"),
    ("tenant", "the word is vhost"),
    ("util", "name what it does"),
    ("utils", "name what they do, or put each beside its user"),
];

/// Names from outside that keep their word.
const GIVEN: &[(&str, &str)] =
    &[("common_name", "the CN of an X.509 subject"), ("CipherSuiteCommon", "a type of rustls")];

/// The same, in one file only.
const GIVEN_IN: &[(&str, &str, &str)] =
    &[("crates/server/src/tls/handshake_records.rs", "common", "a field of rustls")];

/// Folder in which programs of published documents keep their names.
const OUTSIDE: &str = "tests/java/src/com/";

/// Checks the names of files, folders and Rust identifiers.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| !file.path.starts_with(OUTSIDE)) {
        for part in file.path.split('/') {
            if let Some(message) = fault(part) {
                findings.push(Finding::in_file(&file.path, message));
            }
        }
    }
    for (file, source) in tree.rust_sources() {
        for (at, identifier) in source.words() {
            if GIVEN_IN.iter().any(|(path, name, _)| *path == file.path && *name == identifier) {
                continue;
            }
            if let Some(message) = fault(identifier) {
                findings.push(Finding::at(&file.path, source.line(at), message));
            }
        }
    }
    findings
}

fn fault(name: &str) -> Option<String> {
    if GIVEN.iter().any(|(given, _)| *given == name) {
        return None;
    }
    let words = words(name);
    let (banned, instead) = BANNED.iter().find(|(banned, _)| words.iter().any(|w| w == banned))?;
    Some(format!("`{name}` contains the word `{banned}`: {instead}"))
}

/// The words of a name in any case style, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    fn findings(path: &str, text: &str) -> String {
        lines(&check(&Tree::of(&[(path, text)])))
    }

    #[test]
    fn files_and_folders_are_named_after_something() {
        let message = "`utils.rs` contains the word `utils`: name what they do, or put each beside \
                       its user";
        assert_eq!(findings("a/utils.rs", ""), format!("a/utils.rs:1: {message}\n"));
        assert!(findings("common/a.py", "").contains("`common` contains"));
        assert!(findings("TestHelpers.java", "").contains("the word `helpers`"));
    }

    #[test]
    fn identifiers_are_named_after_something() {
        let text = "struct A;\nstruct TenantId;\nfn queue_manager() {}\nstruct TLSManager;";
        let lines: Vec<String> =
            findings("a.rs", text).lines().map(|line| line[..6].to_owned()).collect();
        assert_eq!(lines, ["a.rs:2", "a.rs:3"]);
    }

    #[test]
    fn parts_of_words_comments_and_given_names_pass() {
        let text = "// a manager\nlet uncommonly = management(common_name, \"utils\");";
        assert_eq!(findings("a.rs", text), "");
    }
}

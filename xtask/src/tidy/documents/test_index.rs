//! The index of tests in tests/README.md has every script of the core and every black-box test.
//!
//! A reader finds the tests of a feature there. The rule compares names of files in backticks with the files
//! that exist, both ways; whether a file is in the row it belongs to is for review.

use std::collections::BTreeSet;

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::Tree;

const INDEX: &str = "tests/README.md";

/// Folders whose files the index lists, with the form of their names.
const FOLDERS: &[(&str, &str, &str)] =
    &[("crates/broker/tests/scripts/", "", ".txt"), ("tests/blackbox/", "test_", ".py")];

/// Checks the index against the files.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(index) = tree.text(INDEX) else {
        return Vec::new();
    };
    let listed: BTreeSet<&str> = index.split('`').skip(1).step_by(2).collect();
    let mut findings = Vec::new();
    for (folder, start, end) in FOLDERS {
        let is_test = |name: &str| name.starts_with(start) && name.ends_with(end);
        let paths = below(tree, folder).filter(|path| is_test(file_name(path)));
        for path in paths.filter(|path| !listed.contains(file_name(path))) {
            let message = format!("{INDEX} does not list it: add it to the row of its feature");
            findings.push(Finding::in_file(path, message));
        }
        for name in listed.iter().filter(|name| !name.contains('/') && is_test(name)) {
            if !is_there(tree, name) {
                let message = format!("`{name}`: there is no such test");
                findings.push(Finding::at(INDEX, tree.line_of(INDEX, name), message));
            }
        }
    }
    findings
}

/// True if any folder of the index has a file of this name.
fn is_there(tree: &Tree, name: &str) -> bool {
    FOLDERS.iter().any(|(folder, ..)| below(tree, folder).any(|path| file_name(path) == name))
}

/// The paths of the files in a folder and its folders.
fn below<'a>(tree: &'a Tree, folder: &'a str) -> impl Iterator<Item = &'a str> {
    tree.files.iter().map(|file| file.path.as_str()).filter(move |path| path.starts_with(folder))
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    const FILES: [(&str, &str); 3] = [
        ("crates/broker/tests/scripts/ttl.txt", ""),
        ("tests/blackbox/expiry/test_expiry.py", ""),
        ("tests/blackbox/client.py", ""),
    ];

    fn findings(index: &str) -> String {
        lines(&check(&Tree::of(&[FILES.as_slice(), &[(INDEX, index)]].concat())))
    }

    #[test]
    fn index_has_every_test() {
        assert_eq!(findings("| expiry | `ttl.txt` | `test_expiry.py` |\n"), "");
        let advice = "tests/README.md does not list it: add it to the row of its feature";
        assert_eq!(
            findings("| expiry | | |\n"),
            format!(
                "crates/broker/tests/scripts/ttl.txt:1: {advice}\n\
                 tests/blackbox/expiry/test_expiry.py:1: {advice}\n"
            )
        );
    }

    #[test]
    fn index_has_no_test_that_is_gone() {
        let row = "| expiry | `ttl.txt` `old.txt` | `test_expiry.py` `test_old.py` |\n";
        assert_eq!(
            findings(row),
            "tests/README.md:1: `old.txt`: there is no such test\n\
             tests/README.md:1: `test_old.py`: there is no such test\n"
        );
    }
}

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
        let names = tree.files.iter().filter_map(|file| file.path.strip_prefix(folder));
        let is_test = |name: &&str| name.starts_with(start) && name.ends_with(end);
        let names: BTreeSet<&str> =
            names.filter(|name| !name.contains('/')).filter(is_test).collect();
        for name in names.iter().filter(|name| !listed.contains(**name)) {
            let message = format!("{INDEX} does not list it: add it to the row of its feature");
            findings.push(Finding::in_file(&format!("{folder}{name}"), message));
        }
        for name in listed.iter().filter(|name| !name.contains('/')).filter(|name| is_test(name)) {
            if !names.contains(*name) && !is_elsewhere(tree, name) {
                let message = format!("`{name}`: there is no such test");
                findings.push(Finding::at(INDEX, tree.line_of(INDEX, name), message));
            }
        }
    }
    findings
}

/// True if any folder of the index has a file of this name.
fn is_elsewhere(tree: &Tree, name: &str) -> bool {
    let is_there =
        |folder: &str| tree.files.iter().any(|file| file.path == format!("{folder}{name}"));
    FOLDERS.iter().any(|(folder, ..)| is_there(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    const FILES: [(&str, &str); 3] = [
        ("crates/broker/tests/scripts/ttl.txt", ""),
        ("tests/blackbox/test_expiry.py", ""),
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
                 tests/blackbox/test_expiry.py:1: {advice}\n"
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

//! Every library that a crate depends on has a row in `docs/internals/dependencies.md`: where it is used, and why.
//!
//! Compares names of libraries and of crates in both directions; whether the reason is good is a question for
//! review.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::tree::Tree;

/// The document that gives the reasons, in a table: libraries, crates that use them, reason.
const DOCUMENT: &str = "docs/internals/dependencies.md";

/// A library as the document lists it.
struct Row<'a> {
    crates: BTreeSet<&'a str>,
    has_reason: bool,
    line: usize,
}

/// Checks that the document lists the direct dependencies of the crates, and nothing else.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut rows = rows(tree.text(DOCUMENT).unwrap_or_default());
    let mut findings = Vec::new();
    for (name, users) in used(tree) {
        let Some(row) = rows.remove(name) else {
            let user = users.first().copied().unwrap_or_default();
            let manifest = format!("crates/{user}/Cargo.toml");
            let message =
                format!("`{name}` has no row in {DOCUMENT}: say there where and why we need it");
            findings.push(Finding::at(&manifest, tree.line_of(&manifest, name), message));
            continue;
        };
        if row.crates != users {
            let users: Vec<&str> = users.into_iter().collect();
            let message = format!("`{name}` is used by: {}", users.join(", "));
            findings.push(Finding::at(DOCUMENT, row.line, message));
        }
        if !row.has_reason {
            findings.push(Finding::at(DOCUMENT, row.line, format!("`{name}` has no reason")));
        }
    }
    for (name, row) in rows {
        let message = format!("no crate depends on `{name}`: take the row out");
        findings.push(Finding::at(DOCUMENT, row.line, message));
    }
    findings
}

/// The libraries that crates are built with, and these crates by their folders.
fn used(tree: &Tree) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut used: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &tree.packages {
        let Some(folder) = package.layer() else { continue };
        let libraries = package.dependencies.iter();
        for library in libraries.filter(|library| library.member.is_none() && !library.is_for_tests)
        {
            used.entry(&library.name).or_default().insert(folder);
        }
    }
    used
}

/// The rows of the table, by the names of the libraries.
fn rows(document: &str) -> BTreeMap<&str, Row<'_>> {
    let mut rows = BTreeMap::new();
    for (index, line) in document.lines().enumerate().filter(|(_, line)| line.starts_with("| `")) {
        let mut cells = line.trim_matches('|').split(" | ").map(str::trim);
        let libraries = cells.next().unwrap_or_default();
        let crates: BTreeSet<&str> = cells
            .next()
            .unwrap_or_default()
            .split(", ")
            // A word in brackets says when: `management (build)`.
            .filter_map(|user| user.split_whitespace().next())
            .collect();
        let has_reason = cells.next().is_some_and(|reason| !reason.is_empty());
        for name in libraries.split(", ") {
            let row = Row { crates: crates.clone(), has_reason, line: index + 1 };
            rows.insert(name.trim_matches('`'), row);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;
    use crate::tidy::sources::workspace::{Dependency, Package};

    const TABLE: &str = "# D\n| Library | Where | Why |\n| --- | --- | --- |\n";

    /// Findings about a crate `broker` that depends on `bytes` and `slotmap`, and about these rows.
    fn findings(is_for_tests: bool, rows: &str) -> String {
        let dependency =
            |name: &str| Dependency { name: name.to_owned(), member: None, is_for_tests };
        let mut tree = Tree::of(&[
            (DOCUMENT, &format!("{TABLE}{rows}")),
            ("crates/broker/Cargo.toml", "[dependencies]\nbytes = \"1\"\nslotmap = \"1\"\n"),
        ]);
        for folder in ["crates/broker", "xtask"] {
            tree.packages.push(Package {
                folder: folder.to_owned(),
                dependencies: vec![dependency("bytes"), dependency("slotmap")],
                ..Package::default()
            });
        }
        lines(&check(&tree))
    }

    #[test]
    fn library_with_a_row_is_no_fault() {
        assert_eq!(findings(false, "| `bytes`, `slotmap` | broker (build) | shared |\n"), "");
    }

    #[test]
    fn library_without_a_row_is_a_fault() {
        assert_eq!(
            findings(false, "| `bytes` | broker | shared |\n"),
            "crates/broker/Cargo.toml:3: `slotmap` has no row in docs/internals/dependencies.md: \
             say there where and why we need it\n"
        );
    }

    #[test]
    fn row_names_the_crates_and_a_reason() {
        assert_eq!(
            findings(false, "| `bytes` | server | shared |\n| `slotmap` | broker | |\n"),
            "docs/internals/dependencies.md:4: `bytes` is used by: broker\n\
             docs/internals/dependencies.md:5: `slotmap` has no reason\n"
        );
    }

    #[test]
    fn row_without_a_library_is_a_fault() {
        assert_eq!(
            findings(true, "| `bytes` | broker | shared |\n"),
            "docs/internals/dependencies.md:4: no crate depends on `bytes`: take the row out\n"
        );
    }
}

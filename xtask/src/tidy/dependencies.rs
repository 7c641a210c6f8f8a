//! Every library that a shipped crate depends on has a line in `docs/internals/dependencies.md` that says why.
//!
//! Knows the names only; whether the reason is good is a question for review.

use super::finding::Finding;
use super::tree::Tree;

/// The document that gives the reasons.
const DOCUMENT: &str = "docs/internals/dependencies.md";

/// Checks that the direct dependencies of the shipped crates are documented.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let document = tree.text(DOCUMENT).unwrap_or_default();
    let mut findings = Vec::new();
    for package in tree.packages.iter().filter(|package| package.layer().is_some()) {
        let dependencies = package.dependencies.iter();
        for dependency in dependencies.filter(|d| d.member.is_none() && !d.is_for_tests) {
            let name = &dependency.name;
            if !document.contains(&format!("`{name}`")) {
                let manifest = package.manifest();
                let message =
                    format!("`{name}` has no line in {DOCUMENT}: say there why we need it");
                findings.push(Finding::at(&manifest, tree.line_of(&manifest, name), message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines;
    use super::super::workspace::{Dependency, Package};
    use super::*;

    fn findings(folder: &str, is_for_tests: bool) -> String {
        let dependency =
            |name: &str| Dependency { name: name.to_owned(), member: None, is_for_tests };
        let mut tree = Tree::of(&[
            (DOCUMENT, "* `bytes`: bodies are shared, not copied.\n"),
            ("crates/broker/Cargo.toml", "[dependencies]\nbytes = \"1\"\nslotmap = \"1\"\n"),
        ]);
        tree.packages.push(Package {
            folder: folder.to_owned(),
            dependencies: vec![dependency("bytes"), dependency("slotmap")],
            ..Package::default()
        });
        lines(&check(&tree))
    }

    #[test]
    fn dependency_without_a_reason_is_a_fault() {
        assert_eq!(
            findings("crates/broker", false),
            "crates/broker/Cargo.toml:3: `slotmap` has no line in docs/internals/dependencies.md: \
             say there why we need it\n"
        );
    }

    #[test]
    fn tests_and_tools_need_no_reason() {
        assert_eq!(findings("crates/broker", true), "");
        assert_eq!(findings("xtask", false), "");
    }
}

//! No import circle among the files of a crate.
//!
//! [`imports`](super::imports) says what an import is. Test modules are left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::imports::{self, Graph, ModulePath};
use crate::tidy::report::ceilings::{self, Ceilings};
use crate::tidy::report::finding::Finding;
use crate::tidy::sources::rust_source::RustSource;
use crate::tidy::sources::tree::Tree;

/// Files in circles that were there before the rule, by crate.
const CEILINGS: Ceilings = &[("fuzz", 1)];

/// Checks the imports of every crate.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    ceilings::above(all_circles(tree), CEILINGS, "xtask/src/tidy/crates/circles.rs")
}

fn all_circles(tree: &Tree) -> Vec<Finding> {
    imports::by_crate(tree).values().flat_map(|sources| circles(sources)).collect()
}

/// One finding for each circle, at its first file.
fn circles(sources: &[(&str, &RustSource)]) -> Vec<Finding> {
    let (files, graph) = (imports::files(sources), imports::graph(sources));
    let mut findings = Vec::new();
    let mut seen: BTreeSet<&ModulePath> = BTreeSet::new();
    for start in graph.keys() {
        if seen.contains(start) {
            continue;
        }
        let Some(circle) = shortest_circle(&graph, start) else { continue };
        // The other circles through this file are part of the same knot.
        let reached = reached(&graph, start);
        let knot = reached.iter().filter(|other| self::reached(&graph, other).contains(start));
        let size = knot.map(|member| seen.insert(*member)).count();
        let names: Vec<&str> = circle.iter().filter_map(|path| files.get(*path).copied()).collect();
        let Some(first) = names.first() else { continue };
        let message = format!(
            "import circle ({size} files import each other): {}; move the shared item below both",
            names.join(" -> ")
        );
        findings.push(Finding::in_file(first, message));
    }
    findings
}

/// Every module that `start` imports, directly or not.
fn reached<'a>(graph: &'a Graph, start: &ModulePath) -> BTreeSet<&'a ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&ModulePath> = graph.get(start).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(graph.get(module).into_iter().flatten());
        }
    }
    reached
}

/// The shortest way from `start` back to it, with `start` at both ends.
fn shortest_circle<'a>(graph: &'a Graph, start: &'a ModulePath) -> Option<Vec<&'a ModulePath>> {
    let mut came_from: BTreeMap<&ModulePath, &ModulePath> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(module) = open.pop_front() {
        for next in graph.get(module).into_iter().flatten() {
            if next == start {
                let mut circle = vec![start, module];
                while let Some(before) =
                    circle.last().filter(|last| **last != start).and_then(|l| came_from.get(*l))
                {
                    circle.push(before);
                }
                circle.reverse();
                return Some(circle);
            }
            if !came_from.contains_key(next) {
                came_from.insert(next, module);
                open.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;

    /// Findings without the advice.
    fn findings(files: &[(&str, &str)]) -> String {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("crates/a/src/{path}"), *text)).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let found = lines(&all_circles(&Tree::of(&files)));
        found.replace("crates/a/src/", "").replace("; move the shared item below both", "")
    }

    #[test]
    fn circle_of_two_files_is_a_fault() {
        let found = findings(&[
            ("lib.rs", "mod b;\nmod c;"),
            ("b.rs", "use crate::c::C;"),
            ("c.rs", "fn c() -> super::b::B {}"),
        ]);
        let circle = "b.rs -> c.rs -> b.rs";
        assert_eq!(found, format!("b.rs:1: import circle (2 files import each other): {circle}\n"));
    }

    #[test]
    fn knot_of_circles_is_one_fault() {
        let found = findings(&[
            ("b.rs", "use crate::{c::C, d::D};"),
            ("c.rs", "use crate::b::B;"),
            ("d.rs", "use crate::c::C;"),
        ]);
        assert!(
            found.starts_with("b.rs:1: import circle (3 files import each other): b.rs -> c.rs")
        );
        assert_eq!(found.lines().count(), 1);
    }

    #[test]
    fn parent_and_child_that_import_each_other_are_a_circle() {
        let child = ("b/c.rs", "use super::B;");
        let import = findings(&[("b/mod.rs", "mod c;\nuse self::c::C;\npub struct B;"), child]);
        assert!(import.contains("b/mod.rs -> b/c.rs -> b/mod.rs"), "{import}");
        let export = findings(&[("b/mod.rs", "mod c;\npub(crate) use self::c::C;"), child]);
        assert_eq!(export, "");
    }

    #[test]
    fn item_that_is_exported_again_is_its_files() {
        let files = [
            ("b/mod.rs", "mod c;\nmod d;\npub(crate) use c::{C as E};\npub use self::d::D;"),
            ("b/c.rs", ""),
            ("b/d.rs", "use crate::f::F;"),
            ("f.rs", "use crate::b::E;"),
        ];
        assert_eq!(findings(&files), "");
        let circle = [files[0], files[1], files[2], ("f.rs", "use crate::b::D;")];
        assert!(findings(&circle).contains("b/d.rs -> f.rs -> b/d.rs"));
    }

    #[test]
    fn tests_comments_and_other_crates_are_left_out() {
        let found = findings(&[
            ("b.rs", "use crate::c::C;"),
            (
                "c.rs",
                "// use crate::b::B;\nuse b::B;\n#[cfg(test)]\nmod tests { use crate::b::B; }",
            ),
        ]);
        assert_eq!(found, "");
    }

    #[test]
    fn visibility_is_no_import() {
        let child = ("b/c.rs", "pub(in crate::b) struct C;");
        assert_eq!(findings(&[("b/mod.rs", "mod c;\nuse self::c::C;"), child]), "");
    }
}

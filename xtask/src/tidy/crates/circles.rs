//! No import circle among the files of a crate.
//!
//! A file imports another when a `use` of it, or a path that begins with `crate`, `self` or `super`, names
//! an item of the other. `mod` and a `pub use` of an item further down are no imports: an item that a file
//! re-exports counts as one of the file that has it. The folder in `pub(in crate::a)` is none either. Test modules are
//! left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::tidy::report::ceilings::{self, Ceilings};
use crate::tidy::report::finding::Finding;
use crate::tidy::sources::rust_source::RustSource;
use crate::tidy::sources::tree::Tree;

/// Segments of a module's path from the root of its crate.
type ModulePath = Vec<String>;

/// The files of a crate by their module path.
type Files<'a> = BTreeMap<ModulePath, &'a str>;

/// Imports between the modules of a crate.
type Graph = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// Files in circles that were there before the rule, by crate.
const CEILINGS: Ceilings = &[("fuzz", 1)];

/// Checks the imports of every crate.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    ceilings::above(all_circles(tree), CEILINGS, "xtask/src/tidy/crates/circles.rs")
}

fn all_circles(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<(&str, &RustSource)>> = BTreeMap::new();
    for (file, source) in tree.rust_sources() {
        if let Some((folder, _)) = file.path.split_once("/src/") {
            crates.entry(folder).or_default().push((&file.path, source));
        }
    }
    crates.into_values().flat_map(|sources| circles(&sources)).collect()
}

/// One finding for each circle, at its first file.
fn circles(sources: &[(&str, &RustSource)]) -> Vec<Finding> {
    let has_library = sources.iter().any(|(path, _)| path.ends_with("/src/lib.rs"));
    let files: Files<'_> =
        sources.iter().map(|(path, _)| (module_path(path, has_library), *path)).collect();
    let graph = graph(sources, &files, has_library);
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

/// `crates/a/src/b/mod.rs` and `crates/a/src/b.rs` are `b`; the root of the crate is empty.
fn module_path(path: &str, has_library: bool) -> ModulePath {
    let (_, below) = path.split_once("/src/").unwrap_or(("", path));
    let mut segments: ModulePath =
        below.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    let is_root = |name: &str| name == "lib" || name == "main" && !has_library;
    let last = segments.last().map(String::as_str);
    if last == Some("mod") || segments.len() == 1 && last.is_some_and(is_root) {
        segments.pop();
    }
    segments
}

fn graph(sources: &[(&str, &RustSource)], files: &Files<'_>, has_library: bool) -> Graph {
    let mut imports: BTreeMap<ModulePath, Vec<Item>> = BTreeMap::new();
    let mut exports: BTreeMap<(ModulePath, String), Item> = BTreeMap::new();
    for (path, source) in sources {
        let module = module_path(path, has_library);
        let items = imports.entry(module.clone()).or_default();
        for (is_public, path, name) in paths(source) {
            let Some(item) = resolve(&module, &path, files) else { continue };
            let is_below = item.module.len() > module.len() && item.module.starts_with(&module);
            if is_public && is_below {
                exports.insert((module.clone(), name), item);
            } else {
                items.push(item);
            }
        }
    }
    let follow = |mut item: Item| {
        // A chain of re-exports is as long as the tree is deep.
        while let Some(name) = item.name.clone()
            && let Some(next) = exports.get(&(item.module.clone(), name))
        {
            item = next.clone();
        }
        item.module
    };
    let mut graph = Graph::new();
    for (module, items) in imports {
        let targets = items.into_iter().map(follow).filter(|target| *target != module).collect();
        graph.insert(module, targets);
    }
    graph
}

/// An item of a module; without a name it is the module itself.
#[derive(Clone, Debug)]
struct Item {
    module: ModulePath,
    name: Option<String>,
}

/// The module of this crate that a path names, as seen from `module`; `None` for another crate's.
fn resolve(module: &ModulePath, path: &[String], files: &Files<'_>) -> Option<Item> {
    let mut rest = path.iter();
    let mut at = match path.first()?.as_str() {
        "crate" => {
            rest.next();
            Vec::new()
        }
        "self" => {
            rest.next();
            module.clone()
        }
        "super" => {
            let mut at = module.clone();
            while rest.as_slice().first().is_some_and(|segment| segment == "super") {
                rest.next();
                at.pop();
            }
            at
        }
        first => {
            let child: ModulePath = [module.as_slice(), &[first.to_owned()]].concat();
            files.contains_key(&child).then(|| module.clone())?
        }
    };
    let mut name = None;
    for segment in rest {
        at.push(segment.clone());
        if !files.contains_key(&at) {
            at.pop();
            name = Some(segment.clone());
            break;
        }
    }
    files.contains_key(&at).then_some(Item { module: at, name })
}

/// Every path that a file outside its tests names in full: whether it is exported, and as which name.
fn paths(source: &RustSource) -> Vec<(bool, Vec<String>, String)> {
    let tokens = tokens(source);
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at] {
            "use" => {
                let end = tokens[at..].iter().position(|token| *token == ";");
                let end = at + end.unwrap_or(tokens.len() - at);
                let mut leaves = Vec::new();
                use_tree(&tokens[at + 1..end], &mut Vec::new(), &mut leaves);
                let is_public = is_public(&tokens[..at]);
                paths.extend(leaves.into_iter().map(|(path, name)| (is_public, path, name)));
                at = end;
            }
            "crate" | "self" | "super"
                if tokens.get(at + 1) == Some(&"::") && !tokens[..at].ends_with(&["(", "in"]) =>
            {
                let mut path = vec![tokens[at].to_owned()];
                while tokens.get(at + 1) == Some(&"::")
                    && let Some(word) = tokens.get(at + 2).filter(|word| is_name(word))
                {
                    path.push((*word).to_owned());
                    at += 2;
                }
                let name = path.last().cloned().unwrap_or_default();
                paths.push((false, path, name));
            }
            _ => {}
        }
        at += 1;
    }
    paths
}

/// Words, double colons and single other characters of the code outside tests.
fn tokens(source: &RustSource) -> Vec<&str> {
    let code = source.code.as_str();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = code[at..].chars().next() {
        let length = if first.is_alphanumeric() || first == '_' {
            let end = code[at..].find(|c: char| !c.is_alphanumeric() && c != '_');
            end.unwrap_or(code.len() - at)
        } else if code[at..].starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() && !source.is_test(at) {
            tokens.push(&code[at..at + length]);
        }
        at += length;
    }
    tokens
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// True if `pub` or `pub(...)` stands at the end of `before`.
fn is_public(before: &[&str]) -> bool {
    let before = match before {
        [rest @ .., "(", _, ")"] => rest,
        _ => before,
    };
    before.last() == Some(&"pub")
}

/// The leaves of the tree behind a `use`, with the name that each gets.
fn use_tree(tokens: &[&str], prefix: &mut Vec<String>, leaves: &mut Vec<(Vec<String>, String)>) {
    let depth = prefix.len();
    let mut rest = tokens;
    loop {
        match rest {
            ["{", inside @ .., "}"] => {
                for part in parts(inside) {
                    use_tree(part, prefix, leaves);
                }
                break;
            }
            [_, "as", name] => {
                prefix.push(rest[0].to_owned());
                leaves.push((prefix.clone(), (*name).to_owned()));
                break;
            }
            [word, "::", further @ ..] => {
                prefix.push((*word).to_owned());
                rest = further;
            }
            ["::", further @ ..] => rest = further,
            ["self"] if depth > 0 || !prefix.is_empty() => {
                leaves.push((prefix.clone(), prefix.last().cloned().unwrap_or_default()));
                break;
            }
            [word] => {
                prefix.push((*word).to_owned());
                leaves.push((prefix.clone(), (*word).to_owned()));
                break;
            }
            _ => break,
        }
    }
    prefix.truncate(depth);
}

/// The parts of a list between commas that are not inside braces.
fn parts<'a, 'b>(tokens: &'a [&'b str]) -> Vec<&'a [&'b str]> {
    let mut depth = 0_usize;
    let separators = tokens.split(|token| {
        match *token {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        *token == "," && depth == 0
    });
    separators.filter(|part| !part.is_empty()).collect()
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

    #[test]
    fn use_trees_are_taken_apart() {
        let source = RustSource::new("use a::{b::{self, C as D}, e::*, f}; crate::g::h();".into());
        let names: Vec<String> = paths(&source)
            .into_iter()
            .map(|(_, path, name)| format!("{} {name}", path.join("::")))
            .collect();
        assert_eq!(names, ["a::b b", "a::b::C D", "a::e::* *", "a::f f", "crate::g::h h"]);
    }
}

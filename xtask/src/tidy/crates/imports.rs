//! Imports among the files of a crate.
//!
//! A file imports another when a `use` of it, or a path that begins with `crate`, `self` or `super`, names
//! an item of the other. `mod` and a `pub use` of an item further down are no imports: an item that a file
//! re-exports counts as one of the file that has it. The folder in `pub(in crate::a)` is none either. Tests are left
//! out.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::sources::rust_source::RustSource;
use crate::tidy::sources::tree::Tree;

/// Segments of a module's path from the root of its crate.
pub(super) type ModulePath = Vec<String>;

/// The files of a crate by their module path.
pub(super) type Files<'a> = BTreeMap<ModulePath, &'a str>;

/// Imports between the modules of a crate.
pub(super) type Graph = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// The sources of each crate, by the folder of the crate, with their paths.
pub(super) fn by_crate(tree: &Tree) -> BTreeMap<&str, Vec<(&str, &RustSource)>> {
    let mut crates: BTreeMap<&str, Vec<(&str, &RustSource)>> = BTreeMap::new();
    for (file, source) in tree.production() {
        if let Some((folder, _)) = file.path.split_once("/src/") {
            crates.entry(folder).or_default().push((&file.path, source));
        }
    }
    crates
}

/// The files of a crate.
pub(super) fn files<'a>(sources: &[(&'a str, &RustSource)]) -> Files<'a> {
    let has_library = has_library(sources);
    sources.iter().map(|(path, _)| (module_path(path, has_library), *path)).collect()
}

fn has_library(sources: &[(&str, &RustSource)]) -> bool {
    sources.iter().any(|(path, _)| path.ends_with("/src/lib.rs"))
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

/// The imports of a crate.
pub(super) fn graph(sources: &[(&str, &RustSource)]) -> Graph {
    let (files, has_library) = (files(sources), has_library(sources));
    let mut imports: BTreeMap<ModulePath, Vec<Item>> = BTreeMap::new();
    let mut exports: BTreeMap<(ModulePath, String), Item> = BTreeMap::new();
    for (path, source) in sources {
        let module = module_path(path, has_library);
        let items = imports.entry(module.clone()).or_default();
        for (is_public, path, name) in paths(source) {
            let Some(item) = resolve(&module, &path, &files) else { continue };
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

#[cfg(test)]
mod tests {
    use super::*;

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

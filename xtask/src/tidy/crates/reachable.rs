//! Every Rust file is part of a crate: the root of a target, or reached from one by `mod`.
//!
//! Follows the `mod` lines as the compiler does, with `#[path]` and modules inside modules, but
//! reads no `cfg`: a file for another system is reached too.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::report::finding::Finding;
use crate::tidy::sources::rust_source::RustSource;
use crate::tidy::sources::tree::Tree;

/// Checks that no Rust file is left behind.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let sources: BTreeMap<&str, &RustSource> =
        tree.rust_sources().map(|(file, source)| (file.path.as_str(), source)).collect();
    let mut reached = BTreeSet::new();
    let roots = tree.packages.iter().flat_map(|package| &package.roots);
    let mut open: Vec<(String, bool)> = roots.map(|root| (root.clone(), true)).collect();
    while let Some((path, is_root)) = open.pop() {
        let Some(source) = sources.get(path.as_str()) else {
            continue;
        };
        if reached.insert(path.clone()) {
            let candidates = declared_files(&path, is_root, source);
            open.extend(candidates.into_iter().map(|candidate| (candidate, false)));
        }
    }
    let is_lost = |path: &&&str| !reached.contains(**path);
    let message = "no `mod` line leads here: declare the module, or delete the file";
    sources.keys().filter(is_lost).map(|path| Finding::in_file(path, message)).collect()
}

/// The files that the `mod` lines of a file can mean, existing or not.
fn declared_files(path: &str, is_root: bool, source: &RustSource) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let owns_folder = is_root || name == "mod.rs";
    let stem = name.trim_end_matches(".rs");
    let children = if owns_folder { folder.to_owned() } else { join(folder, stem) };
    let mut files = Vec::new();
    for module in declared_modules(source) {
        let inside = module.parents.iter().fold(children.clone(), |at, part| join(&at, part));
        match module.path {
            Some(file) if module.parents.is_empty() => files.push(join(folder, &file)),
            Some(file) => files.push(join(&inside, &file)),
            None => {
                files.push(join(&inside, &format!("{}.rs", module.name)));
                files.push(join(&inside, &format!("{}/mod.rs", module.name)));
            }
        }
    }
    files
}

/// A `mod name;` line.
struct Module {
    name: String,
    /// The inline modules around it, outermost first.
    parents: Vec<String>,
    /// Value of `#[path = "..."]`.
    path: Option<String>,
}

fn declared_modules(source: &RustSource) -> Vec<Module> {
    let code = &source.code;
    let words: BTreeMap<usize, &str> = source.words().collect();
    let mut modules = Vec::new();
    let mut parents: Vec<(String, usize)> = Vec::new();
    let mut depth = 0;
    let mut expects: Option<Expects<'_>> = None;
    for (at, byte) in code.bytes().enumerate() {
        if let Some(word) = words.get(&at) {
            expects = match expects {
                Some(Expects::Name { keyword_at }) => Some(Expects::End { keyword_at, name: word }),
                _ if *word == "mod" => Some(Expects::Name { keyword_at: at }),
                _ => None,
            };
        }
        match (byte, &expects) {
            (b'{', Some(Expects::End { name, .. })) => {
                depth += 1;
                parents.push(((*name).to_owned(), depth));
                expects = None;
            }
            (b';', Some(Expects::End { keyword_at, name })) => {
                modules.push(Module {
                    name: (*name).to_owned(),
                    parents: parents.iter().map(|(parent, _)| parent.clone()).collect(),
                    path: path_attribute(source, *keyword_at),
                });
                expects = None;
            }
            (b'{', _) => depth += 1,
            (b'}', _) => {
                parents.pop_if(|(_, opened_at)| *opened_at == depth);
                depth = usize::saturating_sub(depth, 1);
            }
            _ => {}
        }
    }
    modules
}

/// Token that the scan for `mod` lines waits for.
enum Expects<'a> {
    Name { keyword_at: usize },
    End { keyword_at: usize, name: &'a str },
}

/// The file named by a `#[path = "..."]` between the previous item and the `mod` keyword.
fn path_attribute(source: &RustSource, keyword_at: usize) -> Option<String> {
    let start = source.code[..keyword_at].rfind([';', '}', '{']).map_or(0, |end| end + 1);
    let attribute = start + source.code[start..keyword_at].find("#[path")?;
    source.text[attribute..keyword_at].split('"').nth(1).map(str::to_owned)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::report::finding::lines;
    use crate::tidy::sources::workspace::Package;

    fn findings(files: &[(&str, &str)]) -> String {
        let mut tree = Tree::of(files);
        let roots = vec!["a/src/lib.rs".to_owned(), "a/tests/t.rs".to_owned()];
        tree.packages.push(Package { roots, ..Package::default() });
        lines(&check(&tree))
    }

    #[test]
    fn file_without_a_mod_line_is_lost() {
        assert_eq!(
            findings(&[
                ("a/src/lib.rs", "// mod lost;\nmod kept;"),
                ("a/src/kept.rs", ""),
                ("a/src/lost.rs", "")
            ]),
            "a/src/lost.rs:1: no `mod` line leads here: declare the module, or delete the file\n"
        );
    }

    #[test]
    fn both_layouts_of_folders_are_followed() {
        assert_eq!(
            findings(&[
                ("a/src/lib.rs", "pub(crate) mod queue;\n#[cfg(test)]\nmod exchange;"),
                ("a/src/queue.rs", "mod ready;"),
                ("a/src/queue/ready.rs", ""),
                ("a/src/exchange/mod.rs", "mod topic;"),
                ("a/src/exchange/topic.rs", ""),
                ("a/tests/t.rs", "mod runner;"),
                ("a/tests/runner/mod.rs", ""),
            ]),
            ""
        );
    }

    #[test]
    fn modules_inside_modules_and_path_attributes_are_followed() {
        assert_eq!(
            findings(&[
                (
                    "a/src/lib.rs",
                    "fn f() { g(); }\nmod b { mod c; }\n#[path = \"other/d.rs\"]\nmod d;\nmod e;"
                ),
                ("a/src/b/c.rs", ""),
                ("a/src/other/d.rs", ""),
                ("a/src/e.rs", ""),
            ]),
            ""
        );
    }
}

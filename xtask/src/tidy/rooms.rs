//! At most ten files at the root of a crate: the rest lie in folders that have a name.
//!
//! Counts the files of `src` that are no binaries of their own in `src/bin`.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::tree::Tree;

/// Files at the root of a crate, with `lib.rs` and `main.rs`.
const ROOT_FILES_MAX: usize = 10;

/// Crates whose root may have more files, and the reason.
const MORE: &[(&str, usize, &str)] = &[
    ("broker", 30, "the nouns of the core, which its folders share"),
    ("ctl", 20, "one connection, one answer: a small program"),
    ("perf", 18, "one load, one outcome: a small program"),
    ("session", 12, "one state machine"),
    ("storage", 13, "one log"),
];

/// Checks the root folder of every crate.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut roots: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, _) in tree.rust_sources() {
        let below = file.crate_folder().zip(file.path.split_once("/src/"));
        if let Some((folder, (_, name))) = below
            && !name.contains('/')
        {
            *roots.entry(folder).or_default() += 1;
        }
    }
    let mut findings = Vec::new();
    for (folder, files) in roots {
        let row = MORE.iter().find(|(name, ..)| *name == folder);
        let files_max = row.map_or(ROOT_FILES_MAX, |(_, files_max, _)| *files_max);
        if files > files_max {
            let message = format!(
                "{files} files at the root of the crate, at most {files_max}: move those that \
                 belong together into a folder"
            );
            findings.push(Finding::in_file(&format!("crates/{folder}/src"), message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines;
    use super::*;

    #[test]
    fn root_has_at_most_ten_files() {
        let files = |number: usize| -> Vec<(String, &str)> {
            let root = (0..number).map(|file| (format!("crates/a/src/f{file}.rs"), ""));
            root.chain([("crates/a/src/room/b.rs".to_owned(), "")]).collect()
        };
        let findings = |number: usize| {
            let files = files(number);
            let files: Vec<(&str, &str)> =
                files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
            lines(&check(&Tree::of(&files)))
        };
        assert_eq!(findings(10), "");
        assert_eq!(
            findings(11),
            "crates/a/src:1: 11 files at the root of the crate, at most 10: move those that belong \
             together into a folder\n"
        );
    }
}

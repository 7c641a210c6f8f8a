//! At most ten files at the root of a crate and eighteen in any other folder: the rest lie in folders that have a name.
//!
//! Counts the files of `src` that are no binaries of their own in `src/bin`.

use std::collections::BTreeMap;

use crate::tidy::report::finding::Finding;
use crate::tidy::report::ratchet::{self, Counted, Exceptions, Limit};
use crate::tidy::sources::tree::Tree;

/// Files at the root of a crate, with `lib.rs` and `main.rs`.
const ROOT_FILES_MAX: usize = 10;

/// Crates whose root may have more files, and the reason.
const MORE: &[(&str, usize, &str)] = &[
    ("broker", 30, "the nouns of the core, which its folders share"),
    ("ctl", 19, "one connection, one answer: a small program"),
    ("perf", 18, "one load, one outcome: a small program"),
    ("session", 12, "one state machine"),
    ("storage", 13, "one log"),
];

/// Files in a folder below the root.
const FOLDER_FILES_MAX: usize = 18;

/// Folders with more.
const FOLDERS: Exceptions = &[
    ("crates/broker/src/exchange", 19),
    ("crates/broker/src/queue", 23),
    ("crates/broker/src/vhost/lifecycle", 19),
    ("crates/broker/src/vhost/state", 21),
];

/// Checks the folders of every crate.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = roots(tree);
    let limit = Limit {
        most: FOLDER_FILES_MAX,
        exceptions: FOLDERS,
        list: "xtask/src/tidy/crates/rooms.rs",
        unit: "files",
        hint: "move those that belong together into a folder",
    };
    findings.extend(ratchet::check(&folders(tree), limit));
    findings
}

/// The folders below the roots of crates, with the numbers of their files.
fn folders(tree: &Tree) -> Vec<Counted> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, _) in tree.rust_sources().filter(|(file, _)| file.path.contains("/src/")) {
        if let Some((folder, _)) = file.path.rsplit_once('/')
            && !folder.ends_with("/src")
        {
            *numbers.entry(folder).or_default() += 1;
        }
    }
    let counted = |(folder, number): (&str, usize)| Counted {
        name: folder.to_owned(),
        path: folder.to_owned(),
        line: 1,
        number,
    };
    numbers.into_iter().map(counted).collect()
}

/// Checks the root folder of every crate.
fn roots(tree: &Tree) -> Vec<Finding> {
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
    use super::*;
    use crate::tidy::report::finding::lines;

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
            lines(&roots(&Tree::of(&files)))
        };
        assert_eq!(findings(10), "");
        assert_eq!(
            findings(11),
            "crates/a/src:1: 11 files at the root of the crate, at most 10: move those that belong \
             together into a folder\n"
        );
    }

    #[test]
    fn files_of_folders_are_counted() {
        let files =
            [("crates/a/src/b/c.rs", ""), ("crates/a/src/b/d.rs", ""), ("crates/a/src/e.rs", "")];
        let counted = folders(&Tree::of(&files));
        assert_eq!(counted.len(), 1);
        assert_eq!((&*counted[0].name, counted[0].number), ("crates/a/src/b", 2));
    }
}

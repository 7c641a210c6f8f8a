//! The files that the rules look at: everything git tracks or would track, read once.
//!
//! Decides what a text file, a Rust file and a test file are. Knows no rule. Paths are relative
//! to the root of the repository, with slashes, in sorted order, so that a report is the same on
//! every machine.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process::{self, QUESTION_TIME_MAX};
use crate::repository;
use crate::tidy::sources::rust_source::RustSource;
use crate::tidy::sources::workspace::{self, ForeignCrate, Package};

/// Input for fuzzing: any bytes, also those that no rule would let pass.
const SEEDS: &str = "fuzz/corpus/";

/// Code of others, which is kept as they publish it; documents there are ours.
const VENDORED: &str = "crates/management/web/vendor/";

/// The repository as the rules see it.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<TreeFile>,
    /// The crates of the workspace, in the order cargo lists them.
    pub(crate) packages: Vec<Package>,
    /// The crates of others that it is built or tested with.
    pub(crate) foreign_crates: Vec<ForeignCrate>,
}

/// One file.
#[derive(Debug)]
pub(crate) struct TreeFile {
    /// Relative to the root, with slashes.
    pub(crate) path: String,
    pub(crate) content: Content,
}

/// Content of a file, as far as rules can read it.
#[derive(Debug)]
pub(crate) enum Content {
    Rust(RustSource),
    Text(String),
    /// Not UTF-8, or with NUL bytes, or a seed, or of others.
    Binary,
}

impl Tree {
    /// Reads the repository.
    ///
    /// # Errors
    /// When git or cargo fails, or a listed file cannot be read.
    pub(crate) fn read() -> Result<Self> {
        let root = repository::root();
        let mut command = Command::new("git");
        // A checkout that belongs to another user, as in many containers, is still ours to read.
        command.args(["-c", "safe.directory=*", "ls-files", "-z"]);
        command.args(["--cached", "--others", "--exclude-standard"]).current_dir(&root);
        let listing = process::output(command, QUESTION_TIME_MAX)?;
        let paths: BTreeSet<&str> = listing.split_terminator('\0').collect();
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let place = root.join(path);
            // A tracked file may be deleted and not yet committed; a link is not a text of its own.
            if !fs::symlink_metadata(&place).is_ok_and(|metadata| metadata.is_file()) {
                continue;
            }
            let bytes = fs::read(&place).with_context(|| format!("cannot read {path}"))?;
            files.push(TreeFile::new(path, bytes));
        }
        let (packages, foreign_crates) = workspace::read(&alone(&files))?;
        Ok(Self { files, packages, foreign_crates })
    }

    /// A tree of the given files, for the tests of the rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| TreeFile::new(path, text.as_bytes().to_vec()));
        Self { files: files.collect(), ..Self::default() }
    }

    /// The text of a file, when it exists and is text.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path)?.text()
    }

    /// The first line of a file that contains `needle`, counted from 1; 1 when none does.
    pub(crate) fn line_of(&self, path: &str, needle: &str) -> usize {
        let mut lines = self.text(path).unwrap_or_default().lines();
        lines.position(|line| line.contains(needle)).map_or(1, |index| index + 1)
    }

    /// Every text file with its text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&TreeFile, &str)> {
        self.files.iter().filter_map(|file| Some((file, file.text()?)))
    }

    /// Every Rust file with its source.
    pub(crate) fn rust_sources(&self) -> impl Iterator<Item = (&TreeFile, &RustSource)> {
        self.files.iter().filter_map(|file| match &file.content {
            Content::Rust(source) => Some((file, source)),
            Content::Text(_) | Content::Binary => None,
        })
    }

    /// Every Rust file that is no test, with its source.
    pub(crate) fn production(&self) -> impl Iterator<Item = (&TreeFile, &RustSource)> {
        self.rust_sources().filter(|(file, _)| !file.is_test())
    }
}

/// The folders below the root that are a workspace of their own.
fn alone(files: &[TreeFile]) -> Vec<&str> {
    let manifests = files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("/Cargo.toml")?;
        file.text()?.lines().any(|line| line == "[workspace]").then_some(folder)
    });
    manifests.collect()
}

impl TreeFile {
    fn new(path: &str, bytes: Vec<u8>) -> Self {
        let content = match String::from_utf8(bytes) {
            Ok(_) if path.starts_with(SEEDS) => Content::Binary,
            Ok(_) if path.starts_with(VENDORED) && !has_extension(path, "md") => Content::Binary,
            Ok(text) if text.contains('\0') => Content::Binary,
            Ok(text) if has_extension(path, "rs") => Content::Rust(RustSource::new(text)),
            Ok(text) => Content::Text(text),
            Err(_) => Content::Binary,
        };
        Self { path: path.to_owned(), content }
    }

    /// The text, unless the file is binary.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Rust(source) => Some(&source.text),
            Content::Text(text) => Some(text),
            Content::Binary => None,
        }
    }

    /// True if the file name ends in a dot and `extension`.
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        has_extension(&self.path, extension)
    }

    /// True if the whole file is test code: in a folder for tests or benchmarks, or a `tests.rs`.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "benches" | "tests.rs"))
    }

    /// The crate the file belongs to, when it lies in `crates/`.
    pub(crate) fn crate_folder(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split_once('/').map(|(folder, _)| folder)
    }
}

fn has_extension(path: &str, extension: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, end)| end == extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_told_by_name_and_bytes() {
        let kind = |path, bytes: &[u8]| match TreeFile::new(path, bytes.to_vec()).content {
            Content::Rust(_) => "rust",
            Content::Text(_) => "text",
            Content::Binary => "binary",
        };
        assert_eq!(kind("a.rs", b"fn main() {}"), "rust");
        assert_eq!(kind("a.txt", b"fn main() {}"), "text");
        assert_eq!(kind("a.rs", b"\0"), "binary");
        assert_eq!(kind("fuzz/corpus/a/b", b"text"), "binary");
        assert_eq!(kind("crates/management/web/vendor/a.js", b"text"), "binary");
        assert_eq!(kind("crates/management/web/vendor/README.md", b"text"), "text");
        assert_eq!(kind("a.png", b"\x89PNG\xff"), "binary");
    }

    #[test]
    fn test_files_and_crates_are_told_by_path() {
        let tree = Tree::of(&[
            ("crates/broker/src/queue.rs", ""),
            ("crates/broker/src/queue/tests/limits.rs", ""),
            ("crates/broker/src/queue/tests.rs", ""),
            ("crates/broker/benches/route.rs", ""),
            ("tests/hostile/peer.py", ""),
        ]);
        let tests: Vec<bool> = tree.files.iter().map(TreeFile::is_test).collect();
        assert_eq!(tests, [false, true, true, true, true]);
        assert_eq!(tree.files[0].crate_folder(), Some("broker"));
        assert_eq!(tree.files[4].crate_folder(), None);
    }
}

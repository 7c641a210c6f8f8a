//! `cargo xtask dist --verify`: a second build of the same commit, in another folder, must give the same bytes.
//!
//! The second build is the whole command again, in a clone of its own with nothing built.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum as _;

use super::Package;
use super::release::PACKING_TIME_MAX;
use crate::place::Place;
use crate::{process, repository};

/// The list of checksums beside the packages.
pub(super) const SUMS: &str = "SHA256SUMS";

/// Longest second build: twice all programs, on a slow machine.
const SECOND_BUILD_TIME_MAX: Duration = Duration::from_hours(5);

/// Checks that the working tree is the commit, which a second build is made of.
///
/// # Errors
/// When a file differs, or git cannot be asked.
pub(super) fn check_tree(place: &Place<'_>) -> Result<()> {
    let mut git = Command::new("git");
    git.args(["status", "--porcelain"]).current_dir(place.root);
    let changed = process::output(git, PACKING_TIME_MAX)?;
    ensure!(
        changed.is_empty(),
        "the packages of a changed working tree cannot be verified, commit first:\n{changed}"
    );
    Ok(())
}

/// Builds these packages of the commit again, and compares them with those in `first`. Returns the number of files.
///
/// # Errors
/// When the build fails, or a file has other bytes.
pub(super) fn verify(wanted: &[Package], first: &Path, place: &Place<'_>) -> Result<usize> {
    let clone = place.target.join("xtask").join("second");
    if clone.exists() {
        fs::remove_dir_all(&clone).with_context(|| format!("cannot empty {}", clone.display()))?;
    }
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "--local"]).arg(place.root).arg(&clone);
    process::run(git, place.log, PACKING_TIME_MAX)?;
    let second = clone.join("packages");
    let mut command = Command::new(repository::cargo());
    command.args(["run", "--quiet", "--package", "xtask", "--", "dist", "--output"]).arg(&second);
    for package in wanted.iter().filter_map(Package::to_possible_value) {
        command.args(["--only", package.get_name()]);
    }
    command.current_dir(&clone).env_remove("CARGO_TARGET_DIR");
    process::run(command, place.log, SECOND_BUILD_TIME_MAX)?;
    let read = |folder: &Path| {
        let path = folder.join(SUMS);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (ours, theirs) = (read(first)?, read(&second)?);
    let others = different(&ours, &theirs);
    ensure!(
        others.is_empty(),
        "not the same bytes in {} and {}: {}",
        first.display(),
        second.display(),
        others.join(", ")
    );
    fs::remove_dir_all(&clone).with_context(|| format!("cannot remove {}", clone.display()))?;
    Ok(sums(&ours).len())
}

/// Names of the files that do not have the same checksum in both lists.
fn different<'a>(first: &'a str, second: &'a str) -> Vec<&'a str> {
    let (first, second) = (sums(first), sums(second));
    let names: BTreeSet<&str> = first.keys().chain(second.keys()).copied().collect();
    names.into_iter().filter(|name| first.get(name) != second.get(name)).collect()
}

/// Checksums by file.
fn sums(list: &str) -> BTreeMap<&str, &str> {
    list.lines().filter_map(|line| line.split_once("  ")).map(|(sum, name)| (name, sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_missing_and_added_files_are_named() {
        let first = "1  a.deb\n2  b.tar\n3  c.tar\n";
        assert!(different(first, "3  c.tar\n2  b.tar\n1  a.deb\n").is_empty());
        assert_eq!(different(first, "1  a.deb\n9  b.tar\n4  d.tar\n"), ["b.tar", "c.tar", "d.tar"]);
    }
}

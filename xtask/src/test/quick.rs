//! The answer for a change in a few minutes: what `cargo xtask test --quick` leaves out.
//!
//! Decides which crates and tests a change concerns. It is compiled as for the whole run, so that neither run makes
//! the other compile again; then only the tests of the changed crates run, and of the black-box suite the changed files
//! beside some that reach far, against a broker that is not optimised.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::place::Place;
use crate::process::{self, QUESTION_TIME_MAX};
use crate::repository;

/// Steps of a quick run.
pub(super) const STEPS: &[&str] =
    &["fmt", "tidy", "clippy", "python", "python-lints", "unit", "blackbox"];

/// Files of black-box tests that run for every change: each part of the broker has to work for them.
const SMOKE: &[&str] = &[
    "consuming/test_consumers.py",
    "dead_letters/test_dead_lettering.py",
    "management/test_management_queues.py",
    "expiry/test_message_ttl.py",
    "publishing/test_publishing.py",
    "consuming/test_redelivered_after_restart.py",
    "test_scripts.py",
];

/// Files that concern every crate.
const OF_ALL_CRATES: &[&str] = &["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "clippy.toml"];

/// Folder of the tests that a client of the broker makes.
const BLACK_BOX: &str = "tests/blackbox/";

/// The crates and tests that a change concerns.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Change {
    /// Folders of the changed crates, relative to the root.
    crates: Vec<String>,
    /// Changed files of black-box tests, relative to the folder of the suite.
    tests: Vec<String>,
}

impl Change {
    /// The change of the working tree; of the last commit when the tree is clean.
    ///
    /// # Errors
    /// When git or cargo cannot be asked.
    pub(super) fn of_repository() -> Result<Self> {
        let mut paths = git(&["ls-files", "--modified", "--others", "--exclude-standard"])?;
        paths.push_str(&git(&["diff", "--name-only", "--cached"])?);
        if paths.trim().is_empty() {
            paths = git(&["show", "--name-only", "--format=", "HEAD"])?;
        }
        let metadata = repository::metadata(false)?;
        let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
        let root = format!("{}/", repository::root().display());
        let manifests = packages.iter().filter_map(|package| package["manifest_path"].as_str());
        let folders =
            manifests.filter_map(|path| path.strip_prefix(&root)?.strip_suffix("/Cargo.toml"));
        Ok(Self::of(&paths.lines().collect::<Vec<_>>(), &folders.collect::<Vec<_>>()))
    }

    fn of(paths: &[&str], folders: &[&str]) -> Self {
        let is_changed = |folder: &str| {
            let is_below =
                |path: &&str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
            paths.iter().any(is_below) || paths.iter().any(|path| OF_ALL_CRATES.contains(path))
        };
        let is_test = |path: &&str| {
            let name = path.rsplit_once('/').map_or(*path, |(_, name)| name);
            name.starts_with("test_") && name.ends_with(".py")
        };
        let tests = paths.iter().filter_map(|path| path.strip_prefix(BLACK_BOX)).filter(is_test);
        Self {
            crates: folders
                .iter()
                .filter(|folder| is_changed(folder))
                .map(|&folder| folder.to_owned())
                .collect(),
            tests: tests.map(str::to_owned).collect(),
        }
    }

    /// The test programs of the changed crates, as cargo lists them in JSON lines, each with the folder to run it in.
    pub(super) fn programs(&self, lines: &str, place: &Place<'_>) -> Vec<Command> {
        let artifacts = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let program = |artifact: Value| {
            let manifest = artifact["manifest_path"].as_str()?;
            let is_one = |folder: &&String| {
                place.root.join(folder.as_str()).join("Cargo.toml").to_str() == Some(manifest)
            };
            let folder = self.crates.iter().find(is_one)?;
            let is_test = artifact["profile"]["test"].as_bool()?;
            let mut command = Command::new(artifact["executable"].as_str().filter(|_| is_test)?);
            command.current_dir(place.root.join(folder));
            command.env("CARGO_MANIFEST_DIR", place.root.join(folder));
            Some(command)
        };
        artifacts.filter_map(program).collect()
    }

    /// The files of black-box tests that run: relative to the folder of the suite.
    pub(super) fn black_box_tests(&self) -> BTreeSet<&str> {
        SMOKE.iter().copied().chain(self.tests.iter().map(String::as_str)).collect()
    }

    /// The crates in a few words.
    pub(super) fn describe(&self) -> String {
        let mut words: Vec<&str> = self.crates.iter().map(String::as_str).collect();
        words.extend(self.tests.iter().map(String::as_str));
        if words.is_empty() { "no crate".to_owned() } else { words.join(", ") }
    }
}

fn git(arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command.args(["-c", "safe.directory=*"]).args(arguments).current_dir(repository::root());
    process::output(command, QUESTION_TIME_MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const FOLDERS: &[&str] = &["crates/amqp", "crates/broker", "fuzz"];

    #[test]
    fn change_concerns_crates_and_tests() {
        let change = Change::of(
            &[
                "crates/broker/src/lib.rs",
                "tests/blackbox/expiry/test_ttl.py",
                "tests/blackbox/support/client.py",
                "README.md",
            ],
            FOLDERS,
        );
        assert_eq!(change.crates, ["crates/broker"]);
        assert_eq!(change.tests, ["expiry/test_ttl.py"]);
        assert_eq!(change.describe(), "crates/broker, expiry/test_ttl.py");
        assert_eq!(Change::of(&["README.md"], FOLDERS).describe(), "no crate");
    }

    #[test]
    fn dependencies_concern_every_crate() {
        assert_eq!(Change::of(&["Cargo.lock"], FOLDERS).crates, FOLDERS);
    }

    #[test]
    fn programs_are_those_of_the_tests() {
        let line = |folder: &str, is_test: bool, executable: &str| {
            format!(
                r#"{{"manifest_path":"/r/{folder}/Cargo.toml","profile":{{"test":{is_test}}},"executable":{executable}}}"#
            )
        };
        let lines = [
            line("crates/broker", true, r#""/t/broker-1""#),
            line("crates/broker", false, "null"),
            line("crates/amqp", true, r#""/t/amqp-1""#),
            "not JSON".to_owned(),
        ];
        let change = Change::of(&["crates/broker/src/lib.rs"], FOLDERS);
        let place = Place::new(Path::new("/r"), Path::new("/t"), Path::new("/l"));
        let programs = change.programs(&lines.join("\n"), &place);
        assert_eq!(programs.len(), 1);
        assert_eq!(programs[0].get_program(), "/t/broker-1");
        assert_eq!(programs[0].get_current_dir(), Some(Path::new("/r/crates/broker")));
    }
}

//! Paths of the repository, and the cargo that works on it.
//!
//! Knows paths, not contents. Everything is found through the environment that cargo sets for
//! `cargo run` and `cargo test`, so the commands work from any folder below the root.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::process::{self, QUESTION_TIME_MAX};

/// Longest wait for `cargo metadata`, which may have to download crates on a fresh machine.
const METADATA_TIME_MAX: Duration = Duration::from_mins(5);

/// Profile of the programs that the suites test, and folder of the programs below the target folder.
pub(crate) const SUITE_PROFILE: &str = "suite";

/// Package of the simulator.
pub(crate) const SIMULATOR_PACKAGE: &[&str] = &["--package", "leveret-sim"];

/// Package of the broker, as `cargo run --release` builds it. With the tools beside it, cargo would give its
/// dependencies more features than that build has.
pub(crate) const BROKER_PACKAGE: &[&str] = &["--package", "leveret"];

/// Packages of the tools.
pub(crate) const TOOL_PACKAGES: &[&str] = &["--package", "leveretctl", "--package", "leveret-perf"];

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest_folder = env::var_os("CARGO_MANIFEST_DIR")
        .unwrap_or_else(|| OsString::from(env!("CARGO_MANIFEST_DIR")));
    let folder = Path::new(&manifest_folder);
    folder.parent().unwrap_or(folder).to_path_buf()
}

/// The cargo that started us, or the one on the path.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"))
}

/// Answer of the repository's compiler to a question: `--version`, `--print sysroot`.
///
/// # Errors
/// When there is no compiler, or the question takes too long.
pub(crate) fn ask_compiler(arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("rustc");
    command.args(arguments).current_dir(root());
    process::output(command, QUESTION_TIME_MAX)
}

/// Output of `cargo metadata` for the workspace; with `resolve` also for every crate it reaches.
///
/// # Errors
/// When cargo fails, takes too long, or prints something that is not JSON.
pub(crate) fn metadata(resolve: bool) -> Result<Value> {
    metadata_in(&root(), resolve)
}

/// As [`metadata`], about the workspace that a folder belongs to.
///
/// # Errors
/// As [`metadata`].
pub(crate) fn metadata_in(folder: &Path, resolve: bool) -> Result<Value> {
    let mut command = Command::new(cargo());
    command.args(["metadata", "--format-version", "1"]).current_dir(folder);
    if !resolve {
        command.arg("--no-deps");
    }
    let text = process::output(command, METADATA_TIME_MAX)?;
    serde_json::from_str(&text).context("cargo metadata did not print JSON")
}

/// The folder cargo builds into: `target`, unless the environment says otherwise.
///
/// # Errors
/// As [`metadata`].
pub(crate) fn target_folder() -> Result<PathBuf> {
    let metadata = metadata(false)?;
    let folder = metadata.get("target_directory").and_then(Value::as_str);
    Ok(PathBuf::from(folder.context("cargo metadata names no target folder")?))
}

//! Clippy as the compiler of the tests.
//!
//! Knows the variables by which `cargo clippy` puts clippy in the place of the compiler. `cargo clippy` only
//! checks, so that a test run would compile the dependencies and the workspace twice: once for lints,
//! once for the tests. Clippy is the compiler with lints added, so one build serves both.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::place::Place;
use crate::repository;

/// Arguments of clippy, separated as `cargo clippy` does.
const ARGUMENTS: &str = "--deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// Command that builds the workspace with its tests, examples and benchmarks; a warning is an error.
///
/// # Errors
/// When the compiler does not print the path of clippy.
pub(super) fn build(place: &Place<'_>) -> Result<Command> {
    cargo(&["build", "--workspace", "--all-targets"], place)
}

/// Command that runs the tests of the workspace, which [`build`] has compiled.
///
/// # Errors
/// As [`build`].
pub(super) fn test(place: &Place<'_>) -> Result<Command> {
    cargo(&["test", "--workspace", "--no-fail-fast"], place)
}

/// Command that lists the test programs, which [`build`] has compiled, in lines of JSON.
///
/// # Errors
/// As [`build`].
pub(super) fn list_tests(place: &Place<'_>) -> Result<Command> {
    cargo(&["test", "--workspace", "--no-run", "--message-format=json"], place)
}

fn cargo(arguments: &[&str], place: &Place<'_>) -> Result<Command> {
    let mut command = Command::new(repository::cargo());
    command.args(arguments).current_dir(place.root).env("CARGO_TERM_COLOR", "never");
    command.env("RUSTC_WORKSPACE_WRAPPER", driver()?).env("CLIPPY_ARGS", ARGUMENTS);
    // Incremental compilation makes the first build a fifth dearer for the sake of later ones, which
    // people start without clippy.
    command.env("CARGO_INCREMENTAL", "0");
    // A panic names its line without debug information; a backtrace, the only loss, is rarely looked at in
    // this run. Writing and linking it takes a tenth of the build.
    command.env("CARGO_PROFILE_DEV_DEBUG", "false");
    Ok(command)
}

/// Path of clippy's compiler, beside the compiler of the repository's toolchain.
fn driver() -> Result<PathBuf> {
    let sysroot = repository::ask_compiler(&["--print", "sysroot"])?;
    Ok(PathBuf::from(sysroot.trim()).join("bin").join("clippy-driver"))
}

//! The benchmark targets of the workspace, which measure parts of the broker without sockets.
//!
//! Decides nothing but the command line: the output belongs to cargo and the benchmarks, and goes
//! straight to the terminal.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::repository;

/// Runs `cargo bench --workspace`; a filter that is not empty is a part of the names of what is run.
///
/// # Errors
/// When cargo cannot be started or a benchmark fails.
pub(super) fn run(filter: &str) -> Result<()> {
    let mut command = Command::new(repository::cargo());
    command.args(["bench", "--workspace", "--bench", "*"]).current_dir(repository::root());
    if !filter.is_empty() {
        command.args(["--", filter]);
    }
    let status = command.status().context("cannot start cargo")?;
    ensure!(status.success(), "cargo bench failed: {status}");
    Ok(())
}

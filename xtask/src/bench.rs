//! `cargo xtask bench`: runs the benchmark targets of the workspace.
//!
//! Decides nothing but the command line: the output belongs to cargo and the benchmarks, and goes
//! straight to the terminal.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::repository;

/// What `cargo xtask bench` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run only the benchmarks whose name contains this text
    filter: Option<String>,
}

/// Runs `cargo bench --workspace` with the filter.
///
/// # Errors
/// When cargo cannot be started or a benchmark fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut command = Command::new(repository::cargo());
    command.args(["bench", "--workspace", "--bench", "*"]).current_dir(repository::root());
    if let Some(filter) = &options.filter {
        command.args(["--", filter]);
    }
    let status = command.status().context("cannot start cargo")?;
    ensure!(status.success(), "cargo bench failed: {status}");
    Ok(())
}

//! `cargo xtask sim`: the cluster in one thread, under faults from a seed.
//!
//! Decides how the simulator is built; the runs and the checks are `crates/sim`, whose output goes straight to the
//! terminal and whose exit code is the command's.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{process, repository};

/// Options of `cargo xtask sim`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of seeds
    #[arg(long, default_value_t = 100)]
    seeds: u64,

    /// First seed
    #[arg(long, default_value_t = 0)]
    first: u64,

    /// Of the seeds, run only those whose group has the metadata of a cluster
    #[arg(long)]
    metadata: bool,

    /// Run this seed alone, and print its story; if it fails, also that of a smaller run
    #[arg(long, conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,

    /// Events of a story that are printed
    #[arg(long, default_value_t = 120)]
    story: u64,

    /// Leave out a guard, or each in turn (`all`), and see how many seeds it takes until a check fails
    #[arg(long, value_name = "NAME")]
    sabotage: Option<String>,
}

/// Builds the simulator and runs it.
///
/// # Errors
/// When it cannot be built or started.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut command = Command::new(repository::cargo());
    command.current_dir(repository::root());
    command.args([
        "run",
        "--quiet",
        "--profile",
        repository::SUITE_PROFILE,
        "--package",
        "leveret-sim",
        "--",
    ]);
    command.args(["--story", &options.story.to_string()]);
    match options.seed {
        Some(seed) => command.args(["--seed", &seed.to_string()]),
        None => command.args([
            "--seeds",
            &options.seeds.to_string(),
            "--first",
            &options.first.to_string(),
        ]),
    };
    if options.metadata {
        command.arg("--metadata");
    }
    if let Some(sabotage) = &options.sabotage {
        command.args(["--sabotage", sabotage]);
    }
    process::hand_over(command)
}

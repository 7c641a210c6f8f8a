//! `cargo xtask netsplit`: the nodes of a cluster are parted from each other again and again.
//!
//! Decides what must be there before; the proxies, the clients and the checks are `tests/netsplit`, whose output goes
//! straight to the terminal and whose exit code is the command's.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{process, repository, test};

/// Options of `cargo xtask netsplit`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of runs
    #[arg(long, default_value_t = 10)]
    runs: u32,

    /// Run for so many minutes, and end the run that is under way
    #[arg(long, conflicts_with = "runs")]
    minutes: Option<f64>,

    /// Seed of the first run, to repeat it; each next run has one more
    #[arg(long)]
    seed: Option<u32>,

    /// Number of nodes
    #[arg(long, default_value = "3", value_parser = ["3", "5"])]
    nodes: String,

    /// A network namespace for each node instead of proxies; needs root
    #[arg(long)]
    namespaces: bool,

    /// Also programs with clients of other languages, which recover by themselves, over TLS
    #[arg(long, conflicts_with = "namespaces")]
    programs: bool,

    /// Make a fault by hand at the end of a run: the checks must see it
    #[arg(long, value_name = "NAME")]
    sabotage: Option<String>,
}

/// Builds the broker, and runs clusters of it.
///
/// # Errors
/// When the broker cannot be built or the program cannot be started.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let needs: &[&str] = if options.programs { &["interop-packages"] } else { &[] };
    let test::Prepared { interpreter, broker } = test::prepare(needs)?;
    let mut command = Command::new(interpreter);
    command.arg(repository::root().join("tests/netsplit/netsplit.py")).arg("--leveret").arg(broker);
    command.args(["--nodes", &options.nodes]);
    match options.minutes {
        Some(minutes) => command.args(["--minutes", &minutes.to_string()]),
        None => command.args(["--runs", &options.runs.to_string()]),
    };
    if let Some(seed) = options.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    if options.namespaces {
        command.arg("--namespaces");
    }
    if options.programs {
        command.arg("--programs");
    }
    if let Some(sabotage) = &options.sabotage {
        command.args(["--sabotage", sabotage]);
    }
    process::hand_over(command)
}

//! `cargo xtask powercut`: the power of a broker's disk is cut again and again.
//!
//! Decides what must be there before; the cuts and the checks are `tests/powercut`, whose output goes
//! straight to the terminal and whose exit code is the command's.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{process, repository, test};

/// Options of `cargo xtask powercut`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of cuts
    #[arg(long, default_value_t = 50)]
    cuts: u32,

    /// Seed of the drawn numbers, to repeat a run
    #[arg(long)]
    seed: Option<u64>,
}

/// Builds the broker, installs what is needed, and cuts.
///
/// # Errors
/// When the broker cannot be built or the program cannot be started.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    // Only root can mount; the program prints that.
    if rustix::process::geteuid().is_root() {
        test::install_packages("tests/powercut/packages.txt")?;
    }
    let test::Prepared { interpreter, broker } = test::prepare(&[])?;
    let mut command = Command::new(interpreter);
    command.arg(repository::root().join("tests/powercut/powercut.py"));
    command.arg("--leveret").arg(broker).args(["--cuts", &options.cuts.to_string()]);
    if let Some(seed) = options.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    process::hand_over(command)
}

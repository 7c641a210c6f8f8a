//! `cargo xtask powercut`: the power of a broker's disk is cut again and again.
//!
//! Decides what must be there before; the cuts and the checks are `tests/powercut`, whose output goes
//! straight to the terminal and whose exit code is the command's.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{process, repository, test};

/// What makes and mounts the file systems, as Debian packages.
const PACKAGES: &[&str] = &["xfsprogs", "e2fsprogs", "mount"];

/// What `cargo xtask powercut` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How many cuts
    #[arg(long, default_value_t = 50)]
    cuts: u32,

    /// What is drawn, again
    #[arg(long)]
    seed: Option<u64>,
}

/// Builds the broker, installs what is needed, and cuts.
///
/// # Errors
/// When the broker cannot be built or the program cannot be started.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    // Whoever is not root cannot mount anything either, and is told that by the program.
    let packages = if rustix::process::geteuid().is_root() { PACKAGES } else { &[] };
    let test::Prepared { interpreter, broker, .. } = test::prepare(&[], packages)?;
    let mut command = Command::new(interpreter);
    command.arg(repository::root().join("tests/powercut/powercut.py"));
    command.arg("--leveret").arg(broker).args(["--cuts", &options.cuts.to_string()]);
    if let Some(seed) = options.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    process::hand_over(command)
}

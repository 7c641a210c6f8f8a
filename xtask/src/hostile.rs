//! `cargo xtask hostile`: the hostile battery, measured, as a table in docs/.
//!
//! Builds the broker; the attacks and the figures are `tests/hostile`, which runs here with one worker,
//! so that nothing of its own disturbs what it measures. Its output goes straight to the terminal and
//! its exit code is the command's.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{process, repository, test};

/// Page that the table is written to.
const DOCUMENT: &str = "docs/internals/hostile-peers.md";

/// Builds, attacks, and writes the table.
///
/// # Errors
/// When the broker cannot be built or the program cannot be started.
pub(crate) fn run() -> Result<ExitCode> {
    let test::Prepared { interpreter, broker } = test::prepare(&[])?;
    let root = repository::root();
    let mut command = Command::new(interpreter);
    command.current_dir(root.join("tests/hostile"));
    command.args(["-m", "pytest", "--numprocesses=0", "--quiet", "--all-over-tls"]);
    // pytest takes a bare path for a folder of tests.
    command.arg(format!("--leveret-bin={}", broker.display()));
    command.arg(format!("--report={}", root.join(DOCUMENT).display()));
    process::hand_over(command)
}

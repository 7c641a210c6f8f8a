//! `cargo xtask interop`: the clients of others against Leveret, as a table in docs/.
//!
//! Builds the broker and installs what the clients need from Debian and `PyPI`; everything else is
//! `tests/interop/matrix.py`, whose output goes straight to the terminal and whose exit code is the
//! command's.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{process, repository, test};

/// Page that the table is written to.
const DOCUMENT: &str = "docs/internals/clients.md";

/// Options of `cargo xtask interop`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only these clients or folders of clients; the table is written when all ran
    #[arg(value_name = "CLIENT")]
    clients: Vec<String>,

    /// Clients at a time
    #[arg(long, default_value_t = 3)]
    jobs: usize,

    /// Show what the clients' programs print
    #[arg(long)]
    show: bool,
}

/// Builds, installs, runs the clients, and writes the table.
///
/// # Errors
/// When something cannot be built or installed, or the program cannot be started.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let test::Prepared { interpreter, broker } = test::prepare(&["interop-packages"])?;
    let root = repository::root();
    let mut command = Command::new(interpreter);
    command.arg(root.join("tests/interop/matrix.py")).arg("--leveret").arg(broker);
    command.args(["--jobs", &options.jobs.to_string()]);
    if options.show {
        command.arg("--show");
    }
    if options.clients.is_empty() {
        command.arg("--report").arg(root.join(DOCUMENT));
    }
    command.args(&options.clients);
    process::hand_over(command)
}

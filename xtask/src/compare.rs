//! `cargo xtask compare`: Leveret beside RabbitMQ, as a table in docs/.
//!
//! Builds what is compared; asking and comparing is `tests/compare/compare.py`, whose output goes
//! straight to the terminal and whose exit code is the command's.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{process, repository, test};

/// RabbitMQ's command line tools.
const TOOLS: [&str; 5] = [
    "rabbitmqctl",
    "rabbitmq-diagnostics",
    "rabbitmq-queues",
    "rabbitmq-plugins",
    "rabbitmq-upgrade",
];

/// Options of `cargo xtask compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// `RabbitMQ`'s AMQP address: it is asked anew, and its answers are kept. Without it, those that were kept are used
    #[arg(long, requires = "http")]
    amqp: Option<String>,

    /// The URL of its management API
    #[arg(long, requires = "amqp")]
    http: Option<String>,

    /// Words before the name of each of its tools, such as a directory with a slash at the end
    #[arg(long, default_value = "")]
    tools: String,
}

/// Builds, asks both, and writes the table.
///
/// # Errors
/// When something cannot be built or the program cannot be started.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let test::Prepared { interpreter, broker } = test::prepare(&[])?;
    let ctl = test::prepare_ctl()?;
    let root = repository::root();
    let mut command = Command::new(interpreter);
    command.arg(root.join("tests/compare/compare.py"));
    command.arg("--leveret").arg(broker).arg("--leveretctl").arg(ctl);
    if let (Some(amqp), Some(http)) = (&options.amqp, &options.http) {
        command.args(["--amqp", amqp, "--http", http]);
        for tool in TOOLS {
            command.args([format!("--{tool}"), format!("{}{tool}", options.tools)]);
        }
    }
    command.arg("--write").arg(&root);
    process::hand_over(command)
}

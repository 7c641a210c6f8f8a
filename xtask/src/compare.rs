//! `cargo xtask compare`: Leveret beside a RabbitMQ, as a table in docs/.
//!
//! Builds what is compared; asking and comparing is `tests/compare/compare.py`, whose output goes
//! straight to the terminal and whose exit code is the command's.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{process, repository, test};

/// Page that the table is written to.
const DOCUMENT: &str = "docs/reference/compared-with-rabbitmq.md";

/// Options of `cargo xtask compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// `RabbitMQ`'s AMQP address
    #[arg(long, default_value = "127.0.0.1:5672")]
    amqp: String,

    /// The URL of its management API
    #[arg(long, default_value = "http://127.0.0.1:15672")]
    http: String,

    /// The command that runs its rabbitmqctl
    #[arg(long, default_value = "rabbitmqctl")]
    rabbitmqctl: String,

    /// The command that runs its rabbitmq-diagnostics
    #[arg(long, default_value = "rabbitmq-diagnostics")]
    rabbitmq_diagnostics: String,

    /// The command that runs its rabbitmq-queues
    #[arg(long, default_value = "rabbitmq-queues")]
    rabbitmq_queues: String,
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
    command.args(["--amqp", &options.amqp, "--http", &options.http]);
    command.args(["--rabbitmqctl", &options.rabbitmqctl]);
    command.args(["--rabbitmq-diagnostics", &options.rabbitmq_diagnostics]);
    command.args(["--rabbitmq-queues", &options.rabbitmq_queues]);
    command.arg("--write").arg(root.join(DOCUMENT));
    process::hand_over(command)
}

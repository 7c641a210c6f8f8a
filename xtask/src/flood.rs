//! `cargo xtask flood`: Leveret, and a RabbitMQ beside it, under more clients than anybody wants.
//!
//! Builds the broker; flooding and measuring is `tests/flood/flood.py`, whose output goes straight to
//! the terminal and whose exit code is the command's.

use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::ValueEnum;

use crate::{process, repository, test};

/// Page that the table is written to.
const DOCUMENT: &str = "docs/internals/floods.md";

/// Brokers to flood.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Broker {
    Leveret,
    Rabbitmq,
    Both,
}

impl Broker {
    fn as_str(self) -> &'static str {
        match self {
            Self::Leveret => "leveret",
            Self::Rabbitmq => "rabbitmq",
            Self::Both => "both",
        }
    }
}

/// Options of `cargo xtask flood`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Broker to flood
    #[arg(long, value_enum, default_value = "leveret")]
    broker: Broker,

    /// AMQP address of a `RabbitMQ` that runs on this machine
    #[arg(long, default_value = "127.0.0.1:5672")]
    amqp: String,

    /// The command that runs its rabbitmqctl
    #[arg(long, default_value = "rabbitmqctl")]
    rabbitmqctl: String,

    /// Seconds of each sustained load
    #[arg(long)]
    seconds: Option<u32>,

    /// Idle connections
    #[arg(long)]
    connections: Option<u32>,

    /// Run only these scenarios, listed in tests/flood/README.md
    #[arg(long, value_name = "SCENARIO", value_delimiter = ',')]
    only: Vec<String>,

    /// Run the short version that is a step of `cargo xtask test`
    #[arg(long)]
    small: bool,

    /// Write docs/internals/floods.md
    #[arg(long)]
    report: bool,
}

/// Builds the broker and floods.
///
/// # Errors
/// When the broker cannot be built or the program cannot be started.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let test::Prepared { interpreter, broker } = test::prepare(&[])?;
    let root = repository::root();
    let mut command = Command::new(interpreter);
    command.arg(root.join("tests/flood/flood.py")).arg("--leveret").arg(broker);
    command.args(["--broker", options.broker.as_str(), "--amqp", &options.amqp]);
    command.args(["--rabbitmqctl", &options.rabbitmqctl]);
    for (name, value) in [("--seconds", options.seconds), ("--connections", options.connections)] {
        if let Some(value) = value {
            command.args([name, &value.to_string()]);
        }
    }
    if !options.only.is_empty() {
        command.arg("--only").args(&options.only);
    }
    if options.small {
        command.arg("--small");
    }
    if options.report {
        command.arg("--report").arg(root.join(DOCUMENT));
    }
    process::hand_over(command)
}

//! The command line of `leveret`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{Config, ConfigError};

/// A message broker that every RabbitMQ client works with, exact in time.
#[derive(Parser, Debug)]
#[command(version, about, long_about = None)]
pub(crate) struct Arguments {
    /// Configuration in the format of rabbitmq.conf
    #[arg(long, value_name = "FILE", env = "LEVERET_CONFIG_FILE", global = true)]
    config: Option<PathBuf>,
    /// Where the broker keeps its data [default: ./data]
    #[arg(long, value_name = "DIR", env = "LEVERET_DATA_DIR", global = true)]
    data_dir: Option<PathBuf>,
    /// Where AMQP clients connect, instead of what the configuration says [default: all addresses,
    /// port 5672]
    #[arg(long, value_name = "ADDR:PORT")]
    amqp: Option<SocketAddr>,
    /// Where HTTP clients connect, instead of what the configuration says [default: all addresses,
    /// port 15672]
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    #[command(subcommand)]
    task: Option<Task>,
}

/// What to do instead of running the broker.
#[derive(Subcommand, Clone, Copy, Debug)]
enum Task {
    /// Read the data directory of a broker that does not run, change nothing, and say what is in it
    /// and what is wrong with it
    Check,
}

impl Arguments {
    /// Whether a data directory is to be checked instead of a broker run.
    pub(crate) fn checks(&self) -> bool {
        matches!(self.task, Some(Task::Check))
    }

    /// The configuration: defaults, then the file, then the command line.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        let mut config = match &self.config {
            Some(path) => Config::load(path)?,
            None => Config::default(),
        };
        if let Some(data_dir) = &self.data_dir {
            config.data_dir.clone_from(data_dir);
        }
        if let Some(amqp) = self.amqp {
            config.amqp_listeners = vec![amqp];
        }
        if let Some(http) = self.http {
            config.http_listener = http;
        }
        Ok(config)
    }
}

/// Says what is wrong where there is no log to say it in.
pub(crate) fn fail(error: &dyn std::error::Error) -> ExitCode {
    // Nobody is left to be told when this fails.
    let _ = writeln!(std::io::stderr(), "leveret: {error}");
    ExitCode::FAILURE
}

//! The command line of `leveret`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_mangen::Man;
use server::{CommandLineSetting, Config, ConfigError};

/// A message broker that every RabbitMQ client works with, exact in time.
#[derive(Parser, Debug)]
#[command(version, about, long_about = None)]
pub(crate) struct Arguments {
    /// Configuration in the format of rabbitmq.conf: a file, or a directory with files *.conf; may be
    /// given several times [default: LEVERET_CONFIG_FILE and LEVERET_CONFIG_FILES]
    #[arg(long, value_name = "FILE", global = true)]
    config: Vec<PathBuf>,
    /// Directory of the broker's data [default: LEVERET_DATA_DIR, or ./data]
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,
    /// Address for AMQP clients, instead of the configured one [default: all addresses, port 5672]
    #[arg(long, value_name = "ADDR:PORT")]
    amqp: Option<SocketAddr>,
    /// Address for HTTP clients, instead of the configured one [default: all addresses, port 15672]
    #[arg(long, value_name = "ADDR:PORT")]
    http: Option<SocketAddr>,
    /// Print every key of the configuration with its effective value and its source, without
    /// secrets, and exit
    #[arg(long)]
    print_config: bool,
    #[command(subcommand)]
    task: Option<Task>,
}

/// The task to do instead of running the broker.
#[derive(Subcommand, Clone, Debug)]
enum Task {
    /// Check the data directory of a stopped broker: print a summary and all faults, and change
    /// nothing
    Check,
    /// Print the manual page, for the program man
    Man {
        /// The command that the page is about, instead of the whole program
        command: Option<String>,
    },
}

impl Arguments {
    /// True if the task checks a data directory instead of running the broker.
    pub(crate) fn checks(&self) -> bool {
        matches!(self.task, Some(Task::Check))
    }

    /// The manual page that is to be printed instead of running the broker.
    pub(crate) fn man_page(&self) -> Option<Result<Vec<u8>, String>> {
        let Some(Task::Man { command }) = &self.task else { return None };
        let mut program = Self::command();
        program.build();
        let Some(name) = command else { return Some(rendered(program)) };
        let found = program.find_subcommand(name).cloned();
        Some(found.map_or_else(|| Err(format!("there is no command '{name}'")), rendered))
    }

    /// True if the program prints the configuration instead of running the broker.
    pub(crate) fn prints_config(&self) -> bool {
        self.print_config
    }

    /// The configuration from defaults, files, the environment and the command line, in this order.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        let mut given = Vec::new();
        let mut give = |option, key, value| given.push(CommandLineSetting { option, key, value });
        if let Some(data_dir) = &self.data_dir {
            give("--data-dir", "data_dir", data_dir.to_string_lossy().into_owned());
        }
        if let Some(amqp) = self.amqp {
            give("--amqp", "listeners.tcp.default", amqp.to_string());
        }
        if let Some(http) = self.http {
            give("--http", "management.tcp.ip", http.ip().to_string());
            give("--http", "management.tcp.port", http.port().to_string());
        }
        Config::load(&self.config, &given)
    }
}

/// The manual page of a command.
fn rendered(command: clap::Command) -> Result<Vec<u8>, String> {
    let name = command.get_display_name().unwrap_or("leveret").to_owned();
    let source = concat!("leveret ", env!("CARGO_PKG_VERSION"));
    let mut page = Vec::new();
    let man = Man::new(command).title(name).source(source);
    man.render(&mut page).map_err(|error| error.to_string())?;
    Ok(page)
}

/// Prints a manual page.
pub(crate) fn print_man_page(page: Result<Vec<u8>, String>) -> ExitCode {
    match page.map(|page| std::io::stdout().write_all(&page)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(_)) => ExitCode::FAILURE,
        Err(problem) => {
            print_problem(&problem);
            ExitCode::FAILURE
        }
    }
}

/// Prints the settings in force, in the form of a configuration file.
pub(crate) fn print_config(config: &Config) -> ExitCode {
    match std::io::stdout().write_all(config.lines_in_force().as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Prints the problems of a configuration, each in a line.
pub(crate) fn refuse(error: &ConfigError, code: u8) -> ExitCode {
    error.problems.iter().for_each(|problem| print_problem(problem));
    ExitCode::from(code)
}

/// Prints an error that occurs before the log is started, in one line.
pub(crate) fn fail(error: &dyn std::error::Error, code: u8) -> ExitCode {
    print_problem(&error.to_string());
    ExitCode::from(code)
}

fn print_problem(problem: &str) {
    // There is no other place to report a failure.
    let _ = writeln!(std::io::stderr(), "leveret: {}", line::one_line(problem));
}

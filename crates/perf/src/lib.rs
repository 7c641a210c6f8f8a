//! `leveret-perf`: loads any AMQP 0-9-1 broker and measures its rates and latencies.
//!
//! The program shares only the AMQP codec with Leveret, and measures what any client can observe.
//! Messages are encoded once and sent in batches, deliveries are parsed in place, so that the broker
//! limits a run, not the load generator.
#![allow(clippy::print_stdout, reason = "a program for people: printing is its purpose")]
#![allow(clippy::print_stderr, reason = "a program for people: printing is its purpose")]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "AMQP's methods are a closed list and a client cares for a few of them"
)]

mod broker_process;
mod connection;
mod consumer;
mod dead_letter_check;
mod format;
mod html_report;
mod measurement;
mod message_template;
mod metrics;
mod options;
mod producer;
mod rate;
mod report;
mod runs;
mod target;
mod topology;

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{CommandFactory as _, Parser as _};

use crate::options::{Command, CommandLine};

/// Runs the command line of the process.
pub async fn main() -> ExitCode {
    match run(&CommandLine::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The text may have a reason from the broker.
            eprintln!("error: {}", line::one_line(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

/// Checks arguments, without the name of the program: `cargo xtask bench` does so for its table of
/// loads.
///
/// # Errors
/// The message with which the program would refuse them.
pub fn understands(arguments: &[String]) -> Result<()> {
    let name = std::iter::once("leveret-perf");
    let words = name.chain(arguments.iter().map(String::as_str));
    CommandLine::try_parse_from(words)?.command.check()
}

/// Prints the manual page of the program, or of a command.
fn print_man_page(about: Option<&str>) -> Result<()> {
    let mut program = CommandLine::command();
    program.build();
    let command = match about {
        None => program,
        Some(name) => program.find_subcommand(name).context("there is no such command")?.clone(),
    };
    let name = command.get_display_name().unwrap_or("leveret-perf").to_owned();
    let source = concat!("leveret ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command).title(name).source(source).render(&mut std::io::stdout())?;
    Ok(())
}

async fn run(line: &CommandLine) -> Result<()> {
    if let Command::Man(page) = &line.command {
        return print_man_page(page.command.as_deref());
    }
    line.command.check()?;
    // Opened before the load, so that a report that cannot be written fails before minutes are spent.
    let html = match &line.general.html {
        Some(path) => Some(File::create(path).with_context(|| path.display().to_string())?),
        None => None,
    };
    let outcomes = runs::run(&line.general, &line.command).await?;
    if let Some(mut html) = html {
        html.write_all(html_report::report(&outcomes)?.as_bytes())
            .context("cannot write the report")?;
    }
    if line.general.json {
        println!("{}", serde_json::to_string_pretty(&outcomes)?);
    } else {
        for outcome in &outcomes {
            print!("{outcome}");
        }
    }
    Ok(())
}

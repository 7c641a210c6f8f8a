//! `leveret-perf`: loads any AMQP 0-9-1 broker and measures what it does.
//!
//! Speaks AMQP with the codec of the broker and knows nothing else of Leveret: what is measured is
//! what any client could see. Messages are encoded once and sent in batches, deliveries are parsed in
//! place, so that the generator is not what limits a run.
#![allow(clippy::print_stdout, reason = "a program for people: printing is its purpose")]
#![allow(clippy::print_stderr, reason = "a program for people: printing is its purpose")]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "AMQP's methods are a closed list and a client cares for a few of them"
)]

mod arrivals;
mod broker_process;
mod connection;
mod consumer;
mod figure;
mod html;
mod measure;
mod meters;
mod options;
mod outcome;
mod pace;
mod producer;
mod runs;
mod tape;
mod target;
mod topology;

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser as _;

use crate::options::CommandLine;

/// Does what the command line of the process says, and says how it went.
pub async fn main() -> ExitCode {
    match run(&CommandLine::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the program understands these arguments (without its own name), for whoever makes a table
/// of them.
///
/// # Errors
/// When it would refuse them, with what it would say.
pub fn understands(arguments: &[String]) -> Result<()> {
    let name = std::iter::once("leveret-perf");
    let words = name.chain(arguments.iter().map(String::as_str));
    CommandLine::try_parse_from(words)?.command.check()
}

async fn run(line: &CommandLine) -> Result<()> {
    line.command.check()?;
    // Opened before the load: a report that cannot be written is told before minutes are spent on it.
    let html = match &line.general.html {
        Some(path) => Some(File::create(path).with_context(|| path.display().to_string())?),
        None => None,
    };
    let outcomes = runs::run(&line.general, &line.command).await?;
    if let Some(mut html) = html {
        html.write_all(html::report(&outcomes)?.as_bytes()).context("cannot write the report")?;
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

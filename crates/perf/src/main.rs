//! `leveret-perf`: loads any AMQP 0-9-1 broker and measures what it does.
//!
//! Speaks AMQP with the codec of the broker and knows nothing else of Leveret: what is measured is
//! what any client could see. Messages are encoded once and sent in batches, deliveries are parsed in
//! place, so that the generator is not what limits a run.
#![allow(clippy::print_stdout, reason = "a program for people: printing is its purpose")]
#![allow(clippy::print_stderr, reason = "a program for people: printing is its purpose")]

mod arrivals;
mod broker_process;
mod connection;
mod consumer;
mod html;
mod measure;
mod meters;
mod options;
mod outcome;
mod producer;
mod runs;
mod tape;
mod target;
mod topology;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser as _;

use crate::options::CommandLine;

#[tokio::main]
async fn main() -> ExitCode {
    match run(&CommandLine::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(line: &CommandLine) -> Result<()> {
    let outcomes = runs::run(&line.common, &line.command).await?;
    if let Some(path) = &line.common.html {
        fs::write(path, html::report(&outcomes)?).with_context(|| path.display().to_string())?;
    }
    if line.common.json {
        println!("{}", serde_json::to_string_pretty(&outcomes)?);
    } else {
        for outcome in &outcomes {
            print!("{outcome}");
        }
    }
    Ok(())
}

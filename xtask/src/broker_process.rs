//! A `leveret` process on a free port, with a data folder of its own.
//!
//! Knows its command line, the line it prints when it listens, and that SIGTERM ends it with exit
//! code 0. Its output goes to a log, which is also where the line is read.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::Process;

/// Words before the address in the line that the broker prints when it listens.
const START_LINE: &str = "AMQP on ";

/// Longest time from start to listening.
const START_TIME_MAX: Duration = Duration::from_mins(2);

/// Longest time from SIGTERM to the end.
const STOP_TIME_MAX: Duration = Duration::from_mins(2);

/// Interval between two looks for the start line in the log.
const READ_INTERVAL: Duration = Duration::from_millis(20);

/// A broker that listens.
#[derive(Debug)]
pub(crate) struct BrokerProcess {
    process: Process,
    /// Address that it listens on: `127.0.0.1:40000`.
    pub(crate) amqp_address: String,
}

impl BrokerProcess {
    /// Starts the broker and waits until it listens; its data folder is empty and beside the log.
    ///
    /// # Errors
    /// When it ends or does not say its address in time.
    pub(crate) fn start(binary: &Path, log: &Path) -> Result<Self> {
        let data = log.with_extension("data");
        if data.exists() {
            fs::remove_dir_all(&data)
                .with_context(|| format!("cannot empty {}", data.display()))?;
        }
        let mut command = Command::new(binary);
        command.arg("--data-dir").arg(&data);
        command.args(["--amqp", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        let mut process = Process::start(command, log)?;
        let start = Instant::now();
        loop {
            // Ask first: what the process printed before its end is complete then.
            let end = process.try_wait()?;
            if let Some(amqp_address) = address(&read(log)?) {
                return Ok(Self { process, amqp_address });
            }
            if let Some(status) = end {
                bail!("leveret ended before it listened: {status}");
            }
            if start.elapsed() > START_TIME_MAX {
                bail!("leveret did not listen within {} s", START_TIME_MAX.as_secs());
            }
            thread::sleep(READ_INTERVAL);
        }
    }

    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Stops the broker.
    ///
    /// # Errors
    /// When it is gone already, does not end in time, or ends with another code than 0.
    pub(crate) fn stop(self) -> Result<()> {
        let status = self.process.terminate(STOP_TIME_MAX)?;
        ensure!(status.success(), "leveret did not end as it should on SIGTERM: {status}");
        Ok(())
    }
}

fn read(log: &Path) -> Result<String> {
    let bytes = fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The address in the start line, once the whole line is there.
fn address(log: &str) -> Option<String> {
    let complete = log.rsplit_once('\n')?.0;
    let line = complete.lines().find_map(|line| line.split_once(START_LINE))?.1;
    let end = line.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':');
    Some(line[..end.unwrap_or(line.len())].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_stands_in_the_start_line() {
        let log =
            "$ leveret --amqp 127.0.0.1:0\nINFO AMQP on 127.0.0.1:4711, HTTP on 127.0.0.1:1\n";
        assert_eq!(address(log).as_deref(), Some("127.0.0.1:4711"));
    }

    #[test]
    fn half_a_line_has_no_address() {
        assert_eq!(address("AMQP on 127.0.0.1:47"), None);
        assert_eq!(address("opening the log\nAMQP on 127.0.0.1:47"), None);
        assert_eq!(address("opening the log\n"), None);
    }
}

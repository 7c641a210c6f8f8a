//! Resources of the broker's process, if it runs on this machine and its id is given.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;

/// Clock ticks of `/proc` per second: 100 on every platform of Linux.
const TICKS_PER_S: u64 = 100;

/// A process on this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BrokerProcess(pub(crate) u32);

/// Resources that a process has used so far.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Usage {
    /// Time on a processor, in user and in kernel space.
    #[serde(serialize_with = "seconds")]
    pub(crate) cpu: Duration,
    /// Resident memory now, in bytes.
    pub(crate) resident_bytes: u64,
}

fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

impl Usage {
    /// Processor time since `earlier`, and the current memory.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { cpu: self.cpu.saturating_sub(earlier.cpu), ..self }
    }
}

impl BrokerProcess {
    /// The resources that the process has used until now.
    ///
    /// # Errors
    /// If there is no such process.
    pub(crate) fn usage(&self) -> Result<Usage> {
        let file = |name: &str| {
            let path = format!("/proc/{}/{name}", self.0);
            fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
        };
        let cpu = cpu(&file("stat")?).context("cannot understand /proc/PID/stat")?;
        let resident = resident_bytes(&file("status")?);
        Ok(Usage { cpu, resident_bytes: resident.context("cannot understand /proc/PID/status")? })
    }
}

/// Fields 14 and 15, counted behind the name, which may contain anything.
fn cpu(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    let ticks = times.next()?.ok()? + times.next()?.ok()?;
    Some(Duration::from_millis(ticks * 1000 / TICKS_PER_S))
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_name_with_parentheses_is_skipped() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 1 0 9 9 9";
        assert_eq!(cpu(stat), Some(Duration::from_millis(1750)));
    }

    #[test]
    fn resident_memory_is_in_bytes() {
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t  12 kB\n"), Some(12_288));
        assert_eq!(resident_bytes("Name:\tx\n"), None);
    }
}

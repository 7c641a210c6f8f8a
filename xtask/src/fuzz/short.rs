//! The fuzzing of a test run: the seeds of every target, and a moment beyond them.

use std::fs;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context as _, Result, anyhow, ensure};

use super::campaign::{Campaign, Coverage};
use super::report::Report;
use super::targets::TARGETS;
use crate::place::Place;

/// Time of each target in a test run beyond its seeds.
const TEST_SECONDS: u64 = 3;

/// Targets and inputs of a short run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortRun {
    pub(crate) targets: usize,
    pub(crate) executions: u64,
}

/// Plays the seeds of every target and fuzzes it for a moment, for `cargo xtask test`: as many targets at
/// a time as there are processors.
///
/// # Errors
/// When a target has failed, or cannot be built here.
pub(crate) fn short_run(place: &Place<'_>) -> Result<ShortRun> {
    let scratch = place.target.join("xtask").join("fuzz-test");
    if scratch.exists() {
        // A test begins with the seeds and nothing else.
        fs::remove_dir_all(&scratch)
            .with_context(|| format!("cannot empty {}", scratch.display()))?;
    }
    let campaign = Campaign::new(place, TEST_SECONDS, &scratch, Coverage::Workspace)?;
    let next = Mutex::new(TARGETS.iter());
    let worker = || -> Result<u64> {
        let mut executions = 0;
        loop {
            let target = next.lock().ok().and_then(|mut next| next.next());
            let Some(target) = target else { return Ok(executions) };
            let Report { finding, executions: more, .. } = campaign.run(target)?;
            ensure!(finding.is_none(), "{}: {}", target.name, finding.unwrap_or_default());
            executions += more;
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let executions = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let ends = workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| anyhow!("a worker has panicked"))?);
        // Every worker is waited for, also behind one that failed.
        ends.collect::<Vec<Result<u64>>>().into_iter().sum::<Result<u64>>()
    })?;
    Ok(ShortRun { targets: TARGETS.len(), executions })
}

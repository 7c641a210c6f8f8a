//! Building the targets and running one of them.
//!
//! Knows cargo-fuzz and libFuzzer's options. What a target finds goes to `fuzz/artifacts`, new inputs
//! that reach something new to a folder below the target folder; the seeds stay as they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::report::Report;
use super::targets::Target;
use super::time_max;
use crate::process::{self, Process};
use crate::test::Place;

/// Longest time that building all targets may take.
const BUILD_SECONDS_MAX: u64 = 1200;

/// Memory that a target may have, in MiB: nothing that comes in is worth more.
const MEMORY_MIB_MAX: u32 = 512;

/// Longest time for one input, in seconds: thousands of times what one takes, as other programs may have
/// the processors.
const INPUT_SECONDS_MAX: u32 = 10;

/// Targets that are built, and how they are run.
#[derive(Debug)]
pub(super) struct Campaign<'a> {
    place: &'a Place<'a>,
    seconds: u64,
    /// Where inputs go that reach something new, by target.
    found: PathBuf,
}

impl<'a> Campaign<'a> {
    /// Builds all targets; each will run so many seconds and keep new inputs in a folder in `found`.
    ///
    /// # Errors
    /// When they cannot be built.
    pub(super) fn new(place: &'a Place<'a>, seconds: u64, found: &Path) -> Result<Self> {
        let campaign = Self { place, seconds, found: found.to_owned() };
        let mut build = campaign.cargo_fuzz("build");
        campaign.add_build_options(&mut build);
        process::run(build, place.log, time_max(BUILD_SECONDS_MAX))?;
        Ok(campaign)
    }

    /// Runs one target.
    ///
    /// # Errors
    /// When it cannot be run; what it finds is in the report.
    pub(super) fn run(&self, target: &Target) -> Result<Report> {
        let Target { name, input_bytes_max } = target;
        let found = self.found.join(name);
        fs::create_dir_all(&found).with_context(|| format!("cannot create {}", found.display()))?;
        let mut command = self.cargo_fuzz("run");
        self.add_build_options(&mut command);
        command.arg(name).arg(&found).arg(self.folder().join("corpus").join(name));
        command.args(["--", "-print_final_stats=1"]);
        command.arg(format!("-max_total_time={}", self.seconds));
        command.arg(format!("-max_len={input_bytes_max}"));
        // Seeds are as long as what they are about: nothing has to grow first.
        command.arg("-len_control=0");
        command.arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"));
        command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
        let dictionary = self.folder().join("dictionaries").join(format!("{name}.dict"));
        if dictionary.is_file() {
            command.arg(format!("-dict={}", dictionary.display()));
        }
        // Of many nodes one after the other each would leave memory in arenas of its own.
        command.env("MALLOC_ARENA_MAX", "1");
        let before = fs::metadata(self.place.log).map_or(0, |metadata| metadata.len());
        let status = Process::start(command, self.place.log)?.wait(time_max(self.seconds))?;
        let log = fs::read(self.place.log).context("the log is gone")?;
        let printed = log.get(usize::try_from(before)?..).unwrap_or_default();
        let report = Report::read(&String::from_utf8_lossy(printed), self.seconds);
        ensure!(status.success() || report.finding.is_some(), "{name} could not be run: {status}");
        Ok(report)
    }

    fn folder(&self) -> PathBuf {
        self.place.root.join("fuzz")
    }

    fn cargo_fuzz(&self, task: &str) -> Command {
        let tools = self.place.target.join("xtask").join("tools").join("bin");
        let mut command = Command::new(tools.join("cargo-fuzz"));
        command.args(["fuzz", task]).current_dir(self.place.root);
        command.env("CARGO_TERM_COLOR", "never");
        command
    }

    /// No sanitizer: there is no unsafe code that one could watch, and it would need a nightly toolchain.
    fn add_build_options(&self, command: &mut Command) {
        command.args(["--sanitizer", "none", "--target-dir"]);
        command.arg(self.place.target.join("fuzz"));
    }
}

//! Building the targets and running one of them.
//!
//! Knows how a program with coverage is compiled, and the options of libFuzzer. Inputs that make a target
//! fail go to `fuzz/artifacts`, inputs that reach new code to a folder below the target folder; the seeds
//! stay as they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::report::Report;
use super::targets::Target;
use crate::place::Place;
use crate::process::{self, Process};
use crate::repository;

/// Longest time that building all targets may take.
const BUILD_SECONDS_MAX: u64 = 1200;

/// Memory of a target, in MiB: more than any input is worth.
const MEMORY_MIB_MAX: u32 = 512;

/// Longest time for one input, in seconds: thousands of times its usual time, as other programs may have
/// the processors.
const INPUT_SECONDS_MAX: u32 = 10;

/// Program of all targets.
const PROGRAM: &str = "fuzz-target";

/// Compiler flags that make a program report to libFuzzer the code it reaches.
const COVERAGE_FLAGS: &str = include_str!("../../../fuzz/coverage-flags.txt");

/// Crates that are run by the million.
const HOT: &[&str] = &["leveret-amqp", "leveret-broker", "leveret-session", "leveret-storage"];

/// Settings of dependencies that long runs spend their time in.
const OPTIMISED_DEPENDENCIES: &[&str] = &[
    "profile.dev.package.bytes.opt-level=1",
    "profile.dev.package.fancy-regex.opt-level=1",
    "profile.dev.package.hashbrown.opt-level=1",
    "profile.dev.package.regex-automata.opt-level=1",
    "profile.dev.package.serde_json.opt-level=1",
    "profile.dev.package.slotmap.opt-level=1",
    "profile.dev.package.smallvec.opt-level=1",
];

/// Targets that are built, and how they are run.
#[derive(Debug)]
pub(crate) struct Campaign<'a> {
    place: &'a Place<'a>,
    /// Folder for inputs that reach new code, by target.
    found: PathBuf,
    /// The built program.
    program: PathBuf,
}

impl<'a> Campaign<'a> {
    /// Builds the targets; each will keep new inputs in a folder in `found`.
    ///
    /// # Errors
    /// When they cannot be built.
    pub(crate) fn new(place: &'a Place<'a>, found: &Path) -> Result<Self> {
        // With a platform named, build scripts and procedural macros are compiled without the flags.
        let (target, platform) = (place.target.join("fuzz"), host_triple()?);
        let flags: Vec<&str> = COVERAGE_FLAGS.lines().collect();
        let mut build = Command::new(repository::cargo());
        build.args(["build", "--package", "leveret-fuzz", "--bin", PROGRAM]);
        build.args(["--features", "libfuzzer", "--target", &platform]);
        build.arg("--target-dir").arg(&target);
        for package in HOT {
            build.arg("--config").arg(format!("profile.dev.package.{package}.opt-level=2"));
        }
        for setting in OPTIMISED_DEPENDENCIES {
            build.args(["--config", setting]);
        }
        build.env("RUSTFLAGS", flags.join(" "));
        build.env("CARGO_INCREMENTAL", "0").env("CARGO_TERM_COLOR", "never");
        build.current_dir(place.root);
        process::run(build, place.log, time_max(BUILD_SECONDS_MAX))?;
        let program = target.join(platform).join("debug").join(PROGRAM);
        Ok(Self { place, found: found.to_owned(), program })
    }

    /// Runs one target for `seconds`, with its output in a log of its own.
    ///
    /// # Errors
    /// When it cannot be run; a failure that it finds is in the report.
    pub(crate) fn run(&self, target: &Target, seconds: u64) -> Result<Report> {
        let Target { name, input_bytes_max } = target;
        let folder = self.place.root.join("fuzz");
        let (found, artifacts) = (self.found.join(name), folder.join("artifacts").join(name));
        for folder in [&found, &artifacts] {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let mut command = Command::new(&self.program);
        command.env("FUZZ_TARGET", name);
        command.arg(&found).arg(folder.join("corpus").join(name)).arg("-print_final_stats=1");
        command.arg(format!("-artifact_prefix={}/", artifacts.display()));
        command.arg(format!("-max_total_time={}", seconds));
        command.arg(format!("-max_len={input_bytes_max}"));
        // Seeds are as long as the inputs they stand for: none has to grow first.
        command.arg("-len_control=0");
        command.arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"));
        command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
        let dictionary = folder.join("dictionaries").join(format!("{name}.dict"));
        if dictionary.is_file() {
            command.arg(format!("-dict={}", dictionary.display()));
        }
        // Many nodes, one after the other, would each leave memory in arenas of their own.
        command.env("MALLOC_ARENA_MAX", "1").current_dir(self.place.root);
        let log = self.place.log.with_extension(format!("{name}.log"));
        fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
        let status = Process::start(command, &log)?.wait(time_max(seconds))?;
        let printed = fs::read(&log).context("the log is gone")?;
        let again = format!("FUZZ_TARGET={name} {}", self.program.display());
        let report = Report::read(&String::from_utf8_lossy(&printed), seconds, &again);
        ensure!(
            status.success() || report.finding.is_some(),
            "{name} could not be run: {status}; {}",
            log.display()
        );
        Ok(report)
    }
}

/// Name of the platform that programs are built for here: `x86_64-unknown-linux-gnu`.
fn host_triple() -> Result<String> {
    let text = repository::ask_compiler(&["-vV"])?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

/// Longest time for a run of `seconds`: machines are slow and busy.
fn time_max(seconds: u64) -> Duration {
    Duration::from_secs(seconds * 2) + Duration::from_mins(10)
}

//! Building the targets and running one of them.
//!
//! Knows the compiler flags of coverage and the options of libFuzzer. Inputs that make a target fail go to
//! `fuzz/artifacts`, inputs that reach new code to a folder below the target folder; the seeds stay as they
//! are.

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

/// Longest time for a question to the compiler.
const QUESTION_TIME_MAX: Duration = Duration::from_secs(30);

/// Memory of a target, in MiB: more than any input is worth.
const MEMORY_MIB_MAX: u32 = 512;

/// Longest time for one input, in seconds: thousands of times its usual time, as other programs may have
/// the processors.
const INPUT_SECONDS_MAX: u32 = 10;

/// Compiler flags that make a program report to libFuzzer the code it reaches: those of cargo-fuzz.
///
/// No sanitizer: the workspace has no unsafe code, and a sanitizer needs a nightly toolchain.
const COVERAGE_FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-sanitizer-coverage-stack-depth",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "--cfg=fuzzing",
];

/// Targets that are built, and how they are run.
#[derive(Debug)]
pub(super) struct Campaign<'a> {
    place: &'a Place<'a>,
    seconds: u64,
    /// Folder for inputs that reach new code, by target.
    found: PathBuf,
    /// Folder of the built targets.
    programs: PathBuf,
}

impl<'a> Campaign<'a> {
    /// Builds all targets; each will run for `seconds` and keep new inputs in a folder in `found`.
    ///
    /// # Errors
    /// When they cannot be built.
    pub(super) fn new(place: &'a Place<'a>, seconds: u64, found: &Path) -> Result<Self> {
        let target = place.target.join("fuzz");
        let triple = host_triple()?;
        let mut build = Command::new(repository::cargo());
        build.args(["build", "--release", "--bins"]).arg("--manifest-path");
        build.arg(place.root.join("fuzz").join("Cargo.toml")).arg("--target-dir").arg(&target);
        // With a target named, build scripts are compiled without the flags below.
        build.args(["--target", &triple]);
        build.env("RUSTFLAGS", COVERAGE_FLAGS.join(" ")).env("CARGO_TERM_COLOR", "never");
        build.current_dir(place.root);
        process::run(build, place.log, time_max(BUILD_SECONDS_MAX))?;
        let programs = target.join(triple).join("release");
        Ok(Self { place, seconds, found: found.to_owned(), programs })
    }

    /// Runs one target, with its output in a log of its own.
    ///
    /// # Errors
    /// When it cannot be run; a failure that it finds is in the report.
    pub(super) fn run(&self, target: &Target) -> Result<Report> {
        let Target { name, input_bytes_max } = target;
        let folder = self.place.root.join("fuzz");
        let (found, artifacts) = (self.found.join(name), folder.join("artifacts").join(name));
        for folder in [&found, &artifacts] {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let program = self.programs.join(name);
        let mut command = Command::new(&program);
        command.arg(&found).arg(folder.join("corpus").join(name)).arg("-print_final_stats=1");
        command.arg(format!("-artifact_prefix={}/", artifacts.display()));
        command.arg(format!("-max_total_time={}", self.seconds));
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
        let status = Process::start(command, &log)?.wait(time_max(self.seconds))?;
        let printed = fs::read(&log).context("the log is gone")?;
        let report = Report::read(&String::from_utf8_lossy(&printed), self.seconds, &program);
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
    let mut command = Command::new("rustc");
    command.arg("-vV").current_dir(repository::root());
    let text = process::output(command, QUESTION_TIME_MAX)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

/// Longest time for a run of `seconds`: machines are slow and busy.
fn time_max(seconds: u64) -> Duration {
    Duration::from_secs(seconds * 2) + Duration::from_mins(10)
}

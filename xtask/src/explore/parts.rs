//! The parts that explore, and a turn of each: its command, with numbers that were not there before.

use std::env;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::finding::{Finding, Reader};
use crate::fuzz::{Campaign, TARGETS};
use crate::place::Place;
use crate::process::Process;
use crate::{process, repository, test};

/// Longest turn: it hangs then, or is more than a turn.
const TURN_TIME_MAX: Duration = Duration::from_hours(1);

/// Longest time for building a part.
const BUILD_TIME_MAX: Duration = Duration::from_hours(1);

/// Seconds of a target in one turn, at least.
const TARGET_SECONDS_MIN: u64 = 5;

/// Times the changed inputs of the test command.
const FUZZ_TIMES: &str = "5";

/// Cases of each property test: some times as many as most have in the test command.
const PROPERTY_CASES: &str = "1024";

/// Seeds of simulated groups in one turn, and of simulated clusters.
const SEEDS: &str = "100";

/// Packages with property tests.
const WITH_PROPERTIES: &[&str] = &[
    "leveret-amqp",
    "leveret-broker",
    "leveret-line",
    "leveret-management",
    "leveret-replica",
    "leveret-replication",
    "leveret-session",
    "leveret-server",
];

/// A kind of tests that draws its input.
#[derive(Debug)]
pub(super) struct Part {
    /// Name that people type; of a loop or a suite, that of its step.
    pub(super) name: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, Eq, PartialEq)]
enum Kind {
    /// A target of the fuzzer, guided by coverage; each turn has the next one.
    Campaign,
    /// Changes of seeds, for all targets.
    Changes,
    /// Property tests.
    Properties,
    /// Simulated groups of members.
    Groups,
    /// Simulated clusters.
    Clusters,
    /// The program of a step of the test command.
    Loop,
    /// The tests that draw, of the suite of a step.
    Drawn,
}

const fn part(name: &'static str, kind: Kind) -> Part {
    Part { name, kind }
}

/// All parts, quick turns first. Loops and suites have the names of their steps.
pub(super) const PARTS: &[Part] = &[
    part("fuzz", Kind::Campaign),
    part("changes", Kind::Changes),
    part("sim", Kind::Clusters),
    part("replication", Kind::Groups),
    part("netsplit", Kind::Loop),
    part("crash", Kind::Loop),
    part("cluster-crash", Kind::Loop),
    part("backup", Kind::Loop),
    part("redrive", Kind::Loop),
    part("hostile", Kind::Drawn),
    part("properties", Kind::Properties),
    part("faults", Kind::Drawn),
];

/// Result of a turn.
pub(super) struct Turn {
    /// The command, with the numbers that repeat it.
    pub(super) what: String,
    pub(super) findings: Vec<Finding>,
}

/// Programs and folders for turns.
pub(super) struct Workshop<'a> {
    /// Folders, and the log of builds; turns have theirs beside it.
    pub(super) place: &'a Place<'a>,
    pub(super) interpreter: PathBuf,
    pub(super) broker: PathBuf,
    /// Time that a part has before all others have had theirs.
    pub(super) share: Duration,
    /// The targets of the fuzzer, once they are built.
    pub(super) campaign: Option<Campaign<'a>>,
    /// Turns of the campaign so far.
    pub(super) turn: usize,
}

impl Workshop<'_> {
    /// Builds what the parts need; the parts that can run here.
    ///
    /// # Errors
    /// When a build fails.
    pub(super) fn build(&mut self, parts: &[&'static Part]) -> Result<Vec<&'static Part>> {
        let mut able = Vec::new();
        for part in parts {
            let build = match part.kind {
                Kind::Campaign if !has_compiler() => {
                    println!("fuzz is left out: there is no C++ compiler");
                    continue;
                }
                Kind::Campaign => {
                    // Inputs that reach new code, of earlier campaigns, too.
                    let found = self.place.target.join("xtask").join("fuzz");
                    self.campaign = Some(Campaign::new(self.place, &found)?);
                    None
                }
                Kind::Changes => Some(vec!["test", "--no-run", "--package", "leveret-fuzz"]),
                Kind::Properties => Some([&["test", "--no-run"], &*packages()].concat()),
                Kind::Groups => Some(vec!["test", "--no-run", "--package", "leveret-replication"]),
                Kind::Clusters => {
                    Some(vec!["build", "--profile", "suite", "--package", "leveret-sim"])
                }
                Kind::Loop | Kind::Drawn => None,
            };
            if let Some(arguments) = build {
                process::run(self.cargo(&arguments), self.place.log, BUILD_TIME_MAX)?;
            }
            able.push(*part);
        }
        Ok(able)
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(repository::cargo());
        command.args(arguments).current_dir(self.place.root).env("CARGO_TERM_COLOR", "never");
        command
    }

    /// Runs a part once.
    ///
    /// # Errors
    /// When it cannot be run, or does not end; what it finds is in the result.
    pub(super) fn take_turn(&mut self, part: &Part) -> Result<Turn> {
        let number = fresh();
        let seed = number.to_string();
        let reader = match part.kind {
            Kind::Campaign => return self.fuzz(),
            Kind::Changes => Reader::Changes,
            Kind::Properties => Reader::Properties,
            Kind::Groups | Kind::Clusters => Reader::Seeds(part.name),
            Kind::Loop => Reader::Loop(part.name),
            Kind::Drawn => Reader::Drawn(part.name),
        };
        let (command, again) = self.command(part, &seed)?;
        let log = self.place.log.with_file_name(format!("explore-{}.log", part.name));
        fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
        let status = Process::start(command, &log)?.wait(TURN_TIME_MAX)?;
        let mut findings = Vec::new();
        if !status.success() {
            let kept = log.with_file_name(format!("explore-{}-{seed}.log", part.name));
            fs::rename(&log, &kept).with_context(|| format!("lost {}", log.display()))?;
            let printed = fs::read(&kept).context("the log is gone")?;
            findings = reader.read(&String::from_utf8_lossy(&printed), number, &again, &kept);
        }
        Ok(Turn { what: again, findings })
    }

    /// The command of a turn, and how a person types it.
    fn command(&self, part: &Part, seed: &str) -> Result<(Command, String)> {
        let (variables, arguments): (Vec<(&str, &str)>, Vec<&str>) = match part.kind {
            Kind::Campaign => (vec![], vec![]),
            Kind::Changes => (
                vec![("FUZZ_RANDOM", seed), ("FUZZ_TIMES", FUZZ_TIMES)],
                vec!["test", "--package", "leveret-fuzz", "--test", "seeds"],
            ),
            Kind::Properties => (
                vec![("PROPTEST_RNG_SEED", seed), ("PROPTEST_CASES", PROPERTY_CASES)],
                [&["test", "--no-fail-fast"], &*packages()].concat(),
            ),
            Kind::Groups => (
                vec![("REPLICATION_FIRST_SEED", seed), ("REPLICATION_SEEDS", SEEDS)],
                vec!["test", "--package", "leveret-replication", "members_never"],
            ),
            Kind::Clusters => (
                vec![],
                ["run --profile suite --package leveret-sim -- --seeds", SEEDS, "--first", seed]
                    .iter()
                    .flat_map(|words| words.split(' '))
                    .collect(),
            ),
            Kind::Loop | Kind::Drawn => return self.suite(part, seed),
        };
        let mut command = self.cargo(&arguments);
        command.envs(variables.iter().copied());
        let set: String =
            variables.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        Ok((command, format!("{set}cargo {}", arguments.join(" "))))
    }

    /// The command of a step of the test command, with a seed.
    fn suite(&self, part: &Part, seed: &str) -> Result<(Command, String)> {
        let (of, arguments) = test::suite(part.name).context("there is no such step")?;
        let mut command = Command::new(&self.interpreter);
        let python = self.interpreter.display();
        let mut words: Vec<&str> = Vec::new();
        if part.kind == Kind::Loop {
            command.arg(self.place.root.join(of)).arg("--leveret").arg(&self.broker);
            command.current_dir(self.place.root);
            words.extend(arguments);
            words.extend(["--seed", seed]);
            let again =
                format!("{python} {of} --leveret {} {}", self.broker.display(), words.join(" "));
            command.args(words);
            return Ok((command, again));
        }
        command.args(["-m", "pytest", "--color=no", "--broker=leveret"]);
        command.env("LEVERET_BIN", &self.broker).current_dir(self.place.root.join(of));
        words.extend(arguments);
        words.extend(["--drawn", "--seed", seed]);
        let again = format!(
            "(cd {of} && LEVERET_BIN={} {python} -m pytest {})",
            self.broker.display(),
            words.join(" ")
        );
        command.args(words);
        Ok((command, again))
    }

    /// A turn of the campaign: the next target, for its part of a share.
    fn fuzz(&mut self) -> Result<Turn> {
        let target = &TARGETS[self.turn % TARGETS.len()];
        self.turn += 1;
        let count = u64::try_from(TARGETS.len()).unwrap_or(u64::MAX);
        let seconds = (self.share.as_secs() / count).max(TARGET_SECONDS_MIN);
        let campaign = self.campaign.as_ref().context("the targets are not built")?;
        let report = campaign.run(target, seconds)?;
        let findings = report.finding.iter().map(|text| Finding::of_campaign(target.name, text));
        Ok(Turn { what: format!("{} {report}", target.name), findings: findings.collect() })
    }
}

/// The packages with property tests, as arguments of cargo.
fn packages() -> Vec<&'static str> {
    WITH_PROPERTIES.iter().flat_map(|package| ["--package", package]).collect()
}

/// A number that no turn had before: 32 bits, which is a seed for all.
fn fresh() -> u64 {
    RandomState::new().hash_one(()) >> 32
}

/// True if libFuzzer can be compiled here.
fn has_compiler() -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| folder.join("c++").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_and_suites_are_steps_of_the_test_command() {
        for part in PARTS.iter().filter(|part| matches!(part.kind, Kind::Loop | Kind::Drawn)) {
            let (of, _) = test::suite(part.name).unwrap();
            assert_eq!(part.kind == Kind::Loop, of.ends_with(".py"), "{of}");
        }
    }

    #[test]
    fn packages_with_property_tests_are_those_that_depend_on_proptest() {
        let metadata = repository::metadata(false).unwrap();
        let packages = metadata["packages"].as_array().unwrap().iter();
        let with = packages.filter(|package| {
            package["dependencies"].as_array().unwrap().iter().any(|it| it["name"] == "proptest")
        });
        let mut with: Vec<&str> = with.map(|package| package["name"].as_str().unwrap()).collect();
        with.sort_unstable();
        let mut listed = WITH_PROPERTIES.to_vec();
        listed.sort_unstable();
        assert_eq!(with, listed);
    }
}

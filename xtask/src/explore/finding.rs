//! Findings of a turn: read from its log, and kept where the test command plays them.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::test::failed_test;

/// Lines of a log that say what was found.
const TOLD_LINES_MAX: usize = 6;

/// More seeds than one turn has.
const SEEDS_OF_A_TURN_MAX: u64 = 1000;

/// Seeds that the test command plays besides its own.
const SEEDS: &str = "tests/seeds.txt";

/// A fault that a turn has shown.
#[derive(Debug)]
pub(super) struct Finding {
    /// The part, or the target, and the words of its log.
    what: String,
    /// The command that repeats it.
    again: String,
    /// Is `None` where the tests keep it themselves.
    pub(super) kept: Option<Kept>,
}

/// The seed or the input of a finding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Kept {
    /// A line of `tests/seeds.txt`: the loop or the test, and the seed.
    Seed(String),
    /// An input of a target of the fuzzer.
    Input { target: String, file: PathBuf },
}

impl Finding {
    /// A turn that could not be run, or did not end.
    pub(super) fn of_error(part: &str, error: &anyhow::Error) -> Self {
        Self { what: format!("{part}: {error:#}"), again: String::from("none"), kept: None }
    }

    /// The finding that libFuzzer has told of a target.
    pub(super) fn of_campaign(target: &str, said: &str) -> Self {
        let behind = |word: &str| {
            let line = said.lines().find_map(|line| line.trim().strip_prefix(word));
            line.map(|rest| rest.trim().to_owned())
        };
        let kept = behind("input:")
            .map(|file| Kept::Input { target: target.to_owned(), file: PathBuf::from(file) });
        let what = said.lines().map(str::trim).take(3).collect::<Vec<_>>().join("; ");
        Self {
            what: format!("{target}: {what}"),
            again: behind("again:").unwrap_or_default(),
            kept,
        }
    }

    /// Keeps it in the repository; the place, if it is not kept already.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn keep(&self, root: &Path) -> Result<Option<String>> {
        match &self.kept {
            None => Ok(None),
            Some(Kept::Seed(line)) => {
                let file = root.join(SEEDS);
                let text = fs::read_to_string(&file).context("there are no seeds")?;
                if !text
                    .lines()
                    .any(|known| known.split('#').next().unwrap_or_default().trim() == line)
                {
                    let mut seeds = OpenOptions::new().append(true).open(&file)?;
                    writeln!(seeds, "{line}").context("cannot write the seeds")?;
                }
                Ok(Some(format!("{SEEDS}: {line}")))
            }
            Some(Kept::Input { target, file }) => {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                let name = name.rsplit('-').next().unwrap_or_default();
                let folder = root.join("fuzz").join("corpus").join(target);
                let input = fs::read(file).context("the input is gone")?;
                for known in fs::read_dir(&folder).context("there is no corpus")? {
                    let known = known?.path();
                    if fs::read(&known).is_ok_and(|bytes| bytes == input) {
                        return Ok(Some(known.display().to_string()));
                    }
                }
                let place = folder.join(format!("found-{name}"));
                fs::write(&place, input).context("cannot keep the input")?;
                Ok(Some(place.display().to_string()))
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FOUND  {}\n  again: {}", self.what, self.again)
    }
}

/// Readers of the log of a turn that has failed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reader {
    /// Of the test `seeds`: a line for each input that has failed.
    Changes,
    /// Of cargo: a line for each test. Property tests keep their cases themselves.
    Properties,
    /// Of a simulation: `seed N` in the line of the violation.
    Seeds(&'static str),
    /// Of a loop: `seed N:` in the line of the fault.
    Loop(&'static str),
    /// Of pytest: a line for each test.
    Drawn(&'static str),
}

impl Reader {
    /// The findings in a log: at least one.
    pub(super) fn read(self, log: &str, seed: u64, again: &str, file: &Path) -> Vec<Finding> {
        let found: Vec<Finding> = match self {
            Self::Changes => log.lines().filter_map(|line| changed_input(line, again)).collect(),
            Self::Properties => {
                let failed = |line: &str| {
                    let name = failed_test(line)?;
                    let what = format!("{name}, see {}", file.display());
                    Some(Finding { what, again: format!("{again} {name}"), kept: None })
                };
                log.lines().filter_map(failed).collect()
            }
            Self::Seeds(name) => {
                let line = log.lines().find_map(|line| Some((line, seed_of(line, seed)?)));
                line.map(|(line, number)| Finding {
                    what: line.to_owned(),
                    again: match name {
                        "sim" => format!("cargo xtask sim --seed {number}"),
                        _ => again.replace(&format!("={seed} "), &format!("={number} ")),
                    },
                    kept: Some(Kept::Seed(format!("{name} {number}"))),
                })
                .into_iter()
                .collect()
            }
            Self::Loop(name) => {
                let line = log.lines().find_map(|line| Some((line, seed_of(line, seed)?)));
                line.map(|(line, number)| Finding {
                    what: format!("{line}; log: {}", file.display()),
                    again: again.replace(&format!("--seed {seed}"), &format!("--seed {number}")),
                    kept: Some(Kept::Seed(format!("{name} {number}"))),
                })
                .into_iter()
                .collect()
            }
            Self::Drawn(suite) => {
                let failed = |line: &str| {
                    let (_, name) = failed_test(line)?.split('[').next()?.rsplit_once("::")?;
                    let again = again.replace(" --drawn", &format!(" -k {name}"));
                    let kept = Some(Kept::Seed(format!("{suite}/{name} {seed}")));
                    Some(Finding { what: format!("{line}, see {}", file.display()), again, kept })
                };
                log.lines().filter_map(failed).collect()
            }
        };
        if !found.is_empty() {
            return found;
        }
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        let said = lines[lines.len().saturating_sub(TOLD_LINES_MAX)..].join("\n         ");
        let what = format!("{said}\n         see {}", file.display());
        vec![Finding { what, again: again.to_owned(), kept: None }]
    }
}

/// The seed in `seed 17: a message is lost`, which is the first of the turn or one of the next.
fn seed_of(line: &str, first: u64) -> Option<u64> {
    let (_, rest) = line.split_once("seed ")?;
    let (digits, _) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
    digits.parse().ok().filter(|seed| (first..first + SEEDS_OF_A_TURN_MAX).contains(seed))
}

/// `topic: the check fails for a/found-1f`
fn changed_input(line: &str, again: &str) -> Option<Finding> {
    let (target, file) = line.split_once(": the check fails for ")?;
    let kept = Kept::Input { target: target.to_owned(), file: PathBuf::from(file) };
    Some(Finding {
        what: line.to_owned(),
        again: format!("FUZZ_TARGET={target} {again}"),
        kept: Some(kept),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reader: Reader, log: &str, again: &str) -> Vec<(String, Option<Kept>)> {
        let found = reader.read(log, 70, again, Path::new("a.log"));
        found.into_iter().map(|found| (found.again, found.kept)).collect()
    }

    fn seed(line: &str) -> Option<Kept> {
        Some(Kept::Seed(line.to_owned()))
    }

    #[test]
    fn loop_names_the_seed_of_the_run_that_failed() {
        let log = "run 2: --runs 1 --seed 71 --nodes 3\nrun 2, seed 71: message 8 is lost; see x\n";
        let found = read(Reader::Loop("netsplit"), log, "netsplit.py --runs 2 --seed 70");
        assert_eq!(found, [("netsplit.py --runs 2 --seed 71".to_owned(), seed("netsplit 71"))]);
    }

    #[test]
    fn simulation_names_the_seed_of_the_violation() {
        let log = "100 seeds, 5 confirmed\nseed 99: two leaders\nrepeat with: --seed 99\n";
        let found = read(Reader::Seeds("sim"), log, "cargo run");
        assert_eq!(found, [("cargo xtask sim --seed 99".to_owned(), seed("sim 99"))]);
        let log = "thread panicked:\nassertion failed: seed 72\n";
        let found = read(Reader::Seeds("replication"), log, "FIRST=70 COUNT=9 cargo test");
        assert_eq!(found, [("FIRST=72 COUNT=9 cargo test".to_owned(), seed("replication 72"))]);
    }

    #[test]
    fn suites_name_each_test_that_failed() {
        let log = "FAILED test_replicas.py::test_nodes_are_killed[70] - assert 1 == 2\n\
            ERROR test_damage.py::test_damage[70-part] - Fault: x\n";
        let found = read(Reader::Drawn("faults"), log, "pytest --drawn --seed 70");
        assert_eq!(
            found,
            [
                (
                    "pytest -k test_nodes_are_killed --seed 70".to_owned(),
                    seed("faults/test_nodes_are_killed 70")
                ),
                ("pytest -k test_damage --seed 70".to_owned(), seed("faults/test_damage 70")),
            ]
        );
    }

    #[test]
    fn turn_that_says_nothing_known_is_a_finding_too() {
        let found = read(Reader::Properties, "error: could not compile\n", "cargo test");
        assert_eq!(found, [("cargo test".to_owned(), None)]);
    }

    #[test]
    fn inputs_and_seeds_are_kept_once() {
        let root = std::env::temp_dir().join(format!("xtask-explore-{}", std::process::id()));
        fs::create_dir_all(root.join("fuzz/corpus/topic")).unwrap();
        fs::create_dir_all(root.join("tests")).unwrap();
        fs::write(root.join(SEEDS), "# Seeds\n").unwrap();
        fs::write(root.join("crash-1f"), "input").unwrap();
        let line = format!("topic: the check fails for {}", root.join("crash-1f").display());
        let again = "FUZZ_RANDOM=70 cargo test";
        let found = Reader::Changes.read(&line, 70, again, Path::new("a.log"));
        let [input] = &found[..] else { panic!("{found:?}") };
        assert_eq!(input.again, "FUZZ_TARGET=topic FUZZ_RANDOM=70 cargo test");
        let loops = Reader::Loop("crash").read("seed 70: lost\n", 70, "crash", Path::new("a.log"));
        for found in [input, input, &loops[0], &loops[0]] {
            found.keep(&root).unwrap();
        }
        assert_eq!(fs::read(root.join("fuzz/corpus/topic/found-1f")).unwrap(), b"input");
        assert_eq!(fs::read_dir(root.join("fuzz/corpus/topic")).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(root.join(SEEDS)).unwrap(), "# Seeds\ncrash 70\n");
        fs::remove_dir_all(root).unwrap();
    }
}

//! The lines at the start of a run: what it installs, and how long it takes.
//!
//! Decides what is told before the first step begins. How long a run took is kept below the target folder.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::packages;
use super::steps::{Action, Step};
use super::summary::duration;

/// Time of a whole run from nothing on two processors that nobody else uses: 35 minutes of processor time.
const FROM_NOTHING: &str = "about 20 minutes";

/// The lines about a run of these steps.
pub(super) fn text(steps: &[&Step], root: &Path, target: &Path) -> String {
    let mut text = format!("{} steps", steps.len());
    // Writing into a string cannot fail.
    let _ = match last_duration(steps, target) {
        Some(last) => writeln!(text, "; the last run of them took {} here", duration(last)),
        None => writeln!(
            text,
            "; all of them take {FROM_NOTHING} from nothing on two idle processors, more on busy ones"
        ),
    };
    for line in installations(steps, root) {
        let _ = writeln!(text, "installs: {line}");
    }
    let _ = writeln!(text, "logs: {}", target.join("xtask").join("logs").display());
    text
}

/// The things that the steps will install, a line for each kind.
fn installations(steps: &[&Step], root: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut missing: Vec<String> = Vec::new();
    for step in steps {
        if let Action::DebianPackages(list) = &step.action {
            missing.extend(packages::missing_of_list(list, root).unwrap_or_default());
        } else if let Action::PythonPackages(_) = &step.action {
            lines.push("a Python environment, below the target folder".to_owned());
        } else if let Action::InteropClients = &step.action {
            lines.push("clients of crates.io and npm, below the target folder".to_owned());
        } else if let Action::DebianFiles(package) = &step.action {
            lines.push(format!("the files of Debian's {package}, below the target folder"));
        }
    }
    missing.sort_unstable();
    missing.dedup();
    if !missing.is_empty() {
        lines.push(format!("Debian packages, through apt-get: {}", missing.join(" ")));
    }
    lines
}

/// Duration of the last whole run of just these steps.
fn last_duration(steps: &[&Step], target: &Path) -> Option<Duration> {
    let text = fs::read_to_string(file(target)).ok()?;
    let (names, seconds) = text.trim_end().rsplit_once(' ')?;
    (names == self::names(steps)).then_some(Duration::from_secs(seconds.parse().ok()?))
}

/// Keeps how long a whole run has taken, for the next one.
pub(super) fn keep_duration(steps: &[&Step], elapsed: Duration, target: &Path) {
    // Without it the next run says less.
    let _ = fs::write(file(target), format!("{} {}\n", names(steps), elapsed.as_secs()));
}

fn file(target: &Path) -> PathBuf {
    target.join("xtask").join("duration.txt")
}

fn names(steps: &[&Step]) -> String {
    steps.iter().map(|step| step.name).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::table::STEPS;
    use super::*;

    #[test]
    fn duration_of_the_same_steps_is_kept() {
        let target = std::env::temp_dir().join(format!("xtask-{}-duration", std::process::id()));
        fs::create_dir_all(target.join("xtask")).unwrap();
        let steps = [&STEPS[0], &STEPS[1]];
        assert_eq!(last_duration(&steps, &target), None);
        keep_duration(&steps, Duration::from_secs(61), &target);
        assert_eq!(last_duration(&steps, &target), Some(Duration::from_secs(61)));
        assert_eq!(last_duration(&steps[..1], &target), None);
        let text = text(&steps, &target, &target);
        assert!(text.starts_with("2 steps; the last run of them took 1 min 1 s here\n"), "{text}");
        fs::remove_dir_all(target).unwrap();
    }
}

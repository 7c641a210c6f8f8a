//! Measures: every load, by every subject in turn, round after round.
//!
//! In turn, because a machine that others use is not the same from minute to minute; medians, because
//! one bad second must not decide.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::figures::{Figure, median};
use super::loads::{Action, Bound, Goal, Load};
use super::subjects::{Kind, Subject};
use crate::process;

/// Longest time of one run of `leveret-perf`: a slow broker with ten million messages.
const RUN_TIME_MAX: Duration = Duration::from_mins(40);

/// From the start of a broker to its load: by then it has given back what hashing its first password took.
const SETTLING: Duration = Duration::from_secs(2);

/// Ratio from which on a figure counts as equal to another: two runs of the same build differ as much.
const AS_GOOD: f64 = 0.95;

/// Results of a load, one for each subject in their order.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) load: &'static Load,
    pub(super) cells: Vec<Cell>,
}

/// Result of a load for one subject.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    /// The subject is not made for this load.
    NotFor,
    /// The load failed, with the reason.
    Failed(String),
    /// Medians of all rounds.
    Measured(Vec<(Figure, f64)>),
}

impl Cell {
    /// The median of a figure.
    pub(super) fn value(&self, figure: Figure) -> Option<f64> {
        match self {
            Self::Measured(values) => {
                values.iter().find(|(measured, _)| *measured == figure).map(|(_, value)| *value)
            }
            Self::NotFor | Self::Failed(_) => None,
        }
    }
}

impl Row {
    /// A figure of a subject.
    pub(super) fn value(&self, subject: usize, figure: Figure) -> Option<f64> {
        self.cells.get(subject)?.value(figure)
    }
}

/// True if Leveret, the first subject, has reached a goal; `None` when the goal was not measured.
pub(super) fn is_reached(
    goal: &Goal,
    row: &Row,
    rows: &[Row],
    rabbitmq: Option<usize>,
) -> Option<bool> {
    let value = row.value(0, goal.figure)?;
    let is_as_good = |other: f64| {
        if goal.figure.is_rate() { value >= other * AS_GOOD } else { value * AS_GOOD <= other }
    };
    match goal.bound {
        Bound::AtLeast(least) => Some(value >= least),
        Bound::Below(most) => Some(value < most),
        Bound::AsInLoad(name) => {
            let other = rows.iter().find(|row| row.load.name == name)?;
            other.value(0, goal.figure).map(is_as_good)
        }
        Bound::AsRabbitmq => row.value(rabbitmq?, goal.figure).map(is_as_good),
    }
}

/// Settings of a measurement.
#[derive(Debug)]
pub(super) struct Bench {
    /// The program `leveret-perf`.
    pub(super) perf: PathBuf,
    /// Folder for data and logs of the brokers that are started here.
    pub(super) folder: PathBuf,
    pub(super) rounds: u32,
    /// Of the loads that go on for a while.
    pub(super) seconds: f64,
    pub(super) subjects: Vec<Subject>,
    /// Product name and version of each broker, once it has been asked.
    pub(super) products: Vec<Option<String>>,
}

impl Bench {
    /// Measures a load; `rows` are those before it.
    ///
    /// # Errors
    /// When the user interrupts. What else goes wrong is a figure that is missing.
    pub(super) fn measure(&mut self, load: &'static Load, rows: &[Row]) -> Result<Row> {
        let mut values: Vec<Vec<Vec<(Figure, f64)>>> = vec![Vec::new(); self.subjects.len()];
        let mut failures: Vec<Option<String>> = vec![None; self.subjects.len()];
        for round in 0..self.rounds.min(load.rounds_max) {
            for at in 0..self.subjects.len() {
                if failures[at].is_some() || !self.is_due(at, load, round) {
                    continue;
                }
                let base = load.base().and_then(|base| {
                    let row = rows.iter().find(|row| row.load.name == base.name)?;
                    row.value(at, *base.figures.first()?)
                });
                match self.once(load, at, base) {
                    Ok(once) => values[at].push(once),
                    Err(error) if process::is_interrupted() => return Err(error),
                    Err(error) => failures[at] = Some(format!("{error:#}")),
                }
            }
        }
        let cells =
            values.iter().zip(failures).map(|(rounds, failure)| cell(load, rounds, failure));
        Ok(Row { load, cells: cells.collect() })
    }

    fn is_due(&self, subject: usize, load: &Load, round: u32) -> bool {
        let subject = &self.subjects[subject];
        let is_rabbitmq = matches!(subject.kind, Kind::Rabbitmq { .. });
        subject.can(load.for_whom) && !(is_rabbitmq && round >= load.rabbitmq_rounds_max)
    }

    /// One run of a load by one subject.
    fn once(&mut self, load: &Load, at: usize, base: Option<f64>) -> Result<Vec<(Figure, f64)>> {
        if load.base().is_some() && base.is_none() {
            bail!("the whole rate was not measured");
        }
        let running = self.subjects[at].run(&self.folder)?;
        thread::sleep(SETTLING);
        let resident = running.resident()?;
        let outcomes = match load.action {
            Action::Idle => Ok(Value::Null),
            Action::Timed(_) | Action::Counted(_) | Action::HalfOf(_) => {
                let mut command = Command::new(&self.perf);
                command.args(["--json", "--quiet", "--name", "xtask-bench"]);
                command.args(["--uri", &running.uri(), "--broker-pid", &running.id.to_string()]);
                command.args(load.arguments(self.seconds, base));
                process::output(command, RUN_TIME_MAX).and_then(|text| {
                    serde_json::from_str(&text).context("leveret-perf did not print JSON")
                })
            }
        };
        let stopped = running.stop();
        remove_data(&self.folder)?;
        let outcomes = outcomes?;
        stopped?;
        // The floor says nothing of itself.
        let product = outcomes.pointer("/0/broker").and_then(Value::as_str);
        if let Some(product) = product.filter(|product| !product.starts_with('?')) {
            self.products[at] = Some(product.to_owned());
        }
        let value = |figure: &Figure| Some((*figure, figure.of(&outcomes, resident)?));
        Ok(load.figures.iter().filter_map(value).collect())
    }
}

/// Ten million messages are not left on the disk.
fn remove_data(folder: &Path) -> Result<()> {
    let data = folder.join("broker.data");
    if data.exists() {
        fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
    }
    Ok(())
}

/// The medians of what the rounds of one subject brought.
fn cell(load: &Load, rounds: &[Vec<(Figure, f64)>], failure: Option<String>) -> Cell {
    if let Some(reason) = failure {
        return Cell::Failed(reason);
    }
    if rounds.is_empty() {
        return Cell::NotFor;
    }
    let middle = |figure: &Figure| {
        let values: Vec<f64> = rounds
            .iter()
            .flatten()
            .filter(|(measured, _)| measured == figure)
            .map(|(_, value)| *value)
            .collect();
        // An early message is a fault, however rare.
        let is_fault = matches!(figure, Figure::Early | Figure::Doubled);
        let value = if is_fault { values.into_iter().reduce(f64::max) } else { median(&values) };
        Some((*figure, value?))
    };
    Cell::Measured(load.figures.iter().filter_map(middle).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, cells: &[(Figure, f64)]) -> Row {
        let load = Load::named(name).unwrap();
        let cells = cells.iter().map(|&cell| Cell::Measured(vec![cell])).collect();
        Row { load, cells }
    }

    #[test]
    fn rounds_become_medians_and_one_early_message_is_one_too_many() {
        let load = Load::named("expiry-burst").unwrap();
        let round = |p99, early| vec![(Figure::LatenessP99, p99), (Figure::Early, early)];
        let rounds = [round(9.0, 0.0), round(1.0, 2.0), round(2.0, 0.0)];
        let cell = cell(load, &rounds, None);
        assert_eq!(cell.value(Figure::LatenessP99), Some(2.0));
        assert_eq!(cell.value(Figure::Early), Some(2.0));
        assert_eq!(cell.value(Figure::P50), None);
    }

    #[test]
    fn failed_subject_has_no_figures_and_unable_one_no_failure() {
        let load = Load::named("transient-16").unwrap();
        let rounds = [vec![(Figure::Consumed, 1.0)]];
        let failed = cell(load, &rounds, Some("gone".to_owned()));
        assert_eq!(failed, Cell::Failed("gone".to_owned()));
        assert_eq!(cell(load, &[], None), Cell::NotFor);
    }

    #[test]
    fn goals_are_bounds_or_other_figures() {
        let reached = |row: &Row, rows: &[Row], rabbitmq| {
            is_reached(row.load.goals.first().unwrap(), row, rows, rabbitmq)
        };
        let fast = row("transient-16", &[(Figure::Consumed, 2e6)]);
        let slow = row("transient-16", &[(Figure::Consumed, 1.9e6)]);
        assert_eq!(
            (reached(&fast, &[], None), reached(&slow, &[], None)),
            (Some(true), Some(false))
        );
        let small = row("idle", &[(Figure::Resident, 9e6)]);
        assert_eq!(reached(&small, &[], None), Some(true));
        let other = row("priority-5", &[(Figure::Consumed, 1_000.0)]);
        let many = row("priority-255", &[(Figure::Consumed, 951.0)]);
        assert_eq!(reached(&many, &[other], None), Some(true));
        assert_eq!(reached(&many, &[], None), None);
        let bodies = row("body-200k", &[(Figure::Consumed, 900.0), (Figure::Consumed, 1_000.0)]);
        assert_eq!(
            (reached(&bodies, &[], Some(1)), reached(&bodies, &[], None)),
            (Some(false), None)
        );
    }
}

//! Requirements of every history.

use std::collections::{BTreeMap, BTreeSet};

use storage::{EntryContent, LogEntry};

use crate::clock::AxisOrigin;
use crate::ids::MemberId;
use crate::membership::MembershipChange;

/// Most that a clock of the simulation runs ahead of the true time, in millionths.
const RATE_PPM: u64 = 200;

/// Knowledge of a history.
#[derive(Default)]
pub(super) struct Checks {
    pub(super) leaders: BTreeMap<u64, usize>,
    pub(super) committed: BTreeMap<u64, LogEntry>,
    /// Values that were confirmed, with their entry.
    pub(super) confirmed: BTreeMap<u64, u64>,
    /// True time of each proposal, by index and term.
    pub(super) proposed_at: BTreeMap<(u64, u64), u64>,
    /// The term that began with the wall clocks and whose axis each term continues.
    roots: BTreeMap<u64, u64>,
    root: u64,
    /// True time and axis of the newest committed proposals that bound later ones.
    axes: Vec<(u64, u64)>,
    checked_axes: u64,
    pub(super) violations: Vec<String>,
}

/// The value of an entry.
pub(super) fn value(entry: &LogEntry) -> Option<u64> {
    match &entry.content {
        EntryContent::Records(records) => {
            // Behind the header of the record.
            Some(u64::from_le_bytes(records.bytes[32..40].try_into().unwrap()))
        }
        EntryContent::Empty | EntryContent::Membership(_) => None,
    }
}

impl Checks {
    fn violation(&mut self, text: String) {
        self.violations.push(text);
    }

    pub(super) fn leads(&mut self, term: u64, node: usize) {
        let other = *self.leaders.entry(term).or_insert(node);
        if other != node {
            self.violation(format!("nodes {other} and {node} lead term {term}"));
        }
    }

    /// Notes how the axis of a term begins, behind an entry of `last_term`.
    pub(super) fn axis(&mut self, term: u64, last_term: u64, origin: AxisOrigin) {
        let root_of = |term| self.roots.get(&term).copied().unwrap_or_default();
        let root = match origin {
            AxisOrigin::Continued { term: before } => root_of(before),
            AxisOrigin::Restored { term: before } if before >= last_term => root_of(before),
            AxisOrigin::Log => root_of(last_term),
            // No member knows the axis of the last leader, which may have been behind that of the one before.
            AxisOrigin::Restored { .. } | AxisOrigin::WallClocks => term,
        };
        self.roots.insert(term, root);
    }

    pub(super) fn deliver(&mut self, node: usize, before: u64, entry: &LogEntry) {
        let index = entry.index.0;
        if index != before + 1 {
            self.violation(format!("node {node} gets entry {index} behind {before}"));
        }
        match self.committed.get(&index) {
            Some(other) if other == entry => {}
            Some(other) => {
                let text = format!("node {node} commits {entry:?} in place of {other:?}");
                self.violation(text);
            }
            None => {
                self.committed.insert(index, entry.clone());
            }
        }
        self.check_axes();
    }

    /// Never early: between two proposals, the axis moves no further than the time.
    fn check_axes(&mut self) {
        while let Some(entry) = self.committed.get(&(self.checked_axes + 1)) {
            self.checked_axes += 1;
            let (index, term, axis_us) = (entry.index.0, entry.term.0, entry.axis_us);
            let root = self.roots.get(&term).copied().unwrap_or_default();
            if root != self.root {
                self.root = root;
                self.axes.clear();
            }
            let Some(at_us) = self.proposed_at.get(&(index, term)).copied() else {
                continue;
            };
            let early = self.axes.iter().find(|(at, axis)| {
                let passed = at_us - at;
                axis_us > axis + passed + passed * RATE_PPM / 1_000_000 + 2
            });
            if let Some((at, axis)) = early {
                let text = format!(
                    "entry {index} of term {term} is early: {} us after {} us",
                    axis_us - axis,
                    at_us - at
                );
                self.violations.push(text);
            }
            if self.axes.iter().any(|(_, axis)| *axis > axis_us) {
                self.violations.push(format!("the axis goes back at entry {index}"));
            }
            self.axes.push((at_us, axis_us));
            if self.axes.len() > 40 {
                self.axes.remove(20);
            }
        }
    }

    pub(super) fn confirm(&mut self, value: u64, index: u64) {
        self.confirmed.insert(value, index);
    }

    /// Every confirmed value must be committed, and nothing twice.
    pub(super) fn end(&mut self) {
        let mut missing = Vec::new();
        for (value, index) in &self.confirmed {
            if self.committed.get(index).and_then(super::checks::value) != Some(*value) {
                missing.push(format!("value {value}, confirmed with entry {index}, is lost"));
            }
        }
        self.violations.append(&mut missing);
        let values: Vec<u64> = self.committed.values().filter_map(value).collect();
        if values.iter().collect::<BTreeSet<_>>().len() != values.len() {
            self.violation("a value is committed twice".to_owned());
        }
    }

    /// Members after the entry `index`.
    pub(super) fn members_at(&self, founders: &[u64], index: u64) -> (Vec<u64>, Vec<u64>) {
        let (mut voters, mut learners): (BTreeSet<u64>, BTreeSet<u64>) =
            (founders.iter().copied().collect(), BTreeSet::new());
        for entry in self.committed.range(..=index).map(|(_, entry)| entry) {
            let EntryContent::Membership(change) = &entry.content else {
                continue;
            };
            let change = MembershipChange::decode(change).unwrap();
            let id = MemberId::get(change.member());
            match change {
                MembershipChange::AddLearner(_) => {
                    learners.insert(id);
                }
                MembershipChange::Promote(_) => {
                    learners.remove(&id);
                    voters.insert(id);
                }
                MembershipChange::Remove(_) => {
                    learners.remove(&id);
                    voters.remove(&id);
                }
            }
        }
        (voters.into_iter().collect(), learners.into_iter().collect())
    }
}

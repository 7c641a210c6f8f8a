//! The story of a run: its events in the order of time, and a number that depends on all of them.

use std::collections::VecDeque;
use std::fmt;

use crate::checks::hash::hash;

/// Events that are kept for the report of a failure.
const KEPT_MAX: usize = 20_000;

/// The story of a run.
#[derive(Clone, Debug)]
pub struct Story {
    lines: VecDeque<(u64, String)>,
    hash: u64,
    /// True if lines are kept, not only their hash.
    keeps: bool,
}

impl Story {
    pub(crate) fn new(keeps: bool) -> Self {
        Self { lines: VecDeque::new(), hash: 0, keeps }
    }

    /// Adds an event. Without `keeps`, only its facts are hashed.
    pub(crate) fn tell(&mut self, at_us: u64, event: fmt::Arguments<'_>) {
        let line = event.to_string();
        self.add(&at_us.to_le_bytes());
        self.add(line.as_bytes());
        self.keep(at_us, line);
    }

    /// Adds a line that no hash depends on.
    pub(crate) fn keep(&mut self, at_us: u64, line: String) {
        if self.keeps {
            if self.lines.len() == KEPT_MAX {
                self.lines.pop_front();
            }
            self.lines.push_back((at_us, line));
        }
    }

    /// Adds octets to the hash.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.hash = hash(bytes, self.hash);
    }

    /// A number that depends on every event.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The last events, oldest first: their time in microseconds, and a line each.
    pub fn last(&self, count: usize) -> impl Iterator<Item = &(u64, String)> {
        self.lines.iter().skip(self.lines.len().saturating_sub(count))
    }
}

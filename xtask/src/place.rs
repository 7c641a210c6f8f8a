//! The folders and the log of a step, and the processor time of its programs.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

/// Folders and log of a step.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// The root of the repository.
    pub(crate) root: &'a Path,
    /// The folder cargo builds into.
    pub(crate) target: &'a Path,
    /// The log of the step.
    pub(crate) log: &'a Path,
    cpu_time: Cell<Duration>,
}

impl<'a> Place<'a> {
    /// A place where no program has run yet.
    pub(crate) const fn new(root: &'a Path, target: &'a Path, log: &'a Path) -> Self {
        Self { root, target, log, cpu_time: Cell::new(Duration::ZERO) }
    }

    /// Adds the processor time of a program that has ended.
    pub(crate) fn add_cpu_time(&self, cpu_time: Duration) {
        self.cpu_time.set(self.cpu_time.get() + cpu_time);
    }

    /// The processor time of all programs so far.
    pub(crate) const fn cpu_time(&self) -> Duration {
        self.cpu_time.get()
    }
}

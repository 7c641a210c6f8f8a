//! The folders and the log of a step.

use std::path::Path;

/// Folders and log of a step.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// The root of the repository.
    pub(crate) root: &'a Path,
    /// The folder cargo builds into.
    pub(crate) target: &'a Path,
    /// The log of the step.
    pub(crate) log: &'a Path,
}

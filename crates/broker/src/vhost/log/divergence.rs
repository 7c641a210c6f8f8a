//! Differences between a replica and its leader.

use std::fmt;

use crate::ids::{Lsn, Name};
use crate::record::DecodeError;

/// The reason why a record does not fit the records before it. For a replica: the difference from its leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The record at which it was found.
    pub lsn: Lsn,
    /// The queue that differs; none if it is no queue, or not known.
    pub queue: Option<Name>,
    /// The problem, as a clause that names its subject.
    pub problem: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}: {}", self.lsn, self.problem)
    }
}

impl std::error::Error for Divergence {}

impl Divergence {
    pub(super) fn new(lsn: Lsn, problem: String) -> Self {
        Self { lsn, queue: None, problem }
    }

    pub(super) fn of_queue(lsn: Lsn, name: &Name, problem: impl fmt::Display) -> Self {
        let problem = format!("queue '{name}': {problem}");
        Self { lsn, queue: Some(Name::clone(name)), problem }
    }

    /// The divergence of a replica that cannot read a record of its leader.
    #[must_use]
    pub fn unreadable(lsn: Lsn, error: &DecodeError) -> Self {
        Self::new(lsn, error.to_string())
    }
}

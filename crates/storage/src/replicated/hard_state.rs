//! The hard state of a member: its term, its vote and the members it knows, durable before a vote leaves the node.

use super::entry::{EntryIndex, Term};

/// State of a member that must survive any crash.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HardState {
    /// Newest term that the member has seen.
    pub term: Term,
    /// Member that got the vote in this term; 0 for none.
    pub vote: u64,
    /// Entries up to this one are committed; there may be more. The log stores it as a hint, at most the last entry
    /// that is durable, and never lets it fall.
    pub commit: EntryIndex,
    /// Members that vote.
    pub voters: Vec<u64>,
    /// Members that only receive.
    pub learners: Vec<u64>,
}

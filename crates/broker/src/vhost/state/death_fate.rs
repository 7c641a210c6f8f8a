//! The fate of a dead message: the queues that get its dead letter, or the cause for which none does.

use smallvec::SmallVec;

use crate::ids::QueueId;
use crate::queue::DropCause;

/// The queues that a dead letter was routed to, by their treatment of it.
pub(crate) struct Targets {
    pub(crate) accepting: SmallVec<[QueueId; 4]>,
    /// Full queues that dead-letter the messages they refuse.
    pub(crate) passing_on: SmallVec<[QueueId; 1]>,
    pub(crate) cyclic: u64,
    pub(crate) full: u64,
}

/// The fate of a dead message.
#[derive(Clone, Copy)]
pub(crate) enum Fate<'a> {
    DeadLettered(&'a Targets),
    /// The queue keeps the message until its dead letter can be delivered.
    Kept(DropCause),
    Dropped(DropCause),
}

impl Targets {
    /// The number of queues that take the dead letter.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        (self.accepting.len() + self.passing_on.len()) as u64
    }

    /// True if the first of these queues are the ones in `first`.
    #[inline]
    pub(crate) fn begin_with(&self, first: &[QueueId]) -> bool {
        match (first, &*self.accepting, &*self.passing_on) {
            ([one], [target], []) => one == target,
            _ => self.accepting.iter().chain(&self.passing_on).zip(first).all(|(a, b)| a == b),
        }
    }
}

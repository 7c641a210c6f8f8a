//! Messages of members, as the engine exchanges them.

use storage::LogEntry;

use crate::clock::LeaderClock;

/// A message between two members of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    /// Term of the sender, or the one for which it asks a vote.
    pub(crate) term: u64,
    pub(crate) body: Body,
}

/// Content of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    Append(Append),
    AppendAnswer {
        /// Last entry that the follower has in common, or the one that was refused.
        index: u64,
        commit: u64,
        is_rejected: bool,
        /// Entry with which the leader should continue, and its term.
        hint: u64,
        hint_term: u64,
    },
    Heartbeat {
        commit: u64,
        /// First entry that a member of the group still needs.
        needed_from: u64,
        /// The axis of the leader.
        clock: Option<LeaderClock>,
    },
    HeartbeatAnswer {
        commit: u64,
    },
    Vote(Vote),
    VoteAnswer(VoteAnswer),
    /// The leader hands over: campaign at once.
    TimeoutNow,
    /// The leader will ship the files up to this entry.
    SnapshotOffer {
        index: u64,
        index_term: u64,
    },
}

/// Entries for a follower.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Append {
    /// The entry before the first.
    pub(crate) previous: u64,
    pub(crate) previous_term: u64,
    pub(crate) commit: u64,
    /// The axis of the leader.
    pub(crate) clock: Option<LeaderClock>,
    pub(crate) entries: Vec<LogEntry>,
}

/// A request for a vote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Vote {
    /// Asks whether a vote would be given.
    pub(crate) is_pre_vote: bool,
    /// The leader has handed over, so that its lease does not count.
    pub(crate) is_transfer: bool,
    pub(crate) last: u64,
    pub(crate) last_term: u64,
    pub(crate) commit: u64,
    pub(crate) commit_term: u64,
}

/// The answer to a [`Vote`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct VoteAnswer {
    pub(crate) is_pre_vote: bool,
    pub(crate) is_rejected: bool,
    pub(crate) commit: u64,
    pub(crate) commit_term: u64,
    /// The axis as the voter knows it, on its own clock.
    pub(crate) clock: Option<LeaderClock>,
    /// The axis as the voter has saved it beside its wall clock, before its process began.
    pub(crate) saved: Option<LeaderClock>,
}

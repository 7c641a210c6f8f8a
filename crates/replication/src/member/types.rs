//! The configuration of a member, and everything that it tells.

use storage::{EntryError, EntryFacts, EntryIndex, LogEntry, LogError, Term};

use crate::clock::NewAxis;
use crate::ids::{ClusterId, GroupId, MemberId};

/// Facts with which a member begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberConfig {
    /// Cluster of the group.
    pub cluster: ClusterId,
    /// The group. Its id is that of the log.
    pub group: GroupId,
    /// The member itself.
    pub me: MemberId,
    /// Seed of its election times.
    pub seed: u64,
    /// The time at which this member, as the leader, tells the others of a commit.
    pub tells_commits: CommitNews,
}

/// The request of a leader to campaign in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct CampaignRequest {
    pub(super) from: MemberId,
    pub(super) term: u64,
}

/// The time at which a leader tells the others that entries are committed, if no new entries leave before: these carry
/// the commit, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitNews {
    /// At once: the others apply entries as soon as the leader.
    AtOnce,
    /// With the next tick: a frame, its answer and the wake-ups of both are saved for most entries.
    AtTick,
}

/// Role of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The member leads.
    Leader {
        /// The term that it leads.
        term: Term,
        /// The first entry of its term is committed and was passed on: the vhost may be promoted.
        is_active: bool,
    },
    /// Another member leads, or none.
    Follower {
        /// The leader, if one is known.
        leader: Option<MemberId>,
    },
    /// The member asks for votes.
    Candidate,
    /// The member neither votes nor leads nor acknowledges: its replica must be rebuilt.
    Quarantined,
}

/// Reason for which a replica must be rebuilt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QuarantineReason {
    /// The log is damaged.
    Damaged(String),
    /// Log or state are not what the others have.
    Diverged(String),
}

impl QuarantineReason {
    /// The reason as text.
    #[must_use]
    pub fn text(&self) -> &str {
        let (Self::Damaged(text) | Self::Diverged(text)) = self;
        text
    }
}

/// A committed entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Committed {
    /// The entry.
    pub entry: LogEntry,
    /// Facts of an entry that this member has proposed in its present term: the vhost has its effects already. `None`
    /// for all others, which are to be applied.
    pub facts: Option<EntryFacts>,
}

/// An offer of the leader to ship files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotOffer {
    /// The leader.
    pub from: MemberId,
    /// Last entry of the files.
    pub index: EntryIndex,
    /// Term of that entry.
    pub term: Term,
}

/// The news of a turn, for the driver.
#[derive(Debug, Default)]
pub struct TurnResult {
    /// The new role, if it has changed.
    pub role: Option<Role>,
    /// Entries that are committed, in order, each once.
    pub committed: Vec<Committed>,
    /// The entries up to here are on the disks of a majority, and the proposals that became them or were elided behind
    /// them are durable. Told when a proposal may wait for it.
    pub durable: Option<EntryIndex>,
    /// The axis that begins, when this member begins to lead.
    pub axis: Option<NewAxis>,
    /// Members that need files, because the entries are compacted. Told again until
    /// [`Member::shipped`](super::Member::shipped).
    pub needs_snapshot: Vec<MemberId>,
    /// The leader's offer to ship files to this member.
    pub offer: Option<SnapshotOffer>,
    /// Reason for a quarantine that begins.
    pub quarantine: Option<QuarantineReason>,
    /// Another turn has work already.
    pub has_more: bool,
}

/// Result of a proposal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proposed {
    /// The batch became this entry.
    Entry(EntryIndex),
    /// All records of the batch were elided: they are durable once this entry, the newest before, is told again.
    Nothing(EntryIndex),
}

/// Reason for which nothing can be proposed. The batch is unchanged.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProposeError {
    /// The member does not lead, or not yet.
    #[error("this member does not lead the group")]
    NotLeading,
    /// Leadership is being handed over: keep the batch until the role is known.
    #[error("leadership is being handed over")]
    Transferring,
    /// Too much is not committed: keep the batch, and try again after the next turn.
    #[error("{bytes} octets are proposed and not committed")]
    Behind {
        /// Octets of these proposals.
        bytes: usize,
    },
    /// A change of the members is on its way.
    #[error("another change of the members is not finished")]
    ChangePending,
    /// The change makes no sense for this group.
    #[error("the change of the members is refused: {0}")]
    Refused(&'static str),
}

/// Reason for which a member cannot begin with a log.
#[derive(thiserror::Error, Debug)]
pub enum BeginError {
    /// The log cannot be read.
    #[error("the log of the group cannot be read: {0}")]
    Read(#[from] EntryError),
    /// The hard state cannot be saved.
    #[error("the hard state cannot be saved: {0}")]
    Save(#[from] LogError),
    /// Log and hard state contradict each other: the replica must be rebuilt.
    #[error("log and hard state contradict each other: {0}")]
    Contradiction(String),
}

//! Dead messages that are sent back, by jobs of the node.

use std::collections::HashSet;

use broker::redrive::{RedriveTo, redrive_count};
use broker::refusal::Refusal;
use broker::time::Now;
use broker::{BrowsedMessage, MessageState, QueueNumber};

use super::Change;
use crate::{Caller, MessageFilter, MessageId};

/// Jobs that redrive messages, of which the node remembers some.
pub trait Redrives {
    /// Begins to redrive messages of a queue on behalf of `caller`.
    fn redrive(
        &self,
        caller: &Caller,
        vhost_and_queue: (&str, &str),
        request: RedriveRequest,
    ) -> Change<'_, Result<RedriveJob, RedriveRefused>>;

    /// What that would come to now.
    fn redrive_dry_run(
        &self,
        caller: &Caller,
        vhost_and_queue: (&str, &str),
        request: RedriveRequest,
    ) -> Change<'_, Result<RedriveDryRun, RedriveRefused>>;

    /// The jobs that run and the last ones that have ended, newest first.
    fn redrives(&self) -> Vec<RedriveJob>;

    /// Has a job end; what it has moved stays moved. False if it does not run.
    fn cancel_redrive(&self, id: u64) -> bool;
}

/// What is to be redriven, and how.
#[derive(Clone, Debug)]
pub struct RedriveRequest {
    /// Where to.
    pub to: RedriveTo,
    /// Which messages.
    pub choice: RedriveChoice,
    /// How many are moved at most.
    pub limit: Option<u64>,
    /// How many are moved in a second at most.
    pub rate: Option<u32>,
}

/// Which messages are redriven: those of which all is the case that is said.
#[derive(Clone, Default, Debug)]
pub struct RedriveChoice {
    /// They are among these.
    pub ids: Option<HashSet<MessageId>>,
    /// They are like this.
    pub filter: MessageFilter,
    /// They have been in the queue for so long, in milliseconds.
    pub older_than_ms: Option<u64>,
    /// They were redriven less often, as their headers say.
    pub max_redrives: Option<u64>,
}

impl RedriveChoice {
    /// Whether a message is chosen that waits in the queue of that number.
    pub fn wants(&self, queue: QueueNumber, browsed: &BrowsedMessage, now: Now) -> bool {
        let entry = &browsed.entry;
        let id = MessageId { queue, entry: entry.id };
        let is_named = self.ids.as_ref().is_none_or(|ids| ids.contains(&id));
        let is_old = |ms| now.time.micros_since(entry.arrived) / 1000 >= ms;
        is_named
            && self.older_than_ms.is_none_or(is_old)
            && self.max_redrives.is_none_or(|max| redrive_count(&entry.message) < max)
            && self.filter.wants(&entry.message)
    }
}

/// Why nothing is redriven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RedriveRefused {
    /// There is no such vhost.
    NoSuchVhost,
    /// There is no such queue.
    NoSuchQueue,
    /// The user has no permissions in the vhost.
    NoPermissions,
    /// The core refuses.
    Refused(Refusal),
    /// So many jobs run already.
    TooMany(usize),
    /// The disk cannot be read: a sentence for whoever asked.
    Disk(String),
}

/// How a job is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RedriveState {
    /// It goes on.
    Running,
    /// All messages have been looked at, or as many moved as were to be.
    Finished,
    /// Somebody ended it.
    Cancelled,
    /// It could not go on: why.
    Failed(String),
}

impl RedriveState {
    /// A word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Failed(_) => "failed",
        }
    }
}

/// What became of messages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RedriveCounts {
    /// They were looked at.
    pub scanned: u64,
    /// They were moved.
    pub moved: u64,
    /// They were not chosen.
    pub skipped: u64,
    /// Nothing took them; they stay.
    pub unroutable: u64,
    /// They had left the queue when their turn came.
    pub gone: u64,
}

/// A job, as it is at a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedriveJob {
    /// Its number.
    pub id: u64,
    /// The vhost.
    pub vhost: String,
    /// The queue that messages leave.
    pub queue: String,
    /// Where they go.
    pub to: RedriveTo,
    /// On whose behalf.
    pub user: String,
    /// How it is.
    pub state: RedriveState,
    /// When it began, in milliseconds of the epoch.
    pub started_ms: u64,
    /// When it ended, in milliseconds of the epoch.
    pub ended_ms: Option<u64>,
    /// Messages that waited when it began.
    pub messages_total: u64,
    /// What became of those so far.
    pub counts: RedriveCounts,
}

impl RedriveCounts {
    /// Adds others; all of them were looked at.
    pub fn add(&mut self, more: Self) {
        let Self { moved, skipped, unroutable, gone, .. } = more;
        self.moved += moved;
        self.skipped += skipped;
        self.unroutable += unroutable;
        self.gone += gone;
        self.scanned = self.moved + self.skipped + self.unroutable + self.gone;
    }
}

/// What a job would come to.
#[derive(Clone, Debug)]
pub struct RedriveDryRun {
    /// The queue's number.
    pub number: QueueNumber,
    /// The moment.
    pub now: Now,
    /// Messages that were looked at.
    pub scanned: u64,
    /// Those that would be chosen.
    pub matched: u64,
    /// Those of them that something would take.
    pub would_move: u64,
    /// Those of them that would stay.
    pub unroutable: u64,
    /// By name, how many messages a queue would get.
    pub targets: Vec<(String, u64)>,
    /// The first that were chosen, with how they wait.
    pub sample: Vec<(MessageState, BrowsedMessage)>,
    /// All that would be moved are counted; there may be too many to look at.
    pub is_complete: bool,
}

//! Redrives: jobs that move dead-lettered messages back.

use std::collections::HashSet;

use broker::redrive::{RedriveTo, redrive_count};
use broker::refusal::Refusal;
use broker::time::Now;
use broker::{BrowsedMessage, MessageState, QueueNumber};

use super::message_filter::MessageFilter;
use super::message_id::MessageId;

/// The messages to redrive, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedriveRequest {
    /// Target of the messages.
    pub to: RedriveTo,
    /// Selection of messages.
    pub selection: RedriveSelection,
    /// Maximum number of messages to move.
    pub limit: Option<u64>,
    /// Maximum number of messages to move per second.
    pub rate: Option<u32>,
    /// True to redrive the dead letters that the queue keeps because no target took them, instead of the
    /// messages that wait.
    pub is_of_kept: bool,
}

/// Selects messages that meet all given conditions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RedriveSelection {
    /// Ids of the messages.
    pub ids: Option<HashSet<MessageId>>,
    /// Filter on properties and body.
    pub filter: MessageFilter,
    /// Minimum time in the queue, in milliseconds.
    pub older_than_ms: Option<u64>,
    /// Exclusive maximum of earlier redrives, counted from the headers.
    pub max_redrives: Option<u64>,
}

impl RedriveSelection {
    /// True if a message in the queue of that number is selected.
    pub fn selects(&self, queue: QueueNumber, browsed: &BrowsedMessage, now: Now) -> bool {
        let entry = &browsed.entry;
        let id = MessageId { queue, entry: entry.id };
        let is_named = self.ids.as_ref().is_none_or(|ids| ids.contains(&id));
        let is_old = |ms| now.time.micros_since(entry.arrived) / 1000 >= ms;
        is_named
            && self.older_than_ms.is_none_or(is_old)
            && self.max_redrives.is_none_or(|max| redrive_count(&entry.message) < max)
            && self.filter.matches(&entry.message)
    }
}

/// The reason why a redrive does not start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RedriveError {
    /// No vhost has this name.
    NoSuchVhost,
    /// No queue has this name.
    NoSuchQueue,
    /// The user has no permissions in the vhost.
    NoPermissions,
    /// The core refused.
    Refused(Refusal),
    /// The maximum number of jobs is running.
    TooMany(usize),
    /// The selection is longer than this number of bytes, as the disk would keep it.
    TooLong(usize),
    /// The disk cannot be read or written; a sentence for the user.
    Disk(String),
}

/// State of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RedriveState {
    /// Still moving messages.
    Running,
    /// Reached the end of the queue, or the limit.
    Finished,
    /// Cancelled by a user.
    Cancelled,
    /// Failed, for this reason.
    Failed(String),
}

impl RedriveState {
    /// Name of the state in the API.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Failed(_) => "failed",
        }
    }
}

/// Numbers of messages by outcome.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RedriveCounts {
    /// Messages examined.
    pub scanned: u64,
    /// Messages moved.
    pub moved: u64,
    /// Messages not selected.
    pub skipped: u64,
    /// Messages that no queue took; they stay.
    pub unroutable: u64,
    /// Messages without an origin to return to; they stay.
    pub no_origin: u64,
    /// Messages that left the queue before they could be moved.
    pub gone: u64,
}

/// A job at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedriveJob {
    /// Number of the job.
    pub id: u64,
    /// Name of the vhost.
    pub vhost: String,
    /// Name of the source queue.
    pub queue: String,
    /// Target of the messages.
    pub to: RedriveTo,
    /// Name of the user who started the job.
    pub user: String,
    /// State of the job.
    pub state: RedriveState,
    /// Start time, in milliseconds of the epoch.
    pub started_ms: u64,
    /// End time, in milliseconds of the epoch.
    pub ended_ms: Option<u64>,
    /// Messages that were waiting at the start, and those that were requeued in front of the job's position
    /// later.
    pub messages_total: u64,
    /// Numbers of messages so far.
    pub counts: RedriveCounts,
    /// Messages of the queue that clients held unacknowledged when the job ended; none while the job runs.
    pub unacked_left: Option<u64>,
    /// True if the job is about the dead letters that the queue keeps.
    pub is_of_kept: bool,
}

impl RedriveJob {
    /// Adds the counts of more messages, all of which were examined.
    pub fn add(&mut self, more: RedriveCounts) {
        self.counts.add(more);
        self.messages_total = self.messages_total.max(self.counts.scanned);
    }

    /// Messages that the job has not examined: not yet, or not before it ended at its limit or was ended.
    pub const fn not_examined(&self) -> u64 {
        self.messages_total.saturating_sub(self.counts.scanned)
    }
}

impl RedriveCounts {
    /// Adds the counts of more messages, all of which were examined.
    fn add(&mut self, more: Self) {
        let Self { moved, skipped, unroutable, no_origin, gone, .. } = more;
        self.moved += moved;
        self.skipped += skipped;
        self.unroutable += unroutable;
        self.no_origin += no_origin;
        self.gone += gone;
        self.scanned = self.moved + self.skipped + self.unroutable + self.no_origin + self.gone;
    }
}

/// The effects that a job would have.
#[derive(Clone, Debug)]
pub struct RedriveDryRun {
    /// Number of the queue.
    pub number: QueueNumber,
    /// Time of the dry run.
    pub now: Now,
    /// Messages that wait in the queue, or dead letters that the queue keeps.
    pub messages_total: u64,
    /// Messages of the queue that clients hold unacknowledged: a redrive leaves them.
    pub unacked_left: u64,
    /// Messages examined.
    pub scanned: u64,
    /// Messages not examined, because the limit was reached or the queue is too long for a dry run.
    pub not_examined: u64,
    /// Messages that would be selected.
    pub matched: u64,
    /// Selected messages that a queue would take.
    pub would_move: u64,
    /// Selected messages that no queue would take.
    pub unroutable: u64,
    /// Selected messages without an origin to return to.
    pub no_origin: u64,
    /// Target queues by name, with the number of messages for each.
    pub targets: Vec<(String, u64)>,
    /// The first selected messages, with their states.
    pub sample: Vec<(MessageState, BrowsedMessage)>,
    /// True if the whole queue was examined; a long queue is cut off.
    pub is_complete: bool,
}

//! Messages: browsed, published and taken on channels, and redriven.

mod death_filter;
mod message_filter;
mod message_id;
mod redrive;
mod schedules;

use broker::refusal::Refusal;
use broker::time::Now;
use broker::{BrowseCursor, BrowsedMessage, ExpirySlice, QueueNumber, RecordedDeath};

pub use death_filter::DeathFilter;
pub use message_filter::{MessageFilter, shown_value};
pub use message_id::{MessageId, ParseMessageIdError};
pub use redrive::{
    RedriveCounts, RedriveDryRun, RedriveError, RedriveJob, RedriveRequest, RedriveSelection,
    RedriveState,
};
pub use schedules::{
    ScheduleCancelled, ScheduleChanged, ScheduleError, ScheduleQuery, ScheduledBatch, on_axis,
};

/// A queue by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuePath<'a> {
    /// Name of the vhost.
    pub vhost: &'a str,
    /// Name of the queue.
    pub queue: &'a str,
}

/// Consecutive messages of a queue.
#[derive(Clone, Debug)]
pub struct BrowseBatch {
    /// Number of the queue.
    pub queue: QueueNumber,
    /// The messages; possibly none although more follow.
    pub messages: Vec<BrowsedMessage>,
    /// Start of the next batch; none at the end.
    pub next: Option<BrowseCursor>,
    /// Number of messages in this state.
    pub total: u64,
    /// Time of the read.
    pub now: Now,
}

/// The reason why messages are not shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BrowseError {
    /// No such queue, or no such vhost.
    NoSuchQueue,
    /// The user has no permissions in the vhost.
    NoPermissions,
    /// The user may not read from the queue; the refusal that AMQP would send.
    Refused(Refusal),
    /// A page on disk cannot be read; a sentence for the user.
    Unreadable(String),
}

/// Deadlines of some messages that wait in a queue.
#[derive(Clone, Debug)]
pub struct ExpiryBatch {
    /// The deadlines, and the cursor of the next batch.
    pub slice: ExpirySlice,
    /// The queue's message TTL in force.
    pub message_ttl_ms: Option<u64>,
    /// Time of the read.
    pub now: Now,
}

/// A position in the history of dead letters, which is read backwards, and the number of deaths to find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeathsBefore {
    /// The number of a death; only earlier ones are read. None begins at the latest death.
    pub before: Option<u64>,
    /// Maximum number of deaths to return.
    pub count: usize,
}

/// Deaths of the history of dead letters, the latest first.
#[derive(Clone, Debug)]
pub struct DeathsBatch {
    /// The deaths that match and that the caller may see; possibly none although more follow.
    pub deaths: Vec<RecordedDeath>,
    /// Deaths that match, in queues from which the caller may not read.
    pub hidden: u64,
    /// The position of the next batch; none at the end.
    pub before: Option<u64>,
    /// True if the vhost keeps deaths.
    pub is_on: bool,
    /// Deaths that the vhost has forgotten.
    pub forgotten: u64,
    /// Time since which all deaths are kept, in milliseconds since the Unix epoch.
    pub kept_since_ms: u64,
}

/// The reason why no channel was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChannelError {
    /// No vhost has this name.
    NoSuchVhost,
    /// The user has no permissions in the vhost.
    NoPermissions,
    /// The node does not lead the vhost now.
    NotLeading,
}

//! Messages: browsed, published and taken on channels, and redriven.

mod death_filter;
mod message_filter;
mod message_id;
mod redrive;
mod schedules;

use std::pin::Pin;

use broker::refusal::Refusal;
use broker::time::Now;
use broker::{
    BrowseCursor, BrowsedMessage, Command, ExpiryCursor, ExpirySlice, Outgoing, Publish,
    QueueNumber, RecordedDeath, ScheduledPlace,
};

use crate::requests::caller::Caller;
use crate::requests::change::ChangeFuture;

pub use death_filter::DeathFilter;
pub use message_filter::{MessageFilter, shown_value};
pub use message_id::{MessageId, ParseMessageIdError};
pub use redrive::{
    RedriveCounts, RedriveDryRun, RedriveError, RedriveJob, RedriveRequest, RedriveSelection,
    RedriveState,
};
pub use schedules::{
    ScheduleCancelled, ScheduleChanged, ScheduleError, ScheduleQuery, ScheduledBatch, Schedules,
    on_axis,
};

/// A queue by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuePath<'a> {
    /// Name of the vhost.
    pub vhost: &'a str,
    /// Name of the queue.
    pub queue: &'a str,
}

/// Completes when messages have been read, from disk where necessary.
pub type BrowseFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, BrowseError>> + Send + 'a>>;

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

/// A channel on behalf of a user. Dropping it requeues its unacknowledged messages.
pub trait Channel: Send {
    /// Performs a command; [`Channel::answer`] returns the result.
    fn apply(&mut self, command: Command<'_>);

    /// Performs a publish; [`Channel::answer`] returns its confirm. Returns the places in which the message waits for
    /// its delivery time, and the time of the publish.
    fn publish(&mut self, publish: Publish<'_>) -> (Vec<ScheduledPlace>, Now);

    /// The next message to the channel: the answer to a command once its effects are on disk, a confirm, or
    /// a returned message. A refusal closes the channel.
    fn answer(&mut self) -> ChangeFuture<'_, Result<Outgoing, Refusal>>;

    /// Closes the channel; completes when all its effects are on disk.
    fn close(self: Box<Self>) -> ChangeFuture<'static, ()>;
}

/// Messages in queues.
pub trait Messages {
    /// Reads up to `count` messages of a queue, starting at a cursor, if the caller may read from the
    /// queue. One call reads no more than one page.
    fn browse(
        &self,
        caller: &Caller,
        queue: QueuePath<'_>,
        from: BrowseCursor,
        count: usize,
    ) -> BrowseFuture<'_, BrowseBatch>;

    /// Reads the deadlines of some messages that wait in a queue, starting at a cursor.
    fn expiry(&self, queue: QueuePath<'_>, from: ExpiryCursor) -> BrowseFuture<'_, ExpiryBatch>;

    /// Reads a slice of the history of dead letters of a vhost.
    fn recorded_deaths<'a>(
        &'a self,
        caller: &Caller,
        vhost: &str,
        filter: &'a DeathFilter,
        wanted: DeathsBefore,
    ) -> BrowseFuture<'a, DeathsBatch>;

    /// Opens a channel in `vhost` with the permissions of `caller`. Waits while too much is queued for the
    /// disk.
    fn channel(
        &self,
        caller: &Caller,
        vhost: &str,
    ) -> ChangeFuture<'_, Result<Box<dyn Channel>, ChannelError>>;

    /// Maximum size of a message body, in bytes.
    fn message_size_max(&self) -> u64;

    /// Starts to redrive messages of a queue on behalf of `caller`.
    fn redrive(
        &self,
        caller: &Caller,
        queue: QueuePath<'_>,
        request: RedriveRequest,
    ) -> ChangeFuture<'_, Result<RedriveJob, RedriveError>>;

    /// The effects that [`Messages::redrive`] would have now.
    fn redrive_dry_run(
        &self,
        caller: &Caller,
        queue: QueuePath<'_>,
        request: RedriveRequest,
    ) -> ChangeFuture<'_, Result<RedriveDryRun, RedriveError>>;

    /// The running jobs and the last ended ones, newest first.
    fn redrives(&self) -> Vec<RedriveJob>;

    /// A vhost of which this node, or no node, can tell the jobs yet: it has no leader, or this one has just begun to lead.
    fn vhost_with_unknown_redrives(&self) -> Option<String>;

    /// Cancels a job; moved messages stay moved. False if the job is not running.
    fn cancel_redrive(&self, id: u64) -> ChangeFuture<'_, Result<bool, RedriveError>>;
}

//! What is in queues, looked at without anybody noticing.

use std::pin::Pin;

use broker::refusal::Refusal;
use broker::time::Now;
use broker::{BrowseCursor, BrowsedMessage, ExpiryCursor, ExpirySlice, QueueNumber};

use crate::Caller;

/// What was looked at, once it has been read.
pub type Looked<'a, T> = Pin<Box<dyn Future<Output = Result<T, LookRefused>> + Send + 'a>>;

/// Some messages of a queue, one behind the other.
#[derive(Clone, Debug)]
pub struct BrowseBatch {
    /// The queue's number.
    pub queue: QueueNumber,
    /// The messages; there may be none, and still others behind.
    pub messages: Vec<BrowsedMessage>,
    /// Where to go on; none at the end.
    pub next: Option<BrowseCursor>,
    /// How many there are in that state.
    pub total: u64,
    /// When it was so.
    pub now: Now,
}

/// Why messages are not shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LookRefused {
    /// There is no such queue, or no such vhost.
    NoSuchQueue,
    /// The user has no permissions in the vhost.
    NoPermissions,
    /// The user may not read from the queue: what AMQP would tell him.
    Refused(Refusal),
    /// What is on disk cannot be read: a sentence for whoever asked.
    Unreadable(String),
}

/// When some of the messages that wait in a queue expire.
#[derive(Clone, Debug)]
pub struct ExpiryBatch {
    /// The messages, and where to go on.
    pub slice: ExpirySlice,
    /// The TTL of all messages that is in force.
    pub message_ttl_ms: Option<u64>,
    /// When it was so.
    pub now: Now,
}

/// Messages in queues.
pub trait Browse {
    /// Looks at messages of a queue from a cursor on, at most so many and no more than in one go, if the
    /// caller may read from it.
    fn browse(
        &self,
        caller: &Caller,
        vhost: &str,
        queue: &str,
        from: BrowseCursor,
        count: usize,
    ) -> Looked<'_, BrowseBatch>;

    /// Looks at when some of the messages that wait in a queue expire, from a cursor on.
    fn expiry(&self, vhost: &str, queue: &str, from: ExpiryCursor) -> Looked<'_, ExpiryBatch>;
}

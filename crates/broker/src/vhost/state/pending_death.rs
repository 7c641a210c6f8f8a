//! A message that has died and has not yet been dead-lettered, kept or dropped.

use std::sync::Arc;

use super::recorded_death::SettledBy;
use crate::dead_letter::DeathReason;
use crate::ids::QueueId;
use crate::message::Message;
use crate::queue::Entry;

/// A message that died.
#[derive(Debug)]
pub(crate) struct PendingDeath {
    /// The queue in which the message died.
    pub(crate) queue: QueueId,
    pub(crate) reason: DeathReason,
    /// Time of death, in milliseconds since the Unix epoch.
    pub(crate) time_ms: u64,
    pub(crate) dead: DeadMessage,
    /// The settlement that ended the message, if a client did and the history of dead letters is on.
    pub(crate) settled_by: Option<Arc<SettledBy>>,
    /// True if the queue keeps the message already, and offers the dead letter again.
    pub(crate) is_retry: bool,
}

/// A dead message, as its queue had it.
#[derive(Debug)]
pub(crate) enum DeadMessage {
    /// The message was in the queue, which counts it as dying.
    Entry(Entry),
    /// The queue refused the message (`reject-publish-dlx`).
    Refused(Message),
}

impl PendingDeath {
    #[inline]
    pub(crate) fn message(&self) -> &Message {
        self.dead.message()
    }

    /// The queue and the entry that the queue still counts, unless the queue refused the message.
    #[inline]
    pub(crate) fn entry(&self) -> Option<(QueueId, &Entry)> {
        match &self.dead {
            DeadMessage::Entry(entry) => Some((self.queue, entry)),
            DeadMessage::Refused(_) => None,
        }
    }
}

impl DeadMessage {
    #[inline]
    pub(crate) fn message(&self) -> &Message {
        match self {
            Self::Entry(entry) => &entry.message,
            Self::Refused(message) => message,
        }
    }
}

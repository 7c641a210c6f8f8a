//! A message that has died and has not been dead-lettered, kept or dropped yet.

use crate::dead_letter::DeathReason;
use crate::ids::QueueId;
use crate::message::Message;
use crate::queue::Entry;

/// A message that died.
#[derive(Debug)]
pub(crate) struct PendingDeath {
    /// The queue it died in.
    pub(crate) queue: QueueId,
    pub(crate) reason: DeathReason,
    /// Time of death, in seconds since the Unix epoch.
    pub(crate) time_s: u64,
    pub(crate) dead: DeadMessage,
}

/// A dead message, by what its queue had of it.
#[derive(Debug)]
pub(crate) enum DeadMessage {
    /// The queue had the message and counts it as dying.
    Entry(Entry),
    /// The queue refused the message (`reject-publish-dlx`).
    Refused(Message),
}

impl PendingDeath {
    pub(crate) fn message(&self) -> &Message {
        self.dead.message()
    }

    /// The queue with the message that it still counts, unless the queue refused it.
    pub(crate) fn entry(&self) -> Option<(QueueId, &Entry)> {
        match &self.dead {
            DeadMessage::Entry(entry) => Some((self.queue, entry)),
            DeadMessage::Refused(_) => None,
        }
    }
}

impl DeadMessage {
    pub(crate) fn message(&self) -> &Message {
        match self {
            Self::Entry(entry) => &entry.message,
            Self::Refused(message) => message,
        }
    }
}

//! A message that has died and has not been dead-lettered, kept or dropped yet.

use crate::dead_letter::DeathReason;
use crate::ids::QueueId;
use crate::message::Message;
use crate::queue::Entry;

/// A message that died.
#[derive(Debug)]
pub(in crate::vhost) struct PendingDeath {
    /// The queue it died in.
    pub(in crate::vhost) queue: QueueId,
    pub(in crate::vhost) reason: DeathReason,
    /// When it died, in seconds since the Unix epoch.
    pub(in crate::vhost) time_s: u64,
    pub(in crate::vhost) dead: DeadMessage,
}

/// A dead message, by what its queue had of it.
#[derive(Debug)]
pub(in crate::vhost) enum DeadMessage {
    /// The queue had the message and counts it as dying.
    Entry(Entry),
    /// The queue refused the message (`reject-publish-dlx`).
    Refused(Message),
}

impl PendingDeath {
    pub(in crate::vhost) fn message(&self) -> &Message {
        self.dead.message()
    }

    /// The queue with the message that it still counts, unless the queue refused it.
    pub(in crate::vhost) fn entry(&self) -> Option<(QueueId, &Entry)> {
        match &self.dead {
            DeadMessage::Entry(entry) => Some((self.queue, entry)),
            DeadMessage::Refused(_) => None,
        }
    }
}

impl DeadMessage {
    pub(in crate::vhost) fn message(&self) -> &Message {
        match self {
            Self::Entry(entry) => &entry.message,
            Self::Refused(message) => message,
        }
    }
}

//! The name of a message over HTTP: it stays while the message is in its queue, and no other message of
//! the queue ever has it.

use std::fmt;
use std::str::FromStr;

use broker::{EntryId, QueueNumber};

/// A message in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MessageId {
    /// The queue's number, so that a queue that is declared again has other messages.
    pub queue: QueueNumber,
    /// The message there.
    pub entry: EntryId,
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.queue, self.entry.seq, self.entry.level)
    }
}

/// A text names no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMessageId;

impl FromStr for MessageId {
    type Err = NoMessageId;

    fn from_str(text: &str) -> Result<Self, NoMessageId> {
        let mut parts = text.split('-');
        let (Some(queue), Some(seq), Some(level), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(NoMessageId);
        };
        let queue = QueueNumber(queue.parse().map_err(|_| NoMessageId)?);
        let seq = seq.parse().map_err(|_| NoMessageId)?;
        let level = level.parse().map_err(|_| NoMessageId)?;
        Ok(Self { queue, entry: EntryId { seq, level } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_comes_back_as_the_text_that_it_was() {
        let id = MessageId { queue: QueueNumber(3), entry: EntryId { seq: u64::MAX, level: 255 } };
        assert_eq!(id.to_string(), "3-18446744073709551615-255");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "1", "1-2", "1-2-3-4", "1-2-256", "a-2-3", "1--3"] {
            assert_eq!(text.parse::<MessageId>(), Err(NoMessageId), "{text}");
        }
    }
}

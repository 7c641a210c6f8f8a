//! The id of a message over HTTP: stable while the message is in its queue, and never reused by another message
//! of the queue.

use std::fmt;
use std::str::FromStr;

use broker::{EntryId, QueueNumber};

/// A message in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MessageId {
    /// Number of the queue, which differs for a queue that is declared again.
    pub queue: QueueNumber,
    /// The entry in the queue.
    pub entry: EntryId,
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.queue, self.entry.seq, self.entry.level)
    }
}

/// A text that is not the id of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseMessageIdError;

impl FromStr for MessageId {
    type Err = ParseMessageIdError;

    fn from_str(text: &str) -> Result<Self, ParseMessageIdError> {
        let mut parts = text.split('-');
        let (Some(queue), Some(seq), Some(level), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(ParseMessageIdError);
        };
        let queue = QueueNumber(queue.parse().map_err(|_| ParseMessageIdError)?);
        let seq = seq.parse().map_err(|_| ParseMessageIdError)?;
        let level = level.parse().map_err(|_| ParseMessageIdError)?;
        Ok(Self { queue, entry: EntryId { seq, level } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_id_is_parsed_as_it_is_printed() {
        let id = MessageId { queue: QueueNumber(3), entry: EntryId { seq: u64::MAX, level: 255 } };
        assert_eq!(id.to_string(), "3-18446744073709551615-255");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "1", "1-2", "1-2-3-4", "1-2-256", "a-2-3", "1--3"] {
            assert_eq!(text.parse::<MessageId>(), Err(ParseMessageIdError), "{text}");
        }
    }
}

//! Types for browsing the messages of a queue: the requested state and position, and the known facts of each
//! message. Browsing changes nothing.

use std::fmt;
use std::str::FromStr;

use crate::ids::{ChannelNumber, ConnectionId, DeliveryTag, PageId};
use crate::message::Name;
use crate::page::{PageLocation, PagedMessage, PagedMeta};
use crate::queue::Entry;
use crate::time::Time;

/// The state of a message in its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageState {
    /// Waits for a consumer.
    Ready,
    /// Delivered and not settled.
    Unacknowledged,
    /// Returned, and waits to become ready again.
    Delayed,
    /// Dead, and waits until its dead letter can be delivered.
    Dead,
}

impl MessageState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Ready, Self::Unacknowledged, Self::Delayed, Self::Dead];

    /// The state as it appears in the HTTP API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Unacknowledged => "unacknowledged",
            Self::Delayed => "delayed",
            Self::Dead => "dead",
        }
    }

    /// Parses the form that `as_str` gives.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// The position up to which messages of a queue have been browsed. Clients receive it as text and send it
/// back; any text that parses is a valid position between two messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BrowseCursor(pub(crate) CursorPosition);

/// The last browsed message, identified by the sort key of its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CursorPosition {
    /// Sequence number in the order of delivery.
    Ready(u64),
    /// The holder of the delivery.
    Unacknowledged(Holder),
    /// Time at which the message becomes ready again, and its sequence number.
    Delayed(Time, u64),
    /// Number of the message among the deaths of its queue.
    Dead(u64),
}

/// The holder of a delivery: connection key, channel and delivery tag. For deliveries that a transaction will
/// settle, the position in the transaction, counted from 1, replaces the tag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Holder {
    pub(crate) connection: u64,
    pub(crate) channel: ChannelNumber,
    pub(crate) in_transaction: bool,
    pub(crate) number: u64,
}

impl BrowseCursor {
    /// The position before all messages of this state.
    pub fn start(state: MessageState) -> Self {
        Self(match state {
            MessageState::Ready => CursorPosition::Ready(0),
            MessageState::Unacknowledged => CursorPosition::Unacknowledged(Holder::default()),
            MessageState::Delayed => CursorPosition::Delayed(Time::default(), 0),
            MessageState::Dead => CursorPosition::Dead(0),
        })
    }

    /// The state of the messages that the cursor moves through.
    pub fn state(self) -> MessageState {
        match self.0 {
            CursorPosition::Ready(_) => MessageState::Ready,
            CursorPosition::Unacknowledged(_) => MessageState::Unacknowledged,
            CursorPosition::Delayed(..) => MessageState::Delayed,
            CursorPosition::Dead(_) => MessageState::Dead,
        }
    }
}

impl fmt::Display for BrowseCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            CursorPosition::Ready(place) => write!(f, "r{place:x}"),
            CursorPosition::Unacknowledged(Holder {
                connection,
                channel,
                in_transaction,
                number,
            }) => {
                let in_transaction = u8::from(in_transaction);
                write!(f, "u{connection:x}.{:x}.{in_transaction}.{number:x}", channel.0)
            }
            CursorPosition::Delayed(at, seq) => write!(f, "w{:x}.{seq:x}", at.as_micros()),
            CursorPosition::Dead(count) => write!(f, "d{count:x}"),
        }
    }
}

/// The text is not a cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoCursor;

impl FromStr for BrowseCursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let mut characters = text.chars();
        let kind = characters.next().ok_or(NoCursor)?;
        let numbers = characters.as_str().split('.');
        let numbers = numbers.map(|number| u64::from_str_radix(number, 16).map_err(|_| NoCursor));
        let numbers = numbers.collect::<Result<Vec<u64>, NoCursor>>()?;
        Ok(Self(match (kind, numbers.as_slice()) {
            ('r', [place]) => CursorPosition::Ready(*place),
            ('u', [connection, channel, in_transaction, number]) => {
                let channel = u16::try_from(*channel).map_err(|_| NoCursor)?;
                CursorPosition::Unacknowledged(Holder {
                    connection: *connection,
                    channel: ChannelNumber(channel),
                    in_transaction: *in_transaction > 0,
                    number: *number,
                })
            }
            ('w', [at, seq]) => CursorPosition::Delayed(Time::from_micros(*at), *seq),
            ('d', [count]) => CursorPosition::Dead(*count),
            _ => return Err(NoCursor),
        }))
    }
}

/// A message found by browsing.
#[derive(Clone, Debug)]
pub struct BrowsedMessage {
    /// The message as the queue has it.
    pub entry: Entry,
    /// Expiry time if the message stays in its queue; for a delivery, the expiry time if it were requeued.
    pub deadline: Option<Time>,
    /// True if the broker does not know an earlier delivery but cannot exclude one, because it crashed.
    pub may_have_been_delivered: bool,
    /// The page that holds the message, with its facts there.
    pub paged: Option<(PageId, PagedMeta)>,
    /// The holder, if the message is delivered and not settled.
    pub held_by: Option<DeliveryDetails>,
    /// Time at which the message becomes ready again, if it is delayed.
    pub ready_at: Option<Time>,
    /// The position after this message.
    pub behind: BrowseCursor,
}

impl BrowsedMessage {
    /// True if the next delivery, or the current one, carries the redelivered flag.
    pub fn is_redelivered(&self) -> bool {
        self.entry.acquired_count > u32::from(self.held_by.is_some())
    }

    /// True if the redelivered flag is set only because the broker cannot exclude a delivery before it crashed.
    pub fn is_redelivery_uncertain(&self) -> bool {
        let earlier = self.entry.acquired_count.saturating_sub(u32::from(self.held_by.is_some()));
        self.may_have_been_delivered && earlier == 1
    }

    /// The message as its page stores it.
    pub fn as_paged(&self) -> Option<PagedMessage> {
        let (_, meta) = self.paged?;
        Some(PagedMessage { meta, message: self.entry.message.clone() })
    }
}

/// The holder of a delivery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryDetails {
    /// The connection.
    pub connection: ConnectionId,
    /// The connection's name.
    pub connection_name: Name,
    /// The channel on that connection.
    pub channel: ChannelNumber,
    /// The delivery tag on that channel.
    pub tag: DeliveryTag,
    /// The consumer; none if it is cancelled or the delivery came from `basic.get`.
    pub consumer_tag: Option<Name>,
}

/// Consecutive messages of a queue.
#[derive(Clone, Debug)]
pub struct Browsed {
    /// The messages. The list may be empty although more messages follow.
    pub messages: Vec<BrowsedMessage>,
    /// The position to continue from; none at the end.
    pub next: Option<BrowseCursor>,
    /// The page that must be read before browsing can continue.
    pub page: Option<PageLocation>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_survives_its_text_form() {
        let holder = Holder {
            connection: u64::MAX,
            channel: ChannelNumber(7),
            in_transaction: true,
            number: 12,
        };
        for passed in [
            CursorPosition::Ready(u64::MAX),
            CursorPosition::Unacknowledged(holder),
            CursorPosition::Delayed(Time::MAX, 3),
            CursorPosition::Dead(255),
        ] {
            let cursor = BrowseCursor(passed);
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for state in MessageState::ALL {
            assert_eq!(BrowseCursor::start(state).state(), state);
            assert_eq!(MessageState::parse(state.as_str()), Some(state));
        }
    }

    #[test]
    fn text_that_is_no_cursor_is_refused() {
        for text in
            ["", "r", "r1.2", "u1.2.3", "u1.10000.0.1", "w1", "q1", "r-1", "d10000000000000000"]
        {
            assert_eq!(text.parse::<BrowseCursor>(), Err(NoCursor), "{text}");
        }
    }
}

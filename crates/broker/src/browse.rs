//! What a look at the messages of a queue wants and brings: which messages, from where on, and what
//! is known of each. Looking changes nothing.

use std::fmt;
use std::str::FromStr;

use crate::ids::{ChannelNumber, ConnectionId, DeliveryTag, PageId};
use crate::message::Name;
use crate::page::{PageAt, PagedFacts, PagedMessage};
use crate::queue::Entry;
use crate::time::Time;

/// How messages are in their queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageState {
    /// They wait for a consumer.
    Ready,
    /// They are delivered and not settled.
    Unacknowledged,
    /// They were returned and wait to be ready again.
    Delayed,
    /// They died and wait for somewhere to go.
    Dead,
}

impl MessageState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ready, Self::Unacknowledged, Self::Delayed, Self::Dead];

    /// A word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Unacknowledged => "unacknowledged",
            Self::Delayed => "delayed",
            Self::Dead => "dead",
        }
    }

    /// What a word stands for.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// Up to where messages of a queue have been looked at. As text it goes out to clients and comes back;
/// whatever they make of it, it is a place in front of some messages and behind others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BrowseCursor(pub(crate) Passed);

/// The last message that was looked at, by what orders those of its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Passed {
    /// Its place in the order of delivery.
    Ready(u64),
    /// Who holds it.
    Unacknowledged(Holder),
    /// When it is ready again, and its number.
    Delayed(Time, u64),
    /// How many died before and with it.
    Dead(u64),
}

/// Who holds a delivery: the key of a connection, a channel of it, and the tag; or, for those that a
/// transaction will settle, how many the transaction has before and with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Holder {
    pub(crate) connection: u64,
    pub(crate) channel: ChannelNumber,
    pub(crate) in_transaction: bool,
    pub(crate) number: u64,
}

impl BrowseCursor {
    /// In front of all messages of that state.
    pub fn start(state: MessageState) -> Self {
        Self(match state {
            MessageState::Ready => Passed::Ready(0),
            MessageState::Unacknowledged => Passed::Unacknowledged(Holder::default()),
            MessageState::Delayed => Passed::Delayed(Time::default(), 0),
            MessageState::Dead => Passed::Dead(0),
        })
    }

    /// The state of the messages that it is among.
    pub fn state(self) -> MessageState {
        match self.0 {
            Passed::Ready(_) => MessageState::Ready,
            Passed::Unacknowledged(_) => MessageState::Unacknowledged,
            Passed::Delayed(..) => MessageState::Delayed,
            Passed::Dead(_) => MessageState::Dead,
        }
    }
}

impl fmt::Display for BrowseCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Passed::Ready(place) => write!(f, "r{place:x}"),
            Passed::Unacknowledged(Holder { connection, channel, in_transaction, number }) => {
                let in_transaction = u8::from(in_transaction);
                write!(f, "u{connection:x}.{:x}.{in_transaction}.{number:x}", channel.0)
            }
            Passed::Delayed(at, seq) => write!(f, "w{:x}.{seq:x}", at.as_micros()),
            Passed::Dead(count) => write!(f, "d{count:x}"),
        }
    }
}

/// A text is no cursor.
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
            ('r', [place]) => Passed::Ready(*place),
            ('u', [connection, channel, in_transaction, number]) => {
                let channel = u16::try_from(*channel).map_err(|_| NoCursor)?;
                Passed::Unacknowledged(Holder {
                    connection: *connection,
                    channel: ChannelNumber(channel),
                    in_transaction: *in_transaction > 0,
                    number: *number,
                })
            }
            ('w', [at, seq]) => Passed::Delayed(Time::from_micros(*at), *seq),
            ('d', [count]) => Passed::Dead(*count),
            _ => return Err(NoCursor),
        }))
    }
}

/// A message in its queue.
#[derive(Clone, Debug)]
pub struct BrowsedMessage {
    /// The message as the queue has it.
    pub entry: Entry,
    /// When it expires, if it is there until then; of a delivery, when it would if it came back.
    pub deadline: Option<Time>,
    /// The page that it waits in, and what is known of it there.
    pub paged: Option<(PageId, PagedFacts)>,
    /// Who has it, if it is delivered and not settled.
    pub held_by: Option<HeldBy>,
    /// When it is ready again, if it is delayed.
    pub ready_at: Option<Time>,
    /// Where to go on behind it.
    pub behind: BrowseCursor,
}

impl BrowsedMessage {
    /// Whether who gets it is told that it was delivered before, or was told so.
    pub fn is_redelivered(&self) -> bool {
        self.entry.acquired_count > u32::from(self.held_by.is_some())
    }

    /// The message as its page has it.
    pub fn as_paged(&self) -> Option<PagedMessage> {
        let (_, facts) = self.paged?;
        Some(PagedMessage { facts, message: self.entry.message.clone() })
    }
}

/// Who has a delivery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldBy {
    /// The connection.
    pub connection: ConnectionId,
    /// What people call it.
    pub connection_name: Name,
    /// Its channel.
    pub channel: ChannelNumber,
    /// The delivery there.
    pub tag: DeliveryTag,
    /// The consumer, as long as there is one.
    pub consumer_tag: Option<Name>,
}

/// Some messages of a queue, one behind the other.
#[derive(Clone, Debug)]
pub struct Browsed {
    /// The messages. There may be none, and still others behind.
    pub messages: Vec<BrowsedMessage>,
    /// Where to go on; none at the end.
    pub next: Option<BrowseCursor>,
    /// The page that has to be read to go on there.
    pub page: Option<PageAt>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_the_text_that_it_was() {
        let holder = Holder {
            connection: u64::MAX,
            channel: ChannelNumber(7),
            in_transaction: true,
            number: 12,
        };
        for passed in [
            Passed::Ready(u64::MAX),
            Passed::Unacknowledged(holder),
            Passed::Delayed(Time::MAX, 3),
            Passed::Dead(255),
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
    fn what_is_no_cursor_is_none() {
        for text in
            ["", "r", "r1.2", "u1.2.3", "u1.10000.0.1", "w1", "q1", "r-1", "d10000000000000000"]
        {
            assert_eq!(text.parse::<BrowseCursor>(), Err(NoCursor), "{text}");
        }
    }
}

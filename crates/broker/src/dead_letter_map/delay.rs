//! Delays of the map: places where messages wait for a time before they go on.

use crate::message::Name;
use crate::time::Time;

/// A place where messages wait, and where they go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapDelay {
    /// The place.
    pub at: DelayPlace,
    /// Indices of the queues that the messages reach, sorted by name: the queue itself for a delay in a queue.
    pub to: Vec<usize>,
    /// True if every message reaches all of these queues, and no other.
    pub is_certain: bool,
    /// True if the messages can reach any queue, because a routing key may be a queue name.
    pub is_anywhere: bool,
    /// Messages that wait there now.
    pub messages: u64,
    /// The time at which the next of them goes on.
    pub next_at: Option<Time>,
}

/// The place where messages wait.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DelayPlace {
    /// A delayed exchange, by name.
    Exchange(Name),
    /// Returned messages in the queue with this index, before their next delivery.
    Retry(usize),
    /// Messages in the queue with this index, before their delivery time.
    Schedule(usize),
}

impl DelayPlace {
    /// The word in the HTTP API.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Exchange(_) => "exchange",
            Self::Retry(_) => "retry",
            Self::Schedule(_) => "schedule",
        }
    }

    /// The index of the queue; none for an exchange.
    pub const fn queue(&self) -> Option<usize> {
        match self {
            Self::Exchange(_) => None,
            Self::Retry(queue) | Self::Schedule(queue) => Some(*queue),
        }
    }
}

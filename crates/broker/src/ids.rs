//! Identities in the core. Each has a type of its own, so that a delivery tag cannot be passed where a
//! sequence number is expected.
//!
//! Keys of queues, exchanges and connections carry a generation: the key of a deleted object never finds its
//! successor.

use std::fmt;
use std::sync::Arc;

/// The name of a resource; clones share the text.
pub type Name = Arc<str>;

slotmap::new_key_type! {
    /// A queue of a vhost. A stale key finds nothing.
    pub struct QueueId;
    /// An exchange of a vhost. A stale key finds nothing.
    pub struct ExchangeId;
    /// A client connection to a vhost. A stale key finds nothing.
    pub struct ConnectionId;
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

number! {
    /// The number of a channel on its connection, as on the wire: 1..=65535.
    ChannelNumber(u16)
}
number! {
    /// A delivery tag: per channel, from 1, without gaps.
    DeliveryTag(u64)
}
number! {
    /// The number of a publish on a channel in confirm mode: from 1.
    PublishSeq(u64)
}
number! {
    /// A consumer of one queue; never reused within that queue.
    ConsumerId(u64)
}
number! {
    /// A redrive job; never reused within a vhost.
    RedriveId(u64)
}
number! {
    /// A position in the vhost's log; every record has one, in the order of the effects.
    Lsn(u64)
}
number! {
    /// The number of a queue in the log; never reused within the vhost.
    QueueNumber(u64)
}
number! {
    /// A page, a run of messages of one queue written to disk together; never reused within the vhost.
    PageId(u64)
}

/// One message in one queue: its sequence number and its priority level.
///
/// Entry ids sort by arrival in the queue; messages with equal deadlines expire in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntryId {
    /// Sequence number of arrival in the queue, from 1.
    pub seq: u64,
    /// Priority level; 0 is the lowest.
    pub level: u8,
}

//! The identities of the core. Each is a type of its own, so that a delivery tag cannot be passed
//! where a sequence is meant.
//!
//! Keys of queues, exchanges and connections carry a generation: the key of something deleted never
//! reaches what took its place.

use std::fmt;
use std::sync::Arc;

/// The name of a resource, shared instead of copied.
pub type Name = Arc<str>;

slotmap::new_key_type! {
    /// A queue of this vhost. A stale key finds nothing.
    pub struct QueueId;
    /// An exchange of this vhost. A stale key finds nothing.
    pub struct ExchangeId;
    /// A client connection to this vhost. A stale key finds nothing.
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
    /// A consumer of one queue; never used again within that queue.
    ConsumerId(u64)
}
number! {
    /// A position in the vhost's log: every durable effect has one, in the order of `apply`.
    Lsn(u64)
}
number! {
    /// Names a queue in the log; never used again within the vhost.
    QueueNumber(u64)
}
number! {
    /// Messages of a queue that were put aside together; never used again within the vhost.
    PageId(u64)
}

/// One message in one queue: its place in the order of arrival and the priority level it waits at.
///
/// The order of `EntryId`s is the order of arrival in the queue; equal deadlines are served in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntryId {
    /// Order of arrival in the queue, from 1.
    pub seq: u64,
    /// Priority level; 0 is the lowest.
    pub level: u8,
}

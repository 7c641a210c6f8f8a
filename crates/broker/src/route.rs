//! Where a message goes.

use smallvec::SmallVec;

use crate::ids::{ChannelNumber, ConnectionId, QueueId};

/// A channel of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct At {
    pub(crate) connection: ConnectionId,
    pub(crate) channel: ChannelNumber,
}

/// Where a message goes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Route {
    /// Its queues, each once, in a stable order.
    pub(crate) queues: SmallVec<[QueueId; 4]>,
    /// Channels that wait for direct replies under one of its keys, each once.
    pub(crate) requesters: SmallVec<[At; 1]>,
    /// It depends on nothing but the exchange, the key and the topology.
    pub(crate) can_be_remembered: bool,
}

impl Route {
    /// Whether it leads nowhere.
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.requesters.is_empty()
    }
}

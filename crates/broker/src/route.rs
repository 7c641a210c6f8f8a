//! The route of a message: the queues and the direct-reply requesters that receive it, and the delayed exchanges
//! that hold it.

use smallvec::SmallVec;

use crate::channel_key::ChannelKey;
use crate::ids::{ExchangeId, QueueId};

/// The destinations of a message.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Route {
    /// The queues, each once, in a stable order.
    pub(crate) queues: SmallVec<[QueueId; 4]>,
    /// Channels that wait for direct replies under one of the message's keys, each once.
    pub(crate) requesters: SmallVec<[ChannelKey; 1]>,
    /// The delayed exchanges that hold the message before they route it, each once.
    pub(crate) holders: Vec<ExchangeId>,
    /// True if the message reached a delayed exchange, which holds it or not.
    pub(crate) reaches_delayed: bool,
    /// True if the route depends only on the exchange, the key and the topology, and may be cached.
    pub(crate) can_be_remembered: bool,
}

impl Route {
    /// True if the route has no destination.
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.requesters.is_empty() && self.holders.is_empty()
    }
}

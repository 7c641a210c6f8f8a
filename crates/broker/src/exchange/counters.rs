//! Message counters of one exchange.

use crate::ids::ConnectionId;
use crate::message::RoutingKey;

/// Counters of the messages that an exchange routed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ExchangeCounters {
    /// Messages that clients published to the exchange.
    pub published_in: u64,
    /// Queues that these messages were routed to, summed over all messages.
    pub published_out: u64,
    /// Unroutable messages that were returned to their publishers.
    pub returned_unroutable: u64,
    /// Unroutable messages that were dropped.
    pub dropped_unroutable: u64,
    /// Messages that at least one full queue refused.
    pub refused: u64,
}

/// The last publish to an exchange that reached no queue and was dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnroutablePublish {
    /// Routing key of the message, at most 255 bytes.
    pub routing_key: RoutingKey,
    /// The connection that published it.
    pub connection: ConnectionId,
}

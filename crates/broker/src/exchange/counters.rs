//! Message counters of one exchange.

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

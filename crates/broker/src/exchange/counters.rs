//! Counters of one exchange.

/// What an exchange has routed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ExchangeCounters {
    /// Messages that clients published to it.
    pub published_in: u64,
    /// Queues that these were routed to, in all.
    pub published_out: u64,
    /// Those that went nowhere and came back.
    pub returned_unroutable: u64,
    /// Those that went nowhere and were dropped.
    pub dropped_unroutable: u64,
}

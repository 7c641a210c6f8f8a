//! The types of queues and what each can do.
//!
//! Classic and quorum queues are the same code; where RabbitMQ's types differ, the difference is a
//! question answered here and asked where it matters.

use super::consumers::Activation;
use super::ready::ReturnTo;
use super::totals::CountedBytes;
use crate::limits::{QUORUM_PRIORITY_DEFAULT, QUORUM_PRIORITY_MAX};
use crate::queue_type::QueueType;

impl QueueType {
    const fn is_quorum(self) -> bool {
        matches!(self, Self::Quorum)
    }

    /// May be non-durable, exclusive, auto-delete and server-named (spec 6.3).
    pub(crate) const fn may_be_transient(self) -> bool {
        !self.is_quorum()
    }

    /// Keeps every message over a restart, whatever its delivery mode.
    pub(crate) const fn persists_everything(self) -> bool {
        self.is_quorum()
    }

    /// Enforces the exclusive flag of `basic.consume` (spec 7.3).
    pub(crate) const fn has_exclusive_consumers(self) -> bool {
        !self.is_quorum()
    }

    /// Counts deliveries, tells consumers, and drops what was returned too often (spec 8.1).
    pub(crate) const fn counts_deliveries(self) -> bool {
        self.is_quorum()
    }

    /// Returns deliveries that are not acknowledged in time (spec 7.4).
    pub(crate) const fn has_consumer_timeout(self) -> bool {
        self.is_quorum()
    }

    /// An unacknowledged `basic.get` keeps an unused queue from expiring (spec 2).
    pub(crate) const fn get_holds_lease(self) -> bool {
        self.is_quorum()
    }

    /// `basic.get` works beside a single active consumer (spec 7.3).
    pub(crate) const fn allows_get_with_single_active_consumer(self) -> bool {
        !self.is_quorum()
    }

    /// `queue.delete` may ask for if-unused and if-empty (spec 6.5).
    pub(crate) const fn allows_conditional_delete(self) -> bool {
        !self.is_quorum()
    }

    /// Takes dead letters above a `reject-publish` limit instead of losing them (spec 3.3).
    pub(crate) const fn takes_dead_letters_over_limit(self) -> bool {
        self.is_quorum()
    }

    pub(crate) const fn return_to(self) -> ReturnTo {
        if self.is_quorum() { ReturnTo::Front } else { ReturnTo::OriginalPlace }
    }

    pub(crate) const fn counted_bytes(self) -> CountedBytes {
        if self.is_quorum() { CountedBytes::BodyAndProperties } else { CountedBytes::Body }
    }

    pub(crate) const fn activation(self, single_active_consumer: bool) -> Activation {
        match (single_active_consumer, self) {
            (false, _) => Activation::All,
            (true, Self::Classic) => Activation::OldestFirst,
            (true, Self::Quorum) => Activation::PriorityFirst,
        }
    }

    /// The level at which a message of `priority` waits (spec 8.2).
    pub(crate) fn level(self, priority: Option<u8>, max_priority: Option<u8>) -> u8 {
        match self {
            // 0 behaves like 1.
            Self::Classic => match max_priority {
                Some(max) => priority.unwrap_or(0).min(max.max(1)),
                None => 0,
            },
            Self::Quorum => priority.unwrap_or(QUORUM_PRIORITY_DEFAULT).min(QUORUM_PRIORITY_MAX),
        }
    }
}

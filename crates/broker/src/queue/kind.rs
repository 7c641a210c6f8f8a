//! Abilities of the queue types.
//!
//! Classic and quorum queues share their code. Each difference between RabbitMQ's types is a method here,
//! asked where the difference matters. See `docs/concepts/queues.md`.

use super::consumers::Activation;
use super::ready::ReturnTo;
use crate::entry::totals::CountedBytes;
use crate::limits::{QUORUM_PRIORITY_DEFAULT, QUORUM_PRIORITY_MAX};
use crate::queue_type::QueueType;

impl QueueType {
    const fn is_quorum(self) -> bool {
        matches!(self, Self::Quorum)
    }

    /// Queues may be non-durable, exclusive, auto-delete and server-named.
    pub(crate) const fn may_be_transient(self) -> bool {
        !self.is_quorum()
    }

    /// All messages survive a restart, independent of their delivery mode.
    pub(crate) const fn persists_everything(self) -> bool {
        self.is_quorum()
    }

    /// In a replicated vhost, deliveries wait until a majority has them on disk.
    pub(crate) const fn delivers_after_commit(self) -> bool {
        self.is_quorum()
    }

    /// The exclusive flag of `basic.consume` is enforced.
    pub(crate) const fn has_exclusive_consumers(self) -> bool {
        !self.is_quorum()
    }

    /// Deliveries are counted and reported to consumers, and messages returned too often die.
    pub(crate) const fn counts_deliveries(self) -> bool {
        self.is_quorum()
    }

    /// Deliveries that are not acknowledged in time return to the queue.
    pub(crate) const fn has_consumer_timeout(self) -> bool {
        self.is_quorum()
    }

    /// An unacknowledged `basic.get` keeps an unused queue from expiring.
    pub(crate) const fn get_holds_lease(self) -> bool {
        self.is_quorum()
    }

    /// `basic.get` is allowed beside a single active consumer.
    pub(crate) const fn allows_get_with_single_active_consumer(self) -> bool {
        !self.is_quorum()
    }

    /// `queue.delete` may use if-unused and if-empty.
    pub(crate) const fn allows_conditional_delete(self) -> bool {
        !self.is_quorum()
    }

    /// Dead letters are accepted above a `reject-publish` limit instead of being dropped.
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
            (true, Self::Classic) => Activation::UntilGone,
            (true, Self::Quorum) => Activation::PriorityFirst,
        }
    }

    /// The level at which a message of `priority` waits. See `docs/concepts/priorities.md`.
    pub(crate) fn level(self, priority: Option<u8>, max_priority: Option<u8>) -> u8 {
        match self {
            // A maximum of 0 behaves like 1.
            Self::Classic => match max_priority {
                Some(max) => priority.unwrap_or(0).min(max.max(1)),
                None => 0,
            },
            Self::Quorum => priority.unwrap_or(QUORUM_PRIORITY_DEFAULT).min(QUORUM_PRIORITY_MAX),
        }
    }
}

//! The settings in force for a queue: its arguments and the policies on it, resolved key by key.
//!
//! The result replaces the old one as a whole, so that a policy that sets a limit and its overflow
//! mode never acts with half of it.

use std::sync::Arc;

use super::arguments::QueueArguments;
use super::entry::Front;
use super::resolved_keys::{QueueDefaults, ResolvedKeys};
use crate::dead_letter::DeadLetterTarget;
use crate::policy::InForce;
use crate::policy::decision::Decision;
use crate::setting::{
    DeadLetterStrategy, DelayedRetryType, ExpiryOrder, Overflow, PolicyKey, Word,
};
use crate::time::Time;

/// The settings in force for a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// TTL of every message, milliseconds.
    pub message_ttl_ms: Option<u64>,
    /// TTL of the unused queue, milliseconds.
    pub expires_ms: Option<u64>,
    /// Where dead letters go.
    pub dead_letter: Option<DeadLetterTarget>,
    /// Whether a dead letter that has nowhere to go is kept.
    pub dead_letter_strategy: DeadLetterStrategy,
    /// Messages that may wait.
    pub max_length: Option<u64>,
    /// Bytes of messages that may wait.
    pub max_length_bytes: Option<u64>,
    /// What happens above these limits.
    pub overflow: Overflow,
    /// Failed deliveries a message may have; none is unlimited.
    pub delivery_limit: Option<u32>,
    /// How long a delivery may stay unacknowledged, milliseconds.
    pub consumer_timeout_ms: Option<u64>,
    /// How returned messages are delayed.
    pub delayed_retry: Option<DelayedRetry>,
    /// Whether expiry is exact or at the head only.
    pub expiry_order: ExpiryOrder,
}

/// Delayed retry of a quorum queue (spec 8.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayedRetry {
    /// Which returned messages are delayed.
    pub kind: DelayedRetryType,
    /// The delay after the first failed delivery, milliseconds.
    pub min_ms: u64,
    /// The longest delay, milliseconds.
    pub max_ms: u64,
}

impl DelayedRetry {
    fn of(keys: &ResolvedKeys) -> Option<Self> {
        let kind = keys.get(PolicyKey::DelayedRetryType).word()?;
        let min_ms = keys.get(PolicyKey::DelayedRetryMin).unsigned()?;
        let max_ms = keys.get(PolicyKey::DelayedRetryMax).unsigned()?;
        Some(Self { kind, min_ms, max_ms })
    }

    /// How long a message that failed `delivery_count` times waits; none if it does not.
    pub(crate) fn delay_ms(self, failed: bool, delivery_count: u32) -> Option<u64> {
        let delayed = match self.kind {
            DelayedRetryType::All => true,
            DelayedRetryType::Failed => failed,
            DelayedRetryType::Returned => !failed,
            DelayedRetryType::Disabled => false,
        };
        let delay = self.min_ms.saturating_mul(u64::from(delivery_count.max(1)));
        delayed.then(|| delay.min(self.max_ms))
    }
}

impl Settings {
    /// Resolves `arguments` and the policies in force.
    pub(crate) fn resolve(
        arguments: &QueueArguments,
        policies: &InForce,
        defaults: QueueDefaults,
    ) -> Self {
        Self::of(&ResolvedKeys::of(arguments, policies, defaults))
    }

    /// The settings of a queue whose keys are resolved.
    pub(crate) fn of(keys: &ResolvedKeys) -> Self {
        let dead_letter = keys.get(PolicyKey::DeadLetterExchange).name();
        let dead_letter = dead_letter.map(|exchange| DeadLetterTarget {
            exchange: Arc::clone(exchange),
            routing_key: keys.get(PolicyKey::DeadLetterRoutingKey).routing_key().cloned(),
        });
        let delivery_limit = keys.get(PolicyKey::DeliveryLimit).number();
        Self {
            message_ttl_ms: keys.get(PolicyKey::MessageTtl).unsigned(),
            expires_ms: keys.get(PolicyKey::Expires).unsigned(),
            dead_letter,
            dead_letter_strategy: always(keys.get(PolicyKey::DeadLetterStrategy)),
            max_length: keys.get(PolicyKey::MaxLength).unsigned(),
            max_length_bytes: keys.get(PolicyKey::MaxLengthBytes).unsigned(),
            overflow: always(keys.get(PolicyKey::Overflow)),
            // A negative limit means unlimited, and so does one that no counter reaches.
            delivery_limit: delivery_limit.and_then(|limit| u32::try_from(limit).ok()),
            consumer_timeout_ms: keys.get(PolicyKey::ConsumerTimeout).unsigned(),
            delayed_retry: DelayedRetry::of(keys),
            expiry_order: always(keys.get(PolicyKey::ExpiryOrder)),
        }
    }

    /// When a message expires that arrived then and may have an `expiration` of its own.
    pub(crate) fn deadline(&self, arrived: Time, expiration_ms: Option<u64>) -> Option<Time> {
        let ttl = match (self.message_ttl_ms, expiration_ms) {
            (Some(queue), Some(own)) => Some(queue.min(own)),
            (queue, own) => queue.or(own),
        };
        ttl.map(|millis| arrived.plus_ms(millis))
    }

    /// The deadline of a message.
    pub(super) fn deadline_of(&self, front: &Front) -> Option<Time> {
        self.deadline(front.arrived, front.expiration_ms)
    }

    /// Whether a queue with `length` messages and `bytes` waiting has more than it may.
    pub(crate) fn is_over(&self, length: u64, bytes: u64) -> bool {
        self.max_length.is_some_and(|max| length > max)
            || self.max_length_bytes.is_some_and(|max| bytes > max)
    }

    /// Whether new messages are refused rather than old ones evicted.
    pub(crate) fn rejects_publishes(&self) -> bool {
        matches!(self.overflow, Overflow::RejectPublish | Overflow::RejectPublishDlx)
    }
}

/// The word of a key that has a default.
fn always<T: TryFrom<Word>>(decision: &Decision) -> T {
    decision.word().expect("the key has a default, and its row names its list of words")
}

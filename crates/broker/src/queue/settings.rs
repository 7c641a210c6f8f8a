//! What is in force for a queue: its arguments and the policies on it, resolved key by key (`decided`).
//!
//! The result replaces the old one as a whole, so that a policy that sets a limit and its overflow
//! mode never acts with half of it.

use super::arguments::QueueArguments;
use super::decided::{Decided, QueueDefaults};
use crate::dead_letter::DeadLetterTarget;
use crate::policy::InForce;
use crate::policy::values::{DeadLetterStrategy, DelayedRetryType, ExpiryOrder, Overflow};
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
    fn of(decided: &Decided<'_>) -> Option<Self> {
        let kind = DelayedRetryType::parse(decided.delayed_retry_type.text()?)?;
        let min_ms = decided.delayed_retry_min.unsigned()?;
        let max_ms = decided.delayed_retry_max.unsigned()?;
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
    /// What `arguments` and the policies in force make together.
    pub(crate) fn resolve(
        arguments: &QueueArguments,
        policies: &InForce,
        defaults: QueueDefaults,
    ) -> Self {
        Self::of(&Decided::of(arguments, policies, defaults))
    }

    /// What was decided.
    pub(crate) fn of(decided: &Decided<'_>) -> Self {
        let dead_letter = decided.dead_letter_exchange.text().map(|exchange| DeadLetterTarget {
            exchange: String::from_utf8_lossy(exchange).into(),
            routing_key: decided.dead_letter_routing_key.text().map(Into::into),
        });
        let strategy = decided.dead_letter_strategy.text().and_then(DeadLetterStrategy::parse);
        let expiry_order = decided.expiry_order.text().and_then(ExpiryOrder::parse);
        let overflow = decided.overflow.text().and_then(Overflow::parse);
        Self {
            message_ttl_ms: decided.message_ttl.unsigned(),
            expires_ms: decided.expires.unsigned(),
            dead_letter,
            dead_letter_strategy: strategy.unwrap_or(DeadLetterStrategy::AtMostOnce),
            max_length: decided.max_length.unsigned(),
            max_length_bytes: decided.max_length_bytes.unsigned(),
            overflow: overflow.unwrap_or(Overflow::DropHead),
            // Negative is unlimited; so is anything that cannot be counted to.
            delivery_limit: decided.delivery_limit.integer().and_then(|v| u32::try_from(v).ok()),
            consumer_timeout_ms: decided.consumer_timeout.unsigned(),
            delayed_retry: DelayedRetry::of(decided),
            expiry_order: expiry_order.unwrap_or(ExpiryOrder::Deadline),
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

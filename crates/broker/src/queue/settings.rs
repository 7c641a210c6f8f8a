//! What is in force for a queue: its arguments and the policies on it, resolved key by key.
//!
//! Numbers take the lowest of all that are set, dead-letter keys prefer the argument, `overflow`
//! depends on the queue type (spec 5.3). The result replaces the old one as a whole, so that a policy
//! that sets a limit and its overflow mode never acts with half of it.

use super::arguments::QueueArguments;
use crate::dead_letter::DeadLetterTarget;
use crate::limits::{CONSUMER_TIMEOUT_MS_DEFAULT, DELIVERY_LIMIT_DEFAULT};
use crate::policy::values::{DeadLetterStrategy, DelayedRetryType, ExpiryOrder, Overflow};
use crate::policy::{Definition, PolicyKey, lower_delivery_limit};

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

/// What a node grants to queues that say nothing themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueDefaults {
    /// `consumer_timeout`, milliseconds; none disables it.
    pub consumer_timeout_ms: Option<u64>,
}

impl Default for QueueDefaults {
    fn default() -> Self {
        Self { consumer_timeout_ms: Some(CONSUMER_TIMEOUT_MS_DEFAULT) }
    }
}

impl Settings {
    /// What `arguments` and the merged policy definition make together.
    pub(crate) fn resolve(
        arguments: &QueueArguments,
        policy: &Definition,
        defaults: QueueDefaults,
    ) -> Self {
        let queue_type = arguments.queue_type;
        let lowest = |argument: Option<u64>, key| lowest(argument, policy.unsigned(key));
        let dead_letter_exchange = arguments
            .dead_letter_exchange
            .clone()
            .or_else(|| policy.text(PolicyKey::DeadLetterExchange).map(Into::into));
        let routing_key = arguments
            .dead_letter_routing_key
            .clone()
            .or_else(|| policy.text(PolicyKey::DeadLetterRoutingKey).map(Into::into));
        let overflow_policy = policy.text(PolicyKey::Overflow);
        let overflow_policy = overflow_policy.and_then(|w| Overflow::parse(w.as_bytes()));
        let overflow = if queue_type.overflow_policy_wins() {
            overflow_policy.or(arguments.overflow)
        } else {
            arguments.overflow.or(overflow_policy)
        };
        let expiry_order = arguments.expiry_order.or_else(|| {
            policy.text(PolicyKey::ExpiryOrder).and_then(|w| ExpiryOrder::parse(w.as_bytes()))
        });
        let consumer_timeout_ms = lowest(arguments.consumer_timeout_ms, PolicyKey::ConsumerTimeout)
            .or(defaults.consumer_timeout_ms)
            .filter(|_| queue_type.has_consumer_timeout());
        let mut settings = Self {
            message_ttl_ms: lowest(arguments.message_ttl_ms, PolicyKey::MessageTtl),
            expires_ms: lowest(arguments.expires_ms, PolicyKey::Expires),
            dead_letter: dead_letter_exchange
                .map(|exchange| DeadLetterTarget { exchange, routing_key }),
            dead_letter_strategy: DeadLetterStrategy::AtMostOnce,
            max_length: lowest(arguments.max_length, PolicyKey::MaxLength),
            max_length_bytes: lowest(arguments.max_length_bytes, PolicyKey::MaxLengthBytes),
            overflow: overflow.unwrap_or(Overflow::DropHead),
            delivery_limit: delivery_limit(arguments, policy),
            consumer_timeout_ms,
            delayed_retry: delayed_retry(arguments, policy),
            expiry_order: expiry_order.unwrap_or(ExpiryOrder::Deadline),
        };
        settings.dead_letter_strategy = settings.effective_strategy(arguments, policy);
        settings
    }

    /// At-least-once is in force only with a dead-letter exchange and `reject-publish`: a queue that
    /// evicts messages could not keep what it may not lose (spec 3.8).
    fn effective_strategy(
        &self,
        arguments: &QueueArguments,
        policy: &Definition,
    ) -> DeadLetterStrategy {
        let asked = arguments.dead_letter_strategy.or_else(|| {
            let word = policy.text(PolicyKey::DeadLetterStrategy)?;
            DeadLetterStrategy::parse(word.as_bytes())
        });
        let keeps = self.dead_letter.is_some() && self.overflow == Overflow::RejectPublish;
        match asked {
            Some(DeadLetterStrategy::AtLeastOnce) if keeps => DeadLetterStrategy::AtLeastOnce,
            _ => DeadLetterStrategy::AtMostOnce,
        }
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

fn lowest(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn delivery_limit(arguments: &QueueArguments, policy: &Definition) -> Option<u32> {
    if !arguments.queue_type.counts_deliveries() {
        return None;
    }
    let limit = match (arguments.delivery_limit, policy.integer(PolicyKey::DeliveryLimit)) {
        (Some(a), Some(b)) => lower_delivery_limit(a, b),
        (Some(limit), None) | (None, Some(limit)) => limit,
        (None, None) => i64::from(DELIVERY_LIMIT_DEFAULT),
    };
    // Negative is unlimited; so is anything that cannot be counted to.
    u32::try_from(limit).ok()
}

/// The policy's type wins over the argument's, the delays take the lower (spec 5.3); combinations
/// that make no sense disable it.
fn delayed_retry(arguments: &QueueArguments, policy: &Definition) -> Option<DelayedRetry> {
    if !arguments.queue_type.counts_deliveries() {
        return None;
    }
    let kind = policy
        .text(PolicyKey::DelayedRetryType)
        .and_then(|w| DelayedRetryType::parse(w.as_bytes()))
        .or(arguments.delayed_retry_type)?;
    let min_ms =
        lowest(arguments.delayed_retry_min_ms, policy.unsigned(PolicyKey::DelayedRetryMin));
    let max_ms =
        lowest(arguments.delayed_retry_max_ms, policy.unsigned(PolicyKey::DelayedRetryMax));
    let min_ms = min_ms.filter(|min| *min > 0)?;
    let max_ms = max_ms.unwrap_or(min_ms);
    (kind != DelayedRetryType::Disabled && max_ms >= min_ms).then_some(DelayedRetry {
        kind,
        min_ms,
        max_ms,
    })
}

//! The settings in force for a queue: arguments and policies, resolved key by key.
//!
//! New settings replace the old ones as a whole, so that a policy with a limit and an overflow mode never
//! takes effect by halves.

use std::sync::Arc;

use super::arguments::QueueArguments;
use super::delayed_retry::DelayedRetry;
use super::resolved_keys::{QueueDefaults, ResolvedKeys};
use crate::dead_letter::DeadLetterTarget;
use crate::entry::ExpiryKey;
use crate::policy::EffectivePolicies;
use crate::policy::decision::Decision;
use crate::setting::{
    DeadLetterStrategy, DelayedRetryOrder, DeliveryCount, DeliveryLimitAction, ExpiryOrder,
    Overflow, PolicyKey, Word,
};
use crate::time::Time;

/// The settings in force for a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// TTL of every message, in milliseconds.
    pub message_ttl_ms: Option<u64>,
    /// TTL of the unused queue, in milliseconds.
    pub expires_ms: Option<u64>,
    /// The destination of dead letters; none if they are dropped.
    pub dead_letter: Option<DeadLetterTarget>,
    /// The treatment of dead letters that cannot be delivered.
    pub dead_letter_strategy: DeadLetterStrategy,
    /// Limit of waiting messages.
    pub max_length: Option<u64>,
    /// Limit of bytes of waiting messages.
    pub max_length_bytes: Option<u64>,
    /// The treatment of messages above these limits.
    pub overflow: Overflow,
    /// Deliveries that a message may have, as `delivery_limit_count` counts them; none is unlimited.
    pub delivery_limit: Option<u32>,
    /// The deliveries that count against the limit.
    pub delivery_limit_count: DeliveryCount,
    /// The treatment of messages at the limit that no dead-letter target takes.
    pub delivery_limit_action: DeliveryLimitAction,
    /// Longest time that a delivery may stay unacknowledged, in milliseconds.
    pub consumer_timeout_ms: Option<u64>,
    /// The delay of returned messages; none if they are ready at once. Boxed, because few queues have one.
    pub delayed_retry: Option<Box<DelayedRetry>>,
    /// The order of messages around one that waits for its next delivery.
    pub delayed_retry_order: DelayedRetryOrder,
    /// The order of expiry: by deadline, or at the head only.
    pub expiry_order: ExpiryOrder,
}

impl Settings {
    /// Resolves `arguments` and the policies in force.
    pub(crate) fn resolve(
        arguments: &QueueArguments,
        policies: &EffectivePolicies,
        defaults: QueueDefaults,
    ) -> Self {
        Self::of(&ResolvedKeys::of(arguments, policies, defaults))
    }

    /// The settings of a queue with these resolved keys.
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
            delivery_limit_count: always(keys.get(PolicyKey::DeliveryLimitCount)),
            delivery_limit_action: always(keys.get(PolicyKey::DeliveryLimitAction)),
            consumer_timeout_ms: keys.get(PolicyKey::ConsumerTimeout).unsigned(),
            delayed_retry: DelayedRetry::of(keys).map(Box::new),
            delayed_retry_order: always(keys.get(PolicyKey::DelayedRetryOrder)),
            expiry_order: always(keys.get(PolicyKey::ExpiryOrder)),
        }
    }

    /// The deadline of a message with this arrival time and its own `expiration`, if any.
    pub(crate) fn deadline(&self, arrived: Time, expiration_ms: Option<u64>) -> Option<Time> {
        let ttl = match (self.message_ttl_ms, expiration_ms) {
            (Some(queue), Some(own)) => Some(queue.min(own)),
            (queue, own) => queue.or(own),
        };
        ttl.map(|millis| arrived.plus_ms(millis))
    }

    /// The deadline of a message.
    pub(super) fn deadline_of(&self, front: &ExpiryKey) -> Option<Time> {
        self.deadline(front.arrived, front.expiration_ms)
    }

    /// True if messages or their bytes have a limit.
    pub(crate) const fn has_length_limit(&self) -> bool {
        self.max_length.is_some() || self.max_length_bytes.is_some()
    }

    /// True if `length` messages and `bytes` bytes exceed the limits.
    pub(crate) fn is_over(&self, length: u64, bytes: u64) -> bool {
        self.max_length.is_some_and(|max| length > max)
            || self.max_length_bytes.is_some_and(|max| bytes > max)
    }

    /// True if new messages are refused, false if old ones are evicted.
    pub(crate) fn rejects_publishes(&self) -> bool {
        matches!(self.overflow, Overflow::RejectPublish | Overflow::RejectPublishDlx)
    }
}

/// The word of a key that has a default.
fn always<T: TryFrom<Word>>(decision: &Decision) -> T {
    decision.word().expect("the key has a default, and its row names its list of words")
}

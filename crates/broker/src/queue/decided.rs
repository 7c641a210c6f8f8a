//! What is decided about each setting of a queue, from its arguments and the policies on it.
//!
//! Numbers take the lowest of all that are set, dead-letter keys prefer the argument, `overflow`
//! depends on the queue type (spec 5.3): the table of keys says how. Here stands what a table cannot
//! say: settings that some types do not have, and settings that need others.

use super::arguments::QueueArguments;
use crate::limits::{CONSUMER_TIMEOUT_MS_DEFAULT, DELIVERY_LIMIT_DEFAULT};
use crate::policy::decision::{Decision, Setting, Why};
use crate::policy::values::{DeadLetterStrategy, DelayedRetryType, ExpiryOrder, Overflow};
use crate::policy::{InForce, PolicyKey};
use crate::queue_type::QueueType;

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

/// The decisions of a queue.
#[derive(Debug)]
pub(crate) struct Decided<'a> {
    pub(crate) message_ttl: Decision<'a>,
    pub(crate) expires: Decision<'a>,
    pub(crate) max_length: Decision<'a>,
    pub(crate) max_length_bytes: Decision<'a>,
    pub(crate) overflow: Decision<'a>,
    pub(crate) dead_letter_exchange: Decision<'a>,
    pub(crate) dead_letter_routing_key: Decision<'a>,
    pub(crate) dead_letter_strategy: Decision<'a>,
    pub(crate) delivery_limit: Decision<'a>,
    pub(crate) consumer_timeout: Decision<'a>,
    pub(crate) delayed_retry_type: Decision<'a>,
    pub(crate) delayed_retry_min: Decision<'a>,
    pub(crate) delayed_retry_max: Decision<'a>,
    pub(crate) expiry_order: Decision<'a>,
}

impl<'a> Decided<'a> {
    /// What `arguments` and the policies in force make together.
    pub(crate) fn of(
        arguments: &'a QueueArguments,
        policies: &'a InForce,
        defaults: QueueDefaults,
    ) -> Self {
        let queue_type = arguments.queue_type;
        let decide = |key| Decision::of(key, queue_type, argument(arguments, key), policies);
        let of_type = |key, default: Option<Setting<'a>>| {
            let mut decision = decide(key);
            let has_it = queue_type.has(key);
            if !has_it {
                decision.retract(Why::NotOfType(queue_type));
            }
            decision.or(default.filter(|_| has_it))
        };
        let limit = Setting::number(u64::from(DELIVERY_LIMIT_DEFAULT));
        let timeout = defaults.consumer_timeout_ms.map(Setting::number);
        let mut decided = Self {
            message_ttl: decide(PolicyKey::MessageTtl),
            expires: decide(PolicyKey::Expires),
            max_length: decide(PolicyKey::MaxLength),
            max_length_bytes: decide(PolicyKey::MaxLengthBytes),
            overflow: decide(PolicyKey::Overflow)
                .or(Some(Setting::word(Overflow::DropHead.as_str()))),
            dead_letter_exchange: decide(PolicyKey::DeadLetterExchange),
            dead_letter_routing_key: decide(PolicyKey::DeadLetterRoutingKey),
            dead_letter_strategy: decide(PolicyKey::DeadLetterStrategy),
            delivery_limit: of_type(PolicyKey::DeliveryLimit, Some(limit)),
            consumer_timeout: of_type(PolicyKey::ConsumerTimeout, timeout),
            delayed_retry_type: of_type(PolicyKey::DelayedRetryType, None),
            delayed_retry_min: of_type(PolicyKey::DelayedRetryMin, None),
            delayed_retry_max: of_type(PolicyKey::DelayedRetryMax, None),
            expiry_order: decide(PolicyKey::ExpiryOrder)
                .or(Some(Setting::word(ExpiryOrder::Deadline.as_str()))),
        };
        decided.check_dead_letters();
        decided.check_delayed_retry(queue_type);
        decided
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Decision<'a>> {
        [
            &self.message_ttl,
            &self.expires,
            &self.expiry_order,
            &self.max_length,
            &self.max_length_bytes,
            &self.overflow,
            &self.dead_letter_exchange,
            &self.dead_letter_routing_key,
            &self.dead_letter_strategy,
            &self.delivery_limit,
            &self.consumer_timeout,
            &self.delayed_retry_type,
            &self.delayed_retry_min,
            &self.delayed_retry_max,
        ]
        .into_iter()
    }

    /// At-least-once is in force only with a dead-letter exchange and `reject-publish`: a queue that
    /// evicts messages could not keep what it may not lose (spec 3.8).
    fn check_dead_letters(&mut self) {
        let needs_exchange = Why::Needs("there is no dead-letter-exchange");
        let has_exchange = self.dead_letter_exchange.won.is_some();
        if !has_exchange {
            self.dead_letter_routing_key.retract(needs_exchange);
        }
        let is = |decision: &Decision<'_>, word: &str| decision.text() == Some(word.as_bytes());
        if is(&self.dead_letter_strategy, DeadLetterStrategy::AtLeastOnce.as_str()) {
            if !has_exchange {
                self.dead_letter_strategy.retract(needs_exchange);
            } else if !is(&self.overflow, Overflow::RejectPublish.as_str()) {
                self.dead_letter_strategy.retract(Why::Needs("overflow is not reject-publish"));
            }
        }
        let at_most_once = Setting::word(DeadLetterStrategy::AtMostOnce.as_str());
        self.dead_letter_strategy.set_default(Some(at_most_once));
    }

    /// Combinations that make no sense disable it; there is no delay without a type.
    fn check_delayed_retry(&mut self, queue_type: QueueType) {
        if !queue_type.counts_deliveries() {
            return;
        }
        let disabled = DelayedRetryType::Disabled.as_str();
        let (min, max) = (self.delayed_retry_min.unsigned(), self.delayed_retry_max.unsigned());
        match (min.filter(|min| *min > 0), max) {
            (None, _) => {
                self.delayed_retry_type.retract(Why::Needs("there is no delayed-retry-min"));
            }
            (Some(min), Some(max)) if max < min => {
                let why = "delayed-retry-max is lower than delayed-retry-min";
                self.delayed_retry_type.retract(Why::Needs(why));
            }
            (Some(_), _) => {}
        }
        self.delayed_retry_type.set_default(Some(Setting::word(disabled)));
        if self.delayed_retry_type.text() == Some(disabled.as_bytes()) {
            let needs_type = Why::Needs("delayed-retry-type is disabled");
            self.delayed_retry_min.retract(needs_type);
            self.delayed_retry_max.retract(needs_type);
        }
        let min = self.delayed_retry_min.won.map(|given| given.value);
        self.delayed_retry_max.set_default(min);
    }
}

/// What the declaration says of `key`.
fn argument(arguments: &QueueArguments, key: PolicyKey) -> Option<Setting<'_>> {
    let number = |value: Option<u64>| value.map(Setting::number);
    match key {
        PolicyKey::MessageTtl => number(arguments.message_ttl_ms),
        PolicyKey::Expires => number(arguments.expires_ms),
        PolicyKey::MaxLength => number(arguments.max_length),
        PolicyKey::MaxLengthBytes => number(arguments.max_length_bytes),
        PolicyKey::Overflow => arguments.overflow.map(|word| Setting::word(word.as_str())),
        PolicyKey::DeadLetterExchange => {
            let exchange = arguments.dead_letter_exchange.as_ref();
            exchange.map(|exchange| Setting::Text(exchange.as_bytes()))
        }
        PolicyKey::DeadLetterRoutingKey => {
            let routing_key = arguments.dead_letter_routing_key.as_ref();
            routing_key.map(|routing_key| Setting::Text(routing_key.as_bytes()))
        }
        PolicyKey::DeadLetterStrategy => {
            arguments.dead_letter_strategy.map(|word| Setting::word(word.as_str()))
        }
        PolicyKey::DeliveryLimit => arguments.delivery_limit.map(Setting::Integer),
        PolicyKey::ConsumerTimeout => number(arguments.consumer_timeout_ms),
        PolicyKey::DelayedRetryType => {
            arguments.delayed_retry_type.map(|word| Setting::word(word.as_str()))
        }
        PolicyKey::DelayedRetryMin => number(arguments.delayed_retry_min_ms),
        PolicyKey::DelayedRetryMax => number(arguments.delayed_retry_max_ms),
        PolicyKey::ExpiryOrder => arguments.expiry_order.map(|word| Setting::word(word.as_str())),
        PolicyKey::ConsumerDisconnectedTimeout
        | PolicyKey::TargetGroupSize
        | PolicyKey::MaxInMemoryLength
        | PolicyKey::MaxInMemoryBytes
        | PolicyKey::QueueVersion
        | PolicyKey::QueueMode
        | PolicyKey::QueueLeaderLocator
        | PolicyKey::MaxAge
        | PolicyKey::StreamMaxSegmentSizeBytes
        | PolicyKey::StreamFilterSizeBytes
        | PolicyKey::InitialClusterSize
        | PolicyKey::AlternateExchange => None,
    }
}

//! The keys of a queue, resolved: for each setting the decision between argument and policies.
//!
//! The table of settings has the merge rule and the default of each key. This file has the rules that concern
//! several keys: settings that need others.

use smallvec::SmallVec;

use super::arguments::QueueArguments;
use crate::limits::{CONSUMER_TIMEOUT_MS_DEFAULT, DELIVERY_DELAY_MS_MAX, DELIVERY_LIMIT_DEFAULT};
use crate::policy::EffectivePolicies;
use crate::policy::decision::{Decision, Overridden};
use crate::queue_type::QueueType;
use crate::setting::{
    DeadLetterStrategy, DelayedRetryOrder, DelayedRetryType, DeliveryCount, Fallback, Overflow,
    PolicyKey, SettingValue, Word,
};

/// Settings of the node for queues without an argument or policy.
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

impl QueueDefaults {
    fn value(self, fallback: Fallback, queue_type: QueueType) -> Option<SettingValue> {
        match fallback {
            Fallback::None => None,
            Fallback::DeliveryLimit => {
                let limit = SettingValue::Number(i64::from(DELIVERY_LIMIT_DEFAULT));
                queue_type.counts_deliveries().then_some(limit)
            }
            Fallback::Word(word) => Some(SettingValue::Word(word)),
            Fallback::ConsumerTimeout => self.consumer_timeout_ms.map(SettingValue::number),
        }
    }
}

/// The decisions about all keys that have an effect on queues, in the order in which they are shown.
#[derive(Debug)]
pub(crate) struct ResolvedKeys(SmallVec<[Decision; PolicyKey::OF_QUEUES_COUNT]>);

impl ResolvedKeys {
    /// Resolves `arguments` and the policies in force.
    pub(crate) fn of(
        arguments: &QueueArguments,
        policies: &EffectivePolicies,
        defaults: QueueDefaults,
    ) -> Self {
        let queue_type = arguments.queue_type;
        let decide = |key: PolicyKey| {
            let argument = arguments.get(key);
            let mut decision = Decision::of(key, queue_type, argument, policies);
            if key.setting().is_of(queue_type) {
                decision.set_default(defaults.value(key.setting().fallback(), queue_type));
            } else {
                decision.retract(Overridden::NotOfType(queue_type));
            }
            decision
        };
        let mut resolved = Self(PolicyKey::of_queues().map(decide).collect());
        resolved.check_dead_letters();
        resolved.check_delayed_retry();
        if !arguments.single_active_consumer {
            resolved.retract_strict_order();
        }
        resolved
    }

    /// All decisions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Decision> {
        self.0.iter()
    }

    /// The decision about `key`, which must have an effect on queues.
    pub(crate) fn get(&self, key: PolicyKey) -> &Decision {
        self.0.iter().find(|decision| decision.key == key).expect("keys of queues are resolved")
    }

    fn get_mut(&mut self, key: PolicyKey) -> &mut Decision {
        self.0.iter_mut().find(|decision| decision.key == key).expect("keys of queues are resolved")
    }

    fn retract(&mut self, key: PolicyKey, missing: &'static str) {
        self.get_mut(key).retract(Overridden::Needs(missing));
    }

    fn is(&self, key: PolicyKey, word: Word) -> bool {
        self.get(key).value() == Some(&SettingValue::Word(word))
    }

    /// At-least-once is in force only with a dead-letter exchange and `reject-publish`: a queue that
    /// evicts messages could not keep what it may not lose.
    fn check_dead_letters(&mut self) {
        let no_exchange = "there is no dead-letter-exchange";
        let has_exchange = self.get(PolicyKey::DeadLetterExchange).won.is_some();
        if !has_exchange {
            self.retract(PolicyKey::DeadLetterRoutingKey, no_exchange);
        }
        let key = PolicyKey::DeadLetterStrategy;
        if self.is(key, Word::DeadLetterStrategy(DeadLetterStrategy::AtLeastOnce)) {
            if !has_exchange {
                self.retract(key, no_exchange);
            } else if !self.is(PolicyKey::Overflow, Word::Overflow(Overflow::RejectPublish)) {
                self.retract(key, "overflow is not reject-publish");
            }
        }
        // Not the default of the row: it holds for queues of every type, and after the checks.
        let at_most_once = Word::DeadLetterStrategy(DeadLetterStrategy::AtMostOnce);
        self.get_mut(key).set_default(Some(SettingValue::Word(at_most_once)));
    }

    /// Puts the order `due` in force on a queue on which messages of several consumers have no order.
    fn retract_strict_order(&mut self) {
        let key = PolicyKey::DelayedRetryOrder;
        if self.is(key, Word::DelayedRetryOrder(DelayedRetryOrder::Strict)) {
            self.retract(key, "there is no single active consumer");
            let due = Word::DelayedRetryOrder(DelayedRetryOrder::Due);
            self.get_mut(key).set_default(Some(SettingValue::Word(due)));
        }
    }

    /// Disables delayed retry if its settings contradict each other, or if there is no type.
    fn check_delayed_retry(&mut self) {
        let key = PolicyKey::DelayedRetryType;
        let has_schedule = self.get(PolicyKey::DelayedRetrySchedule).won.is_some();
        if has_schedule {
            for key in [
                PolicyKey::DelayedRetryMin,
                PolicyKey::DelayedRetryMax,
                PolicyKey::DelayedRetryMultiplier,
            ] {
                self.retract(key, "delayed-retry-schedule has the delays");
            }
        } else {
            let min = self.get(PolicyKey::DelayedRetryMin).unsigned();
            let max = self.get(PolicyKey::DelayedRetryMax).unsigned();
            match (min.filter(|min| *min > 0), max) {
                (None, _) => self.retract(key, "there is no delayed-retry-min"),
                (Some(min), Some(max)) if max < min => {
                    self.retract(key, "delayed-retry-max is lower than delayed-retry-min");
                }
                (Some(_), _) => {}
            }
        }
        let disabled = Word::DelayedRetryType(DelayedRetryType::Disabled);
        self.get_mut(key).set_default(Some(SettingValue::Word(disabled)));
        if self.is(key, disabled) {
            for key in [
                PolicyKey::DelayedRetryMin,
                PolicyKey::DelayedRetryMax,
                PolicyKey::DelayedRetryMultiplier,
                PolicyKey::DelayedRetryJitter,
                PolicyKey::DelayedRetrySchedule,
                PolicyKey::DelayedRetryCount,
            ] {
                self.retract(key, "delayed-retry-type is disabled");
            }
            return;
        }
        let multiplies = self.get(PolicyKey::DelayedRetryMultiplier).won.is_some();
        if multiplies {
            let longest = SettingValue::number(DELIVERY_DELAY_MS_MAX);
            self.get_mut(PolicyKey::DelayedRetryMax).set_default(Some(longest));
        } else {
            let min = self.get(PolicyKey::DelayedRetryMin).value().cloned();
            self.get_mut(PolicyKey::DelayedRetryMax).set_default(min);
        }
        let grows_itself = multiplies || has_schedule;
        let count = if grows_itself { DeliveryCount::Acquired } else { DeliveryCount::Delivery };
        let count = SettingValue::Word(Word::DeliveryCount(count));
        self.get_mut(PolicyKey::DelayedRetryCount).set_default(Some(count));
    }
}

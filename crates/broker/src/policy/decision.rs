//! The decision about one key: the sources that gave a value, the value that counts, and the reasons why the
//! others do not.
//!
//! `Settings` are made from decisions, and `explain` shows the same decisions: there is no second opinion.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{EffectivePolicies, Policy};
use crate::ids::Name;
use crate::queue_type::QueueType;
use crate::routing_key::RoutingKey;
use crate::setting::merge::Merge;
use crate::setting::{PolicyKey, Ratio, RetrySchedule, SettingValue, Word};

/// The source of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// An argument of the declaration.
    Argument,
    /// The user policy in force.
    Policy,
    /// The operator policy in force.
    OperatorPolicy,
    /// No source: the default of the setting.
    Default,
}

impl Source {
    /// The name in the HTTP API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Argument => "argument",
            Self::Policy => "policy",
            Self::OperatorPolicy => "operator_policy",
            Self::Default => "default",
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Self::Argument => "the argument",
            Self::Policy => "the policy",
            Self::OperatorPolicy => "the operator policy",
            Self::Default => "the default",
        }
    }
}

/// A value and its source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Given {
    pub(crate) source: Source,
    pub(crate) value: SettingValue,
}

/// The reason why a value does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overridden {
    /// Another source gives the same value.
    Same(Source),
    /// Another source gives a lower value, and the lower counts.
    Lower(Source),
    /// Another source gives a higher value, and the higher counts.
    Higher(Source),
    /// Another source takes precedence, regardless of the values.
    First(Source),
    /// The value means unlimited, and another source gives a limit.
    Limited(Source),
    /// Queues of this type have no such setting.
    NotOfType(QueueType),
    /// The setting has no effect in Leveret.
    NoEffect,
    /// Another setting would have to be in force, too.
    Needs(&'static str),
}

impl std::fmt::Display for Overridden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Same(winner) => write!(f, "{} says the same", winner.in_words()),
            Self::Lower(winner) => {
                write!(f, "the lower value applies, which is that of {}", winner.in_words())
            }
            Self::Higher(winner) => {
                write!(f, "the higher value applies, which is that of {}", winner.in_words())
            }
            Self::First(winner) => write!(f, "for this key {} comes first", winner.in_words()),
            Self::Limited(winner) => {
                write!(f, "the limit counts, which is that of {}", winner.in_words())
            }
            Self::NotOfType(queue_type) => {
                write!(f, "{} queues have no such setting", queue_type.as_str())
            }
            Self::NoEffect => f.write_str("accepted, but without effect"),
            Self::Needs(what) => write!(f, "without effect: {what}"),
        }
    }
}

/// The decision about one key: the value that counts, and those that do not.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    pub(crate) key: PolicyKey,
    pub(crate) won: Option<Given>,
    pub(crate) lost: SmallVec<[(Given, Overridden); 2]>,
}

impl Decision {
    /// Decides between the policies and the argument of a queue or exchange.
    pub(crate) fn of(
        key: PolicyKey,
        queue_type: QueueType,
        argument: Option<SettingValue>,
        policies: &EffectivePolicies,
    ) -> Self {
        let given_by =
            |policy: &Option<Arc<Policy>>| policy.as_ref()?.definition.setting(key).cloned();
        let mut decision = Self { key, won: None, lost: SmallVec::new() };
        let between_policies = key.setting().merge_of_policies();
        decision.add(Source::Policy, given_by(&policies.user), between_policies);
        decision.add(Source::OperatorPolicy, given_by(&policies.operator), between_policies);
        decision.add(Source::Argument, argument, key.setting().merge_with_argument(queue_type));
        decision
    }

    fn add(&mut self, source: Source, value: Option<SettingValue>, merge: Merge) {
        let Some(second) = value.map(|value| Given { source, value }) else {
            return;
        };
        let Some(first) = self.won.take() else {
            self.won = Some(second);
            return;
        };
        let (a, b) = (first.value.as_number(), second.value.as_number());
        let (winner, loser) =
            if merge.prefers_second(a, b) { (second, first) } else { (first, second) };
        let why = match merge {
            _ if winner.value == loser.value => Overridden::Same(winner.source),
            Merge::Lower => Overridden::Lower(winner.source),
            Merge::Higher => Overridden::Higher(winner.source),
            Merge::First | Merge::Second => Overridden::First(winner.source),
            Merge::DeliveryLimit if loser.value.as_number() < Some(0) => {
                Overridden::Limited(winner.source)
            }
            Merge::DeliveryLimit => Overridden::Lower(winner.source),
        };
        self.won = Some(winner);
        self.lost.push((loser, why));
    }

    /// Withdraws the value that counted so far, because it has no effect.
    pub(crate) fn retract(&mut self, why: Overridden) {
        if let Some(given) = self.won.take()
            && given.source != Source::Default
        {
            self.lost.push((given, why));
        }
    }

    /// Sets the value that counts if no source gave one.
    pub(crate) fn set_default(&mut self, default: Option<SettingValue>) {
        if self.won.is_none() {
            self.won = default.map(|value| Given { source: Source::Default, value });
        }
    }

    /// The value that counts.
    pub(crate) fn value(&self) -> Option<&SettingValue> {
        self.won.as_ref().map(|given| &given.value)
    }

    /// The number that counts.
    pub(crate) fn number(&self) -> Option<i64> {
        self.value()?.as_number()
    }

    /// The number that counts, if it is not negative.
    pub(crate) fn unsigned(&self) -> Option<u64> {
        u64::try_from(self.number()?).ok()
    }

    /// The name that counts.
    pub(crate) fn name(&self) -> Option<&Name> {
        if let SettingValue::Name(name) = self.value()? { Some(name) } else { None }
    }

    /// The routing key that counts.
    pub(crate) fn routing_key(&self) -> Option<&RoutingKey> {
        if let SettingValue::RoutingKey(key) = self.value()? { Some(key) } else { None }
    }

    /// The word that counts.
    pub(crate) fn word<T: TryFrom<Word>>(&self) -> Option<T> {
        if let SettingValue::Word(word) = self.value()? { T::try_from(*word).ok() } else { None }
    }

    /// The ratio that counts.
    pub(crate) fn ratio(&self) -> Option<Ratio> {
        if let SettingValue::Ratio(ratio) = self.value()? { Some(*ratio) } else { None }
    }

    /// The schedule that counts.
    pub(crate) fn schedule(&self) -> Option<&RetrySchedule> {
        if let SettingValue::Schedule(schedule) = self.value()? { Some(schedule) } else { None }
    }
}

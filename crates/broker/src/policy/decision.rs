//! What is decided about one key: who gave a value for it, whose counts, and why the others do not.
//!
//! Settings are made of decisions, and so is what `explain` tells: there is no second opinion.

use smallvec::SmallVec;

use super::definition::{PolicyKey, PolicyValue};
use super::merge::Merge;
use super::{InForce, Policy};
use crate::queue_type::QueueType;

/// Who gave a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Whoever declared the queue or exchange.
    Argument,
    /// The user policy in force.
    Policy,
    /// The operator policy in force.
    OperatorPolicy,
    /// Nobody: it is what holds then.
    Default,
}

impl Source {
    /// Its name.
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

/// The value of a key, wherever it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Setting<'a> {
    /// A number.
    Integer(i64),
    /// A word, a name or a routing key.
    Text(&'a [u8]),
}

impl<'a> Setting<'a> {
    pub(crate) fn word(word: &'static str) -> Self {
        Self::Text(word.as_bytes())
    }

    /// A number that is not negative; what AMQP cannot say is as good as the highest that it can.
    pub(crate) fn number(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// What a policy says; valid values are nothing else.
    fn of(value: &'a PolicyValue) -> Option<Self> {
        match value {
            PolicyValue::Integer(value) => Some(Self::Integer(*value)),
            PolicyValue::Text(text) => Some(Self::Text(text.as_bytes())),
            PolicyValue::Float(_) | PolicyValue::Other(_) => None,
        }
    }

    fn as_integer(self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(value),
            Self::Text(_) => None,
        }
    }

    pub(crate) fn to_value(self) -> PolicyValue {
        match self {
            Self::Integer(value) => PolicyValue::Integer(value),
            Self::Text(text) => PolicyValue::Text(String::from_utf8_lossy(text).into_owned()),
        }
    }
}

/// A value and who gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Given<'a> {
    pub(crate) source: Source,
    pub(crate) value: Setting<'a>,
}

/// Why a value does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// Another gave the same.
    Same(Source),
    /// Another gave a lower one, and the lower counts.
    Lower(Source),
    /// Another gave a higher one, and the higher counts.
    Higher(Source),
    /// Another comes first, whatever the values are.
    First(Source),
    /// This is unlimited and another is not.
    Limited(Source),
    /// Queues of this type have no such setting.
    NotOfType(QueueType),
    /// Nothing in Leveret has it, or nothing that has an effect.
    NoEffect,
    /// Something else must be in force, too.
    Needs(&'static str),
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Same(winner) => write!(f, "{} says the same", winner.in_words()),
            Self::Lower(winner) => {
                write!(f, "the lower value counts, which is that of {}", winner.in_words())
            }
            Self::Higher(winner) => {
                write!(f, "the higher value counts, which is that of {}", winner.in_words())
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

/// What is decided about one key.
#[derive(Clone, Debug)]
pub(crate) struct Decision<'a> {
    pub(crate) key: PolicyKey,
    pub(crate) won: Option<Given<'a>>,
    pub(crate) lost: SmallVec<[(Given<'a>, Why); 2]>,
}

impl<'a> Decision<'a> {
    /// What policies say of a key, and an argument.
    pub(crate) fn of(
        key: PolicyKey,
        queue_type: QueueType,
        argument: Option<Setting<'a>>,
        policies: &'a InForce,
    ) -> Self {
        let said = |policy: &'a Option<std::sync::Arc<Policy>>| {
            Setting::of(policy.as_ref()?.definition.get(key)?)
        };
        let mut decision = Self { key, won: None, lost: SmallVec::new() };
        let between_policies = key.merge_of_policies();
        decision.meets(Source::Policy, said(&policies.user), between_policies);
        decision.meets(Source::OperatorPolicy, said(&policies.operator), between_policies);
        decision.meets(Source::Argument, argument, key.merge_with_argument(queue_type));
        decision
    }

    fn meets(&mut self, source: Source, value: Option<Setting<'a>>, merge: Merge) {
        let Some(second) = value.map(|value| Given { source, value }) else {
            return;
        };
        let Some(first) = self.won else {
            self.won = Some(second);
            return;
        };
        let (a, b) = (first.value.as_integer(), second.value.as_integer());
        let (winner, loser) =
            if merge.prefers_second(a, b) { (second, first) } else { (first, second) };
        let why = match merge {
            _ if winner.value == loser.value => Why::Same(winner.source),
            Merge::Lower => Why::Lower(winner.source),
            Merge::Higher => Why::Higher(winner.source),
            Merge::First | Merge::Second => Why::First(winner.source),
            Merge::DeliveryLimit if loser.value.as_integer() < Some(0) => {
                Why::Limited(winner.source)
            }
            Merge::DeliveryLimit => Why::Lower(winner.source),
        };
        self.won = Some(winner);
        self.lost.push((loser, why));
    }

    /// What counts has no effect.
    pub(crate) fn retract(&mut self, why: Why) {
        if let Some(given) = self.won.take()
            && given.source != Source::Default
        {
            self.lost.push((given, why));
        }
    }

    /// What holds if nobody said anything that counts.
    pub(crate) fn or(mut self, default: Option<Setting<'a>>) -> Self {
        self.set_default(default);
        self
    }

    pub(crate) fn set_default(&mut self, default: Option<Setting<'a>>) {
        let source = Source::Default;
        self.won = self.won.or_else(|| default.map(|value| Given { source, value }));
    }

    /// The number that counts.
    pub(crate) fn integer(&self) -> Option<i64> {
        self.won?.value.as_integer()
    }

    /// The number that counts, if it is not negative.
    pub(crate) fn unsigned(&self) -> Option<u64> {
        u64::try_from(self.integer()?).ok()
    }

    /// The octets that count.
    pub(crate) fn text(&self) -> Option<&'a [u8]> {
        match self.won?.value {
            Setting::Text(text) => Some(text),
            Setting::Integer(_) => None,
        }
    }
}

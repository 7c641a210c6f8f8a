//! What a policy says: its keys, their values, and how an operator's policy limits a user's.
//!
//! One table holds everything that is particular to a key: its name, its valid values, the words of
//! RabbitMQ's complaint, how an operator policy merges, and which queue types a policy with that key
//! does not apply to (spec 5.3). Definitions come from JSON; JSON itself is not known here.

use std::collections::BTreeMap;
use std::fmt;

use amqp::erlang_binary::PrintedBinary;
use amqp::limits::SHORT_STRING_BYTES_MAX;

use super::merge::Merge;
use super::values::{DeadLetterStrategy, DelayedRetryType, ExpiryOrder, Overflow};
use crate::queue_type::QueueType;
use crate::term;

/// A value in a policy definition.
#[derive(Clone, PartialEq, Debug)]
pub enum PolicyValue {
    /// An integer.
    Integer(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// A string.
    Text(String),
    /// Anything else, as its JSON text; valid nowhere.
    Other(String),
}

impl PolicyValue {
    /// The integer, if it is one.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::Float(_) | Self::Text(_) | Self::Other(_) => None,
        }
    }

    /// The string, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(value) => Some(value),
            Self::Integer(_) | Self::Float(_) | Self::Other(_) => None,
        }
    }
}

impl fmt::Display for PolicyValue {
    /// As RabbitMQ prints it in a complaint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => f.write_str(&term::float(*value)),
            Self::Text(value) => PrintedBinary(value.as_bytes()).fmt(f),
            Self::Other(value) => f.write_str(value),
        }
    }
}

/// Whose value counts if an argument and policies give one each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WithArgument {
    /// There is no argument, or none that has an effect.
    None,
    Merge(Merge),
    /// Classic queues prefer the argument, quorum queues the policy.
    Overflow,
}

const ARGUMENT: WithArgument = WithArgument::Merge(Merge::Second);
const POLICY: WithArgument = WithArgument::Merge(Merge::First);
const LOWER: WithArgument = WithArgument::Merge(Merge::Lower);

struct Rule {
    name: &'static str,
    /// Completes "is not a valid ...".
    what: &'static str,
    is_valid: fn(&PolicyValue) -> bool,
    /// How a user's value and an operator's become one; none: not a key of operator policies.
    operator: Option<Merge>,
    /// How that and an argument become one.
    argument: WithArgument,
    /// A policy with this key does not apply to queues of these types at all.
    disqualifies: &'static [QueueType],
}

macro_rules! keys {
    ($($(#[$doc:meta])* $key:ident = $name:literal, $what:literal, $valid:expr, $operator:expr,
        $argument:expr, [$($disqualified:ident),*];)+) => {
        /// The keys of a policy definition.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum PolicyKey {
            $($(#[$doc])* $key,)+
        }

        impl PolicyKey {
            /// All keys.
            pub const ALL: &'static [Self] = &[$(Self::$key,)+];

            const fn rule(self) -> Rule {
                match self {
                    $(Self::$key => Rule {
                        name: $name,
                        what: $what,
                        is_valid: $valid,
                        operator: $operator,
                        argument: $argument,
                        disqualifies: &[$(QueueType::$disqualified),*],
                    },)+
                }
            }
        }
    };
}

fn non_negative(value: &PolicyValue) -> bool {
    value.as_integer().is_some_and(|v| v >= 0)
}

fn positive(value: &PolicyValue) -> bool {
    value.as_integer().is_some_and(|v| v > 0)
}

fn text(value: &PolicyValue) -> bool {
    value.as_text().is_some()
}

/// COMPAT: long routing keys: a message with such a key could not be delivered.
fn short_text(value: &PolicyValue) -> bool {
    value.as_text().is_some_and(|v| v.len() <= SHORT_STRING_BYTES_MAX)
}

fn one_of(value: &PolicyValue, words: &[&str]) -> bool {
    value.as_text().is_some_and(|word| words.contains(&word))
}

fn max_age(value: &PolicyValue) -> bool {
    let Some(age) = value.as_text() else {
        return false;
    };
    let Some(digits) = age.strip_suffix(['Y', 'M', 'D', 'h', 'm', 's']) else {
        return false;
    };
    digits.bytes().all(|b| b.is_ascii_digit()) && digits.bytes().any(|b| b != b'0')
}

keys! {
    /// `message-ttl`, milliseconds.
    MessageTtl = "message-ttl", "message TTL", non_negative, Some(Merge::Lower), LOWER, [];
    /// `expires`, milliseconds.
    Expires = "expires", "queue expiry", positive, Some(Merge::Lower), LOWER, [];
    /// `max-length`, messages.
    MaxLength = "max-length", "maximum length", non_negative, Some(Merge::Lower), LOWER, [];
    /// `max-length-bytes`.
    MaxLengthBytes = "max-length-bytes", "maximum length in bytes", non_negative,
        Some(Merge::Lower), LOWER, [];
    /// `overflow`.
    Overflow = "overflow", "overflow value",
        |v| v.as_text().is_some_and(|w| Overflow::parse(w.as_bytes()).is_some()),
        Some(Merge::Second), WithArgument::Overflow, [];
    /// `dead-letter-exchange`.
    DeadLetterExchange = "dead-letter-exchange", "dead letter exchange name", text, None, ARGUMENT, [];
    /// `dead-letter-routing-key`.
    DeadLetterRoutingKey = "dead-letter-routing-key", "dead letter routing key", short_text, None, ARGUMENT, [];
    /// `dead-letter-strategy`.
    DeadLetterStrategy = "dead-letter-strategy", "dead letter strategy",
        |v| v.as_text().is_some_and(|w| DeadLetterStrategy::parse(w.as_bytes()).is_some()),
        None, ARGUMENT, [Classic];
    /// `delivery-limit`; negative is unlimited.
    DeliveryLimit = "delivery-limit", "delivery limit", |v| v.as_integer().is_some(),
        Some(Merge::DeliveryLimit), WithArgument::Merge(Merge::DeliveryLimit), [Classic];
    /// `consumer-timeout`, milliseconds.
    ConsumerTimeout = "consumer-timeout", "consumer timeout", non_negative, None, LOWER, [];
    /// `consumer-disconnected-timeout`, milliseconds; has no effect on one node.
    ConsumerDisconnectedTimeout = "consumer-disconnected-timeout", "consumer disconnected timeout",
        non_negative, None, WithArgument::None, [];
    /// `delayed-retry-type`.
    DelayedRetryType = "delayed-retry-type",
        "delayed retry type. Must be one of: all, failed, returned, disabled",
        |v| v.as_text().is_some_and(|w| DelayedRetryType::parse(w.as_bytes()).is_some()),
        Some(Merge::Second), POLICY, [];
    /// `delayed-retry-min`, milliseconds.
    DelayedRetryMin = "delayed-retry-min",
        "delayed retry minimum delay. Must be a positive integer", positive, Some(Merge::Higher), LOWER, [];
    /// `delayed-retry-max`, milliseconds.
    DelayedRetryMax = "delayed-retry-max",
        "delayed retry maximum delay. Must be a positive integer", positive, Some(Merge::Lower), LOWER, [];
    /// `target-group-size`; has no effect on one node.
    TargetGroupSize = "target-group-size", "qq target count value", positive, Some(Merge::Higher), WithArgument::None, [Classic];
    /// `max-in-memory-length`; has no effect.
    MaxInMemoryLength = "max-in-memory-length", "maximum memory in bytes", non_negative,
        Some(Merge::Lower), WithArgument::None, [Classic];
    /// `max-in-memory-bytes`; has no effect.
    MaxInMemoryBytes = "max-in-memory-bytes", "maximum memory in bytes", non_negative,
        Some(Merge::Lower), WithArgument::None, [Classic];
    /// `queue-version`; has no effect.
    QueueVersion = "queue-version", "queue-version value",
        |v| matches!(v.as_integer(), Some(1 | 2)), Some(Merge::Second), WithArgument::None, [];
    /// `queue-mode`; has no effect.
    QueueMode = "queue-mode", "queue-mode value", |v| one_of(v, &["default", "lazy"]), None, WithArgument::None, [Quorum];
    /// `queue-leader-locator`; has no effect on one node.
    QueueLeaderLocator = "queue-leader-locator", "queue leader locator value",
        |v| one_of(v, &["client-local", "balanced", "random", "least-leaders"]), None, WithArgument::None, [];
    /// `max-age` of streams.
    MaxAge = "max-age", "max age", max_age, None, WithArgument::None, [Classic, Quorum];
    /// `stream-max-segment-size-bytes`.
    StreamMaxSegmentSizeBytes = "stream-max-segment-size-bytes", "segment size",
        |v| v.as_integer().is_some_and(|v| (0..=3_000_000_000).contains(&v)), None, WithArgument::None, [Classic, Quorum];
    /// `stream-filter-size-bytes`.
    StreamFilterSizeBytes = "stream-filter-size-bytes", "filter size. Valid range is 16-255",
        |v| v.as_integer().is_some_and(|v| (16..=255).contains(&v)), None, WithArgument::None, [];
    /// `initial-cluster-size` of streams.
    InitialClusterSize = "initial-cluster-size", "cluster size", non_negative, None, WithArgument::None, [Classic, Quorum];
    /// `alternate-exchange` of exchanges.
    AlternateExchange = "alternate-exchange", "alternate exchange name", text, None, ARGUMENT, [];
    /// `expiry-order`, Leveret's own.
    ExpiryOrder = "expiry-order", "expiry order",
        |v| v.as_text().is_some_and(|w| ExpiryOrder::parse(w.as_bytes()).is_some()),
        Some(Merge::Second), ARGUMENT, [];
}

impl PolicyKey {
    /// The key's name.
    pub const fn as_str(self) -> &'static str {
        self.rule().name
    }

    /// How a user's value and an operator's value of it become one.
    pub(crate) const fn merge_of_policies(self) -> Merge {
        match self.rule().operator {
            Some(merge) => merge,
            None => Merge::Second,
        }
    }

    /// How what policies say of it and an argument become one.
    pub(crate) const fn merge_with_argument(self, queue_type: QueueType) -> Merge {
        match self.rule().argument {
            WithArgument::Merge(merge) => merge,
            WithArgument::Overflow if queue_type.overflow_policy_wins() => Merge::First,
            WithArgument::Overflow | WithArgument::None => Merge::Second,
        }
    }

    /// The key of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|key| key.as_str() == name)
    }
}

/// Whose policy a definition belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PolicyKind {
    /// A user's policy.
    User,
    /// An operator's policy, which limits what users ask for.
    Operator,
}

/// A key of former versions of RabbitMQ.
const WITHDRAWN: &str = "queue-master-locator";

/// A valid policy definition.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Definition(BTreeMap<PolicyKey, PolicyValue>);

impl Definition {
    /// Checks the entries of a definition.
    ///
    /// # Errors
    /// What RabbitMQ says after "Validation failed".
    pub fn parse(entries: Vec<(String, PolicyValue)>, kind: PolicyKind) -> Result<Self, String> {
        if entries.is_empty() {
            return Err("no policy provided".to_owned());
        }
        if entries.iter().any(|(name, _)| name == WITHDRAWN) {
            return Err(format!("use of deprecated {WITHDRAWN} argument is not permitted"));
        }
        let mut known = BTreeMap::new();
        let mut unknown = Vec::new();
        for (name, value) in entries {
            match PolicyKey::from_name(&name) {
                Some(key) if kind == PolicyKind::User || key.rule().operator.is_some() => {
                    known.insert(key, value);
                }
                _ => unknown.push(format!("{{{},{value}}}", PrintedBinary(name.as_bytes()))),
            }
        }
        for (key, value) in &known {
            let rule = key.rule();
            if !(rule.is_valid)(value) {
                return Err(format!("{value} is not a valid {}", rule.what));
            }
        }
        if !unknown.is_empty() {
            return Err(format!("[{}] are not recognised policy settings", unknown.join(",")));
        }
        let definition = Self(known);
        definition.check_delayed_retry()?;
        Ok(definition)
    }

    fn check_delayed_retry(&self) -> Result<(), String> {
        let min = self.integer(PolicyKey::DelayedRetryMin);
        let max = self.integer(PolicyKey::DelayedRetryMax);
        if let Some(kind) = self.text(PolicyKey::DelayedRetryType)
            && kind != DelayedRetryType::Disabled.as_str()
            && min.is_none()
        {
            let text = format!("delayed-retry-min is required when delayed-retry-type is {kind}");
            return Err(text);
        }
        match (min, max) {
            (Some(min), Some(max)) if max < min => Err(format!(
                "delayed-retry-max ({max}) must not be smaller than delayed-retry-min ({min})"
            )),
            _ => Ok(()),
        }
    }

    /// The keys with their values, in the order of `PolicyKey`.
    pub fn iter(&self) -> impl Iterator<Item = (PolicyKey, &PolicyValue)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The integer under `key`.
    pub fn integer(&self, key: PolicyKey) -> Option<i64> {
        self.0.get(&key)?.as_integer()
    }

    /// The string under `key`.
    pub fn text(&self, key: PolicyKey) -> Option<&str> {
        self.0.get(&key)?.as_text()
    }

    /// What is said of `key`.
    pub fn get(&self, key: PolicyKey) -> Option<&PolicyValue> {
        self.0.get(&key)
    }

    /// Whether a policy with this definition can apply to queues of that type.
    pub fn applies_to(&self, queue_type: QueueType) -> bool {
        self.disqualified_by(queue_type).is_none()
    }

    /// The first key that the type does not have: one disqualifies the whole policy.
    pub(crate) fn disqualified_by(&self, queue_type: QueueType) -> Option<PolicyKey> {
        self.0.keys().copied().find(|key| key.rule().disqualifies.contains(&queue_type))
    }

    /// The definition in force when an operator's policy limits this one (spec 5.3).
    #[must_use]
    pub fn limited_by(&self, operator: &Self) -> Self {
        let mut merged = self.0.clone();
        for (key, limit) in &operator.0 {
            let value = match merged.get(key) {
                Some(asked)
                    if !key
                        .merge_of_policies()
                        .prefers_second(asked.as_integer(), limit.as_integer()) =>
                {
                    continue;
                }
                Some(_) | None => limit.clone(),
            };
            merged.insert(*key, value);
        }
        Self(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(entries: &[(&str, PolicyValue)]) -> Result<Definition, String> {
        let entries = entries.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        Definition::parse(entries, PolicyKind::User)
    }

    fn integer(value: i64) -> PolicyValue {
        PolicyValue::Integer(value)
    }

    fn text(value: &str) -> PolicyValue {
        PolicyValue::Text(value.to_owned())
    }

    #[test]
    fn bad_values_are_named_as_rabbitmq_names_them() {
        for (key, value, complaint) in [
            ("message-ttl", integer(-1), "-1 is not a valid message TTL"),
            ("message-ttl", text("1"), "<<\"1\">> is not a valid message TTL"),
            ("message-ttl", PolicyValue::Float(1.5), "1.5 is not a valid message TTL"),
            ("expires", integer(0), "0 is not a valid queue expiry"),
            ("overflow", text("bogus"), "<<\"bogus\">> is not a valid overflow value"),
            ("max-length", integer(-5), "-5 is not a valid maximum length"),
            ("foo", text("bar"), "[{<<\"foo\">>,<<\"bar\">>}] are not recognised policy settings"),
            ("max-age", text("7"), "<<\"7\">> is not a valid max age"),
            (
                "delayed-retry-type",
                text("all"),
                "delayed-retry-min is required when delayed-retry-type is all",
            ),
        ] {
            assert_eq!(parse(&[(key, value)]).unwrap_err(), complaint);
        }
        assert_eq!(parse(&[]).unwrap_err(), "no policy provided");
        let wrong_order = [("delayed-retry-min", integer(10)), ("delayed-retry-max", integer(5))];
        assert_eq!(
            parse(&wrong_order).unwrap_err(),
            "delayed-retry-max (5) must not be smaller than delayed-retry-min (10)"
        );
    }

    #[test]
    fn policies_are_not_capped_at_ten_years() {
        let definition = parse(&[("message-ttl", integer(1_000_000_000_000_000))]).unwrap();
        assert_eq!(definition.integer(PolicyKey::MessageTtl), Some(1_000_000_000_000_000));
    }

    #[test]
    fn routing_keys_fit_into_short_strings() {
        let length = |n| parse(&[("dead-letter-routing-key", text(&"k".repeat(n)))]).is_ok();
        assert_eq!((length(255), length(256)), (true, false));
        assert!(parse(&[("dead-letter-exchange", text(&"k".repeat(256)))]).is_ok());
    }

    #[test]
    fn an_operator_may_only_use_operator_keys() {
        let entries = vec![("dead-letter-exchange".to_owned(), text("dlx"))];
        assert!(
            Definition::parse(entries, PolicyKind::Operator)
                .unwrap_err()
                .ends_with("are not recognised policy settings")
        );
    }

    #[test]
    fn an_operator_limits_and_does_not_loosen() {
        let user = parse(&[("max-length", integer(8)), ("delivery-limit", integer(-1))]).unwrap();
        let operator = parse(&[
            ("max-length", integer(5)),
            ("delivery-limit", integer(3)),
            ("expires", integer(9)),
        ])
        .unwrap();
        let merged = user.limited_by(&operator);
        assert_eq!(merged.integer(PolicyKey::MaxLength), Some(5));
        assert_eq!(merged.integer(PolicyKey::DeliveryLimit), Some(3));
        assert_eq!(merged.integer(PolicyKey::Expires), Some(9));
    }

    #[test]
    fn a_key_the_type_does_not_have_disqualifies_the_policy() {
        let definition = parse(&[("message-ttl", integer(1)), ("delivery-limit", integer(1))]);
        let definition = definition.unwrap();
        assert!(!definition.applies_to(QueueType::Classic));
        assert!(definition.applies_to(QueueType::Quorum));
    }
}

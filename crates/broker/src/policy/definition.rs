//! Policy definitions: keys with values, and the limits that an operator's definition sets for a user's.
//!
//! The keys are listed in the table of settings. Definitions come from JSON, which the caller parses.

use std::collections::BTreeMap;

use amqp::erlang_binary::PrintedBinary;

use crate::queue_type::QueueType;
use crate::setting::{DelayedRetryType, PolicyKey, PolicyValue, SettingValue, Word};

/// The kind of a policy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PolicyKind {
    /// A user's policy.
    User,
    /// An operator's policy, which limits what users ask for.
    Operator,
}

/// A key that former versions of RabbitMQ had.
const WITHDRAWN: &str = "queue-master-locator";

/// A valid policy definition.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Definition(BTreeMap<PolicyKey, SettingValue>);

impl Definition {
    /// Checks the entries of a definition.
    ///
    /// # Errors
    /// RabbitMQ's text after "Validation failed".
    pub fn parse(entries: Vec<(String, PolicyValue)>, kind: PolicyKind) -> Result<Self, String> {
        if entries.is_empty() {
            return Err("no policy provided".to_owned());
        }
        if entries.iter().any(|(name, _)| name == WITHDRAWN) {
            return Err(format!("use of deprecated {WITHDRAWN} argument is not permitted"));
        }
        // Keys are checked in their order, each once: the last value of a repeated key counts.
        let mut known = BTreeMap::new();
        let mut unknown = Vec::new();
        for (name, value) in entries {
            match PolicyKey::from_name(&name) {
                Some(key) if kind == PolicyKind::User || key.setting().is_for_operators() => {
                    known.insert(key, value);
                }
                _ => unknown.push(format!("{{{},{value}}}", PrintedBinary(name.as_bytes()))),
            }
        }
        let checked = known.iter().map(|(key, value)| Ok((*key, key.check(value)?)));
        let checked = checked.collect::<Result<_, String>>()?;
        if !unknown.is_empty() {
            return Err(format!("[{}] are not recognised policy settings", unknown.join(",")));
        }
        let definition = Self(checked);
        definition.check_delayed_retry()?;
        Ok(definition)
    }

    fn check_delayed_retry(&self) -> Result<(), String> {
        let min = self.integer(PolicyKey::DelayedRetryMin);
        let max = self.integer(PolicyKey::DelayedRetryMax);
        if let Some(SettingValue::Word(kind)) = self.setting(PolicyKey::DelayedRetryType)
            && *kind != Word::DelayedRetryType(DelayedRetryType::Disabled)
            && min.is_none()
            && self.setting(PolicyKey::DelayedRetrySchedule).is_none()
        {
            let kind = kind.as_str();
            return Err(format!("delayed-retry-min is required when delayed-retry-type is {kind}"));
        }
        match (min, max) {
            (Some(min), Some(max)) if max < min => Err(format!(
                "delayed-retry-max ({max}) must not be smaller than delayed-retry-min ({min})"
            )),
            _ => Ok(()),
        }
    }

    /// The keys with their values, in the order of `PolicyKey`.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (PolicyKey, PolicyValue)> {
        self.0.iter().map(|(key, value)| (*key, value.to_policy_value()))
    }

    /// Bytes of the texts among the values.
    pub(crate) fn text_bytes(&self) -> usize {
        let texts = self.iter().map(|(_, value)| value.as_text().map_or(0, str::len));
        texts.sum()
    }

    /// True if the definition has no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The integer under `key`.
    pub fn integer(&self, key: PolicyKey) -> Option<i64> {
        self.0.get(&key)?.as_number()
    }

    /// The value under `key`.
    pub fn get(&self, key: PolicyKey) -> Option<PolicyValue> {
        self.0.get(&key).map(SettingValue::to_policy_value)
    }

    /// The typed value under `key`.
    pub(crate) fn setting(&self, key: PolicyKey) -> Option<&SettingValue> {
        self.0.get(&key)
    }

    /// The first key that keeps a policy from queues of that type: one disqualifies the whole policy. `alone` if the
    /// policy is for queues of this type alone.
    pub(crate) fn disqualified_by(&self, queue_type: QueueType, alone: bool) -> Option<PolicyKey> {
        self.0.keys().copied().find(|key| {
            let setting = key.setting();
            setting.disqualifies(queue_type) && !(alone && setting.is_of(queue_type))
        })
    }

    /// The definition in force when an operator's policy limits this one.
    #[must_use]
    pub fn limited_by(&self, operator: &Self) -> Self {
        let mut merged = self.0.clone();
        for (key, limit) in &operator.0 {
            let value = match merged.get(key) {
                Some(asked)
                    if !key
                        .setting()
                        .merge_of_policies()
                        .prefers_second(asked.as_number(), limit.as_number()) =>
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
    fn invalid_values_are_refused_in_rabbitmqs_words() {
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
    fn message_ttl_of_policy_has_no_upper_bound() {
        let definition = parse(&[("message-ttl", integer(1_000_000_000_000_000))]).unwrap();
        assert_eq!(definition.integer(PolicyKey::MessageTtl), Some(1_000_000_000_000_000));
    }

    #[test]
    fn routing_key_of_policy_fits_into_a_short_string() {
        let length = |n| parse(&[("dead-letter-routing-key", text(&"k".repeat(n)))]).is_ok();
        assert_eq!((length(255), length(256)), (true, false));
        assert!(parse(&[("dead-letter-exchange", text(&"k".repeat(256)))]).is_ok());
    }

    #[test]
    fn operator_policy_has_operator_keys_only() {
        let entries = vec![("dead-letter-exchange".to_owned(), text("dlx"))];
        assert!(
            Definition::parse(entries, PolicyKind::Operator)
                .unwrap_err()
                .ends_with("are not recognised policy settings")
        );
    }

    #[test]
    fn operator_policy_limits_and_does_not_loosen() {
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
    fn policy_with_a_key_of_another_type_does_not_apply() {
        let entries = [("message-ttl", integer(1)), ("target-group-size", integer(1))];
        let definition = parse(&entries).unwrap();
        let key = Some(PolicyKey::TargetGroupSize);
        assert_eq!(definition.disqualified_by(QueueType::Classic, false), key);
        assert_eq!(definition.disqualified_by(QueueType::Classic, true), key);
        assert_eq!(definition.disqualified_by(QueueType::Quorum, false), None);
    }

    #[test]
    fn policy_with_a_delivery_limit_applies_to_classic_queues_if_it_is_for_them_alone() {
        let definition = parse(&[("delivery-limit", integer(1))]).unwrap();
        let key = Some(PolicyKey::DeliveryLimit);
        assert_eq!(definition.disqualified_by(QueueType::Classic, false), key);
        assert_eq!(definition.disqualified_by(QueueType::Classic, true), None);
    }
}

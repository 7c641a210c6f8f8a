//! Limits of users and vhosts in JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::json::policy::term;
use crate::requests::LimitName;

/// Parses limits by name. `of` is RabbitMQ's name of the object: `limits` of a vhost, or `user-limits`.
///
/// # Errors
/// RabbitMQ's text about the first invalid limit.
pub fn limits_from_json<L: LimitName>(
    limits: &Map<String, Value>,
    of: &str,
) -> Result<BTreeMap<L, i64>, String> {
    limits.iter().map(|(name, value)| limit_from_json(name, value, of)).collect()
}

/// Parses one limit.
pub fn limit_from_json<L: LimitName>(
    name: &str,
    value: &Value,
    of: &str,
) -> Result<(L, i64), String> {
    let shown = || match value.as_str() {
        Some("") => "<<>>".to_owned(),
        Some(_) | None => term(value),
    };
    let limit = L::parse(name)
        .ok_or_else(|| format!("Unrecognised terms [{{<<\"{name}\">>,{}}}] in {of}", shown()))?;
    let number = value.as_i64();
    let number =
        number.ok_or_else(|| format!("{name} should be a number, actually was {}", shown()))?;
    Ok((limit, number))
}

/// Limits as a JSON object, by name.
pub fn limits_to_json<L: LimitName>(limits: &BTreeMap<L, i64>) -> Map<String, Value> {
    limits.iter().map(|(limit, max)| (limit.as_str().to_owned(), json!(max))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::{UserLimit, VhostLimit};

    #[test]
    fn limits_are_integers_with_a_name() {
        let wrong =
            |name, value| limit_from_json::<UserLimit>(name, &value, "user-limits").unwrap_err();
        assert_eq!(
            limit_from_json::<VhostLimit>("max-queues", &json!(-1), "limits"),
            Ok((VhostLimit::MaxQueues, -1))
        );
        assert_eq!(wrong("nope", json!(1)), "Unrecognised terms [{<<\"nope\">>,1}] in user-limits");
        for (value, shown) in [
            (json!("5"), "<<\"5\">>"),
            (json!(""), "<<>>"),
            (json!(5.0), "5.0"),
            (json!(null), "null"),
            (json!(["a", {}]), "[<<\"a\">>,#{}]"),
        ] {
            let expected = format!("max-channels should be a number, actually was {shown}");
            assert_eq!(wrong("max-channels", value), expected);
        }
    }

    #[test]
    fn limits_survive_a_round_trip() {
        let limits = BTreeMap::from([(UserLimit::MaxConnections, 5), (UserLimit::MaxChannels, -1)]);
        let json = limits_to_json(&limits);
        assert_eq!(Value::Object(json.clone()), json!({"max-channels": -1, "max-connections": 5}));
        assert_eq!(limits_from_json(&json, "user-limits"), Ok(limits));
    }
}

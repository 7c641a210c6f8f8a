//! Policies in JSON, with the same fields and errors in definitions and over HTTP.

use std::collections::BTreeMap;
use std::fmt;

use broker::{ApplyTo, Definition, Pattern, Policy, PolicyKey, PolicyKind, PolicyValue};
use serde_json::{Map, Value, json};

/// The reason why an object is no policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicyError {
    /// Missing fields.
    Missing(Vec<&'static str>),
    /// Errors of the present fields, ordered by field name.
    Invalid(Vec<String>),
}

impl fmt::Display for PolicyError {
    /// RabbitMQ's text over HTTP.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|field| format!("{{key_missing,{field}}}")).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Invalid(problems) => write!(f, "Validation failed\n\n{}\n", problems.join("\n")),
        }
    }
}

/// Parses a policy. The name in `object`, if any, is ignored.
///
/// # Errors
/// [`PolicyError`] with every invalid field.
pub fn policy_from_json(
    name: &str,
    object: &Map<String, Value>,
    kind: PolicyKind,
) -> Result<Policy, PolicyError> {
    let (definition, pattern) = match (object.get("definition"), object.get("pattern")) {
        (Some(definition), Some(pattern)) => (definition, pattern),
        (definition, pattern) => {
            let fields = [("pattern", pattern.is_none()), ("definition", definition.is_none())];
            let missing = fields.into_iter().filter(|(_, is_missing)| *is_missing);
            return Err(PolicyError::Missing(missing.map(|(field, _)| field).collect()));
        }
    };
    Parts {
        definition: self::definition(definition, kind),
        apply_to: apply_to(object.get("apply-to")),
        pattern: self::pattern(pattern),
        priority: object.get("priority").map_or(Ok(0.0), priority),
    }
    .policy(name)
}

/// Parses a policy from the value of a runtime parameter, where a priority is required and unknown fields
/// are refused.
///
/// # Errors
/// [`PolicyError`] with every invalid field.
pub fn parameter_from_json(
    name: &str,
    value: &Value,
    kind: PolicyKind,
) -> Result<Policy, PolicyError> {
    let invalid = |problem| Err(PolicyError::Invalid(vec![problem]));
    let Value::Object(object) = value else {
        return invalid(format!("{name} not a list {}", value_of(value)));
    };
    let is_known = |key: &str| ["definition", "apply-to", "pattern", "priority"].contains(&key);
    let unknown = object.iter().filter(|(key, _)| !is_known(key));
    let unknown: Vec<String> = unknown
        .map(|(key, value)| format!("{{{},{}}}", value_of(&json!(key)), value_of(value)))
        .collect();
    if !unknown.is_empty() {
        return invalid(format!("Unrecognised terms [{}] in {name}", unknown.join(",")));
    }
    let field = |key| object.get(key).ok_or_else(|| format!("Key \"{key}\" not found in {name}"));
    Parts {
        definition: field("definition").and_then(|value| definition(value, kind)),
        apply_to: apply_to(object.get("apply-to")),
        pattern: field("pattern").and_then(pattern),
        priority: field("priority").and_then(priority),
    }
    .policy(name)
}

/// The parsed fields of a policy, or their errors.
struct Parts {
    definition: Result<Definition, String>,
    apply_to: Result<ApplyTo, String>,
    pattern: Result<Pattern, String>,
    priority: Result<f64, String>,
}

impl Parts {
    fn policy(self, name: &str) -> Result<Policy, PolicyError> {
        match self {
            Self {
                definition: Ok(definition),
                apply_to: Ok(apply_to),
                pattern: Ok(pattern),
                priority: Ok(priority),
            } => Ok(Policy { name: name.into(), pattern, apply_to, priority, definition }),
            Self { definition, apply_to, pattern, priority } => {
                let problems = [definition.err(), apply_to.err(), pattern.err(), priority.err()];
                Err(PolicyError::Invalid(problems.into_iter().flatten().collect()))
            }
        }
    }
}

fn pattern(value: &Value) -> Result<Pattern, String> {
    match value.as_str() {
        Some(text) => Pattern::new(text),
        None => Err(format!("pattern should be a binary but was {}", value_of(value))),
    }
}

fn priority(value: &Value) -> Result<f64, String> {
    let wrong = || format!("priority should be a number, actually was {}", value_of(value));
    value.as_f64().ok_or_else(wrong)
}

fn definition(value: &Value, kind: PolicyKind) -> Result<Definition, String> {
    let Value::Object(entries) = value else {
        return Err("definition should be an object".to_owned());
    };
    // Errors name keys in order, not as sent.
    let entries: BTreeMap<&String, &Value> = entries.iter().collect();
    let entries = entries.into_iter().map(|(key, value)| {
        let delays = (PolicyKey::from_name(key) == Some(PolicyKey::DelayedRetrySchedule))
            .then(|| delays_of(value));
        (key.clone(), delays.flatten().unwrap_or_else(|| value_of(value)))
    });
    Definition::parse(entries.collect(), kind)
}

/// A schedule of retries that is given as an array of milliseconds, as the text with the same meaning.
fn delays_of(value: &Value) -> Option<PolicyValue> {
    let delays = value.as_array().filter(|delays| !delays.is_empty())?;
    let delays = delays.iter().map(|delay| delay.as_u64().map(|delay_ms| delay_ms.to_string()));
    Some(PolicyValue::Text(delays.collect::<Option<Vec<_>>>()?.join(",")))
}

fn apply_to(value: Option<&Value>) -> Result<ApplyTo, String> {
    let Some(value) = value else {
        return Ok(ApplyTo::default());
    };
    match value.as_str() {
        Some(word) => ApplyTo::parse(word),
        None => ApplyTo::parse(&value.to_string()),
    }
}

fn value_of(value: &Value) -> PolicyValue {
    match value {
        Value::String(text) => PolicyValue::Text(text.clone()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => PolicyValue::Integer(integer),
            // COMPAT: large integers: an integer of more than 64 bits is not a number here.
            (None, Some(float)) if !number.is_u64() => PolicyValue::Float(float),
            (None, _) => PolicyValue::Other(number.to_string()),
        },
        Value::Null | Value::Bool(_) => PolicyValue::Other(value.to_string()),
        Value::Array(_) | Value::Object(_) => PolicyValue::Other(term(value)),
    }
}

/// The value as RabbitMQ's error texts print it.
pub(crate) fn term(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(term).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(entries) => {
            let entries: BTreeMap<&String, &Value> = entries.iter().collect();
            let entry = |(key, value)| format!("{} => {}", value_of(&json!(key)), term(value));
            format!("#{{{}}}", entries.into_iter().map(entry).collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            value_of(value).to_string()
        }
    }
}

/// A policy in JSON, with its vhost.
pub fn policy_of_vhost_to_json(vhost: &str, policy: &Policy) -> Value {
    let mut shown = Map::new();
    shown.insert("vhost".to_owned(), json!(vhost));
    if let Value::Object(mut policy) = policy_to_json(policy) {
        shown.append(&mut policy);
    }
    Value::Object(shown)
}

/// A policy in JSON, without its vhost.
pub fn policy_to_json(policy: &Policy) -> Value {
    json!({
        "name": *policy.name,
        "pattern": policy.pattern.as_str(),
        "apply-to": policy.apply_to.as_str(),
        "definition": definition_to_json(&policy.definition),
        "priority": priority_to_json(policy.priority),
    })
}

/// The definition of a policy in JSON, ordered by key as in RabbitMQ.
pub fn definition_to_json(definition: &Definition) -> Value {
    let entries = definition.iter().map(|(key, value)| (key.as_str(), value_to_json(&value)));
    json!(entries.collect::<BTreeMap<&str, Value>>())
}

/// A priority in JSON, as an integer if it has no fraction.
pub fn priority_to_json(priority: f64) -> Value {
    priority.to_string().parse::<i64>().map_or_else(|_| json!(priority), |integer| json!(integer))
}

/// A value of a definition in JSON.
pub fn value_to_json(value: &PolicyValue) -> Value {
    match value {
        PolicyValue::Integer(value) => json!(value),
        PolicyValue::Float(value) => json!(value),
        PolicyValue::Text(value) | PolicyValue::Other(value) => json!(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_of_retries_may_be_an_array() {
        let policy = |schedule: Value| {
            let definition =
                json!({"delayed-retry-type": "all", "delayed-retry-schedule": schedule});
            let policy = json!({"pattern": "x", "definition": definition});
            let policy = policy_from_json("p", policy.as_object().unwrap(), PolicyKind::User);
            policy.map(|policy| {
                definition_to_json(&policy.definition)["delayed-retry-schedule"].clone()
            })
        };
        assert_eq!(policy(json!([1000, 5000])), Ok(json!("1000,5000")));
        assert_eq!(policy(json!("1s,5s")), Ok(json!("1s,5s")));
        for wrong in [json!([]), json!([0]), json!([-1]), json!(["1s"]), json!([1.5]), json!(5)] {
            assert!(policy(wrong.clone()).is_err(), "{wrong}");
        }
    }

    fn read(text: &str) -> Result<Policy, String> {
        let object: Map<String, Value> = serde_json::from_str(text).unwrap();
        policy_from_json("p", &object, PolicyKind::User).map_err(|problem| problem.to_string())
    }

    #[test]
    fn policy_survives_a_round_trip() {
        let text = r#"{"pattern":"^a","apply-to":"queues","priority":1.5,
            "definition":{"message-ttl":5,"dead-letter-exchange":"dlx"}}"#;
        assert_eq!(
            policy_of_vhost_to_json("/", &read(text).unwrap()).to_string(),
            r#"{"vhost":"/","name":"p","pattern":"^a","apply-to":"queues","#.to_owned()
                + r#""definition":{"dead-letter-exchange":"dlx","message-ttl":5},"priority":1.5}"#
        );
    }

    #[test]
    fn policy_fields_have_defaults() {
        let policy = policy_of_vhost_to_json(
            "/",
            &read(r#"{"pattern":"","definition":{"expires":1}}"#).unwrap(),
        );
        assert_eq!((&policy["apply-to"], &policy["priority"]), (&json!("all"), &json!(0)));
    }

    #[test]
    fn policy_priority_is_any_number() {
        for (written, shown) in [("-1", "-1"), ("2.0", "2"), ("-0.5", "-0.5"), ("1e300", "1e+300")]
        {
            let text =
                format!(r#"{{"pattern":"","definition":{{"expires":1}},"priority":{written}}}"#);
            assert_eq!(
                policy_of_vhost_to_json("/", &read(&text).unwrap())["priority"].to_string(),
                shown
            );
        }
    }

    #[test]
    fn policy_errors_are_reported_together() {
        assert_eq!(read("{}").unwrap_err(), "[{key_missing,pattern},{key_missing,definition}]");
        assert_eq!(read(r#"{"pattern":5}"#).unwrap_err(), "[{key_missing,definition}]");
        assert_eq!(
            read(r#"{"pattern":5,"definition":{"expires":0},"priority":"x"}"#).unwrap_err(),
            "Validation failed\n\n0 is not a valid queue expiry\n\
             pattern should be a binary but was 5\n\
             priority should be a number, actually was <<\"x\">>\n"
        );
        let unrecognised = read(r#"{"pattern":"","definition":{"expires":1},"apply-to":null}"#);
        assert!(unrecognised.unwrap_err().contains("apply-to 'null' unrecognised"));
        assert_eq!(
            read(r#"{"pattern":"","definition":{"z":1,"a":"x"}}"#).unwrap_err(),
            "Validation failed\n\n[{<<\"a\">>,<<\"x\">>},{<<\"z\">>,1}] are not recognised policy \
             settings\n"
        );
        assert_eq!(
            read(r#"{"pattern":"","definition":[]}"#).unwrap_err(),
            "Validation failed\n\ndefinition should be an object\n"
        );
    }
}

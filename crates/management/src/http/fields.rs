//! Fields of a JSON object in a body, parsed as leniently as RabbitMQ does for queues, exchanges, bindings
//! and messages.

use axum::body::Bytes;
use serde_json::{Map, Value, json};

use crate::http::answer::ApiError;
use crate::http::body::Object;

/// Maximum length of a list of missing fields that RabbitMQ writes on one line, in bytes.
const LINE_BYTES_MAX: usize = 78;

/// The fields of an object.
#[derive(Debug)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Parses a body. An empty body, `null` and `undefined` count as an empty object.
    pub(crate) fn read(body: &Bytes) -> Result<Self, ApiError> {
        if **body == *b"undefined" {
            return Ok(Self(Map::new()));
        }
        Object::parse(body).map(|Object(fields)| Self(fields))
    }

    /// The field of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The values of required fields; the error names all missing fields.
    pub(crate) fn required<const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[&Value; N], ApiError> {
        let missing: Vec<String> = names
            .iter()
            .filter(|name| !self.0.contains_key(**name))
            .map(|name| format!("{{key_missing,{name}}}"))
            .collect();
        if missing.is_empty() {
            return Ok(names.map(|name| self.get(name).unwrap_or(&Value::Null)));
        }
        let line = format!("[{}]", missing.join(","));
        Err(ApiError::bad_request(match line.len() > LINE_BYTES_MAX {
            true => format!("[{}]", missing.join(",\n ")),
            false => line,
        }))
    }

    /// A flag; false if missing.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        self.get(name).map_or(Ok(false), flag)
    }

    /// A string; empty if missing.
    pub(crate) fn text(&self, name: &str) -> Result<&str, ApiError> {
        self.get(name).map_or(Ok(""), |value| text(name, value))
    }
}

/// A value as a flag. The words `true` and `false` count.
pub(crate) fn flag(value: &Value) -> Result<bool, ApiError> {
    let word = match value.as_str() {
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) | None => value.as_bool(),
    };
    word.ok_or_else(|| ApiError::bad_request(json!(["not_boolean", value])))
}

/// A value as a string.
pub(crate) fn text<'a>(name: &str, value: &'a Value) -> Result<&'a str, ApiError> {
    value.as_str().ok_or_else(|| ApiError::bad_request(json!(["not_string", name])))
}

/// A value as a whole number. Strings of digits count, and fractions are cut off.
pub(crate) fn integer(value: &Value) -> Result<i64, ApiError> {
    let number = match value {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(truncated)),
        Value::String(digits) => digits.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    number.ok_or_else(|| ApiError::bad_request(json!(["not_integer", value])))
}

#[expect(clippy::cast_possible_truncation, reason = "too large is as large as can be")]
fn truncated(number: f64) -> i64 {
    number as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(body: &str) -> Result<Fields, ApiError> {
        Fields::read(&Bytes::copy_from_slice(body.as_bytes()))
    }

    #[test]
    fn fields_treat_an_empty_body_as_an_empty_object() {
        for body in ["", "null", "undefined", "{}"] {
            assert!(fields(body).unwrap().0.is_empty(), "{body}");
        }
        for body in ["{", "[]", "5", "{} x", "{\"a\":1e400}"] {
            assert_eq!(fields(body).unwrap_err(), ApiError::bad_request("not_json"), "{body}");
        }
        assert_ne!(fields("\"{}\"").unwrap_err(), ApiError::bad_request("not_json"));
    }

    #[test]
    fn fields_accept_flags_and_numbers_as_strings() {
        let fields = fields(r#"{"a":true,"b":"false","c":null,"d":1}"#).unwrap();
        assert_eq!(
            (fields.flag("a"), fields.flag("b"), fields.flag("z")),
            (Ok(true), Ok(false), Ok(false))
        );
        let error = ApiError::bad_request(json!(["not_boolean", null]));
        assert_eq!(fields.flag("c"), Err(error));
        for (value, expected) in
            [(json!(5), 5), (json!("-5"), -5), (json!(1.9), 1), (json!(1e300), i64::MAX)]
        {
            assert_eq!(integer(&value), Ok(expected));
        }
        let error = |value: Value| ApiError::bad_request(json!(["not_integer", value]));
        for value in [json!("x"), json!(null), json!([1]), json!("1.5")] {
            assert_eq!(integer(&value), Err(error(value)));
        }
    }

    #[test]
    fn fields_list_missing_ones_as_rabbitmq_does() {
        let empty = fields("").unwrap();
        let error = |reason: &str| ApiError::bad_request(reason);
        assert_eq!(empty.required(["action"]).unwrap_err(), error("[{key_missing,action}]"));
        assert_eq!(
            empty.required(["properties", "payload", "payload_encoding"]).unwrap_err(),
            error(
                "[{key_missing,properties},\n {key_missing,payload},\n {key_missing,payload_encoding}]"
            )
        );
    }
}

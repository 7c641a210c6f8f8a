//! What stands in the body of a request: a JSON object, and in it what is asked for.

use std::collections::BTreeMap;

use axum::extract::{FromRequest, Request};
use serde_json::{Map, Value};

use super::Body;
use crate::answer::ApiError;
use crate::node::LimitName;

/// What RabbitMQ says to a client that has encoded its object twice.
const JSON_IN_JSON: &str = "invalid payload: the request body JSON-decoded to a string. Is the input \
    doubly-JSON-encoded?";

/// The object in the body. No body at all, or `null`, counts as an empty one, as in RabbitMQ.
#[derive(Debug)]
pub(super) struct Object(pub(super) Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Object {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let Body(body) = Body::from_request(request, state).await?;
        Self::parse(&body)
    }
}

impl Object {
    pub(super) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Ok(Self(Map::new()));
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(object)) => Ok(Self(object)),
            Ok(Value::Null) => Ok(Self(Map::new())),
            Ok(Value::String(_)) => Err(ApiError::bad_request(JSON_IN_JSON)),
            Ok(_) | Err(_) => Err(ApiError::bad_request("not_json")),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The values of these keys; all that are missing are named.
    pub(super) fn required<const N: usize>(
        &self,
        keys: [&'static str; N],
    ) -> Result<[&Value; N], ApiError> {
        let found = keys.map(|key| self.0.get(key));
        let missing = keys.iter().zip(&found).filter(|(_, value)| value.is_none());
        let missing: Vec<String> =
            missing.map(|(key, _)| format!("{{key_missing,{key}}}")).collect();
        if missing.is_empty() {
            return Ok(found.map(|value| value.unwrap_or(&Value::Null)));
        }
        Err(ApiError::bad_request(format!("[{}]", missing.join(","))))
    }

    /// The texts under these keys, all of which must be there.
    pub(super) fn texts<const N: usize>(
        &self,
        keys: [&'static str; N],
    ) -> Result<[&str; N], ApiError> {
        let values = self.required(keys)?;
        if let Some(at) = values.iter().position(|value| !value.is_string()) {
            let key = keys.get(at).unwrap_or(&"");
            return Err(not_a(key, "string"));
        }
        Ok(values.map(|value| value.as_str().unwrap_or_default()))
    }
}

/// What is wrong with the value of a key.
pub(super) fn not_a(key: &str, kind: &str) -> ApiError {
    ApiError::bad_request(format!("{key} should be a {kind}"))
}

/// Tags: a list, or a text with commas between them.
pub(super) fn tags(value: &Value) -> Result<Vec<String>, ApiError> {
    match value {
        Value::String(text) => {
            let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            Ok(tags.map(str::to_owned).collect())
        }
        Value::Array(tags) => {
            let tags = tags.iter().map(|tag| tag.as_str().map(str::to_owned));
            tags.collect::<Option<_>>().ok_or_else(|| not_a("tags", "list of strings"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(not_a("tags", "list of strings"))
        }
    }
}

/// Limits by name.
///
/// # Errors
/// What RabbitMQ says of the first that is wrong; `of` is what it calls them.
pub fn limits_from_json<L: LimitName>(
    limits: &Map<String, Value>,
    of: &str,
) -> Result<BTreeMap<L, i64>, String> {
    limits.iter().map(|(name, value)| limit(name, value, of)).collect()
}

/// One limit.
pub(super) fn limit<L: LimitName>(name: &str, value: &Value, of: &str) -> Result<(L, i64), String> {
    let shown = || match value.as_str() {
        Some(text) => format!("<<\"{text}\">>"),
        None => value.to_string(),
    };
    let limit = L::parse(name)
        .ok_or_else(|| format!("Unrecognised terms [{{<<\"{name}\">>,{}}}] in {of}", shown()))?;
    let number = value.as_i64();
    let number =
        number.ok_or_else(|| format!("{name} should be a number, actually was {}", shown()))?;
    Ok((limit, number))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node::{UserLimit, VhostLimit};

    #[test]
    fn what_is_no_object_is_told_from_what_lacks_something() {
        let reason = |error: ApiError| error.reason().to_owned();
        assert_eq!(reason(Object::parse(b"\"{}\"").unwrap_err()), JSON_IN_JSON);
        for text in ["{", "[]", "5"] {
            assert_eq!(reason(Object::parse(text.as_bytes()).unwrap_err()), "not_json", "{text}");
        }
        for text in ["", "null", "{}"] {
            let object = Object::parse(text.as_bytes()).unwrap();
            let expected = "[{key_missing,a},{key_missing,b}]";
            assert_eq!(reason(object.texts(["a", "b"]).unwrap_err()), expected, "{text}");
        }
        let object = Object::parse(b"{\"a\": \"x\", \"b\": 5}").unwrap();
        assert_eq!(object.texts(["a"]).unwrap(), ["x"]);
        assert_eq!(reason(object.texts(["a", "b"]).unwrap_err()), "b should be a string");
        assert_eq!(reason(object.required(["b", "c"]).unwrap_err()), "[{key_missing,c}]");
    }

    #[test]
    fn tags_are_a_list_or_a_text() {
        assert_eq!(tags(&json!("a,,b , c")).unwrap(), ["a", "b", "c"]);
        assert_eq!(tags(&json!("")).unwrap(), [""; 0]);
        assert_eq!(tags(&json!(["a b", "c"])).unwrap(), ["a b", "c"]);
        for wrong in [json!(7), json!([7]), json!(null), json!({})] {
            assert!(tags(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_integers_with_a_name() {
        let wrong = |name, value| limit::<UserLimit>(name, &value, "user-limits").unwrap_err();
        assert_eq!(
            limit::<VhostLimit>("max-queues", &json!(-1), "limits"),
            Ok((VhostLimit::MaxQueues, -1))
        );
        assert_eq!(wrong("nope", json!(1)), "Unrecognised terms [{<<\"nope\">>,1}] in user-limits");
        for (value, shown) in
            [(json!("5"), "<<\"5\">>"), (json!(5.0), "5.0"), (json!(null), "null")]
        {
            let expected = format!("max-channels should be a number, actually was {shown}");
            assert_eq!(wrong("max-channels", value), expected);
        }
    }
}

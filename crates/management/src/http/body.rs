//! JSON objects in the bodies of requests.

use axum::extract::{FromRequest, Request};
use serde_json::{Map, Value};
use server::limits::JSON_DEPTH_MAX;

use crate::http::answer::ApiError;
use crate::http::extract::Body;
use crate::json::bounded::read;
use crate::limits::BODY_VALUES_MAX;

/// RabbitMQ's answer to an object that was encoded twice.
const JSON_IN_JSON: &str = "invalid payload: the request body JSON-decoded to a string. Is the input \
    doubly-JSON-encoded?";

/// The JSON object in a body. As in RabbitMQ, an empty body or `null` counts as an empty object.
#[derive(Debug)]
pub(crate) struct Object(pub(crate) Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Object {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let Body(body) = Body::from_request(request, state).await?;
        Self::parse(&body)
    }
}

impl Object {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Ok(Self(Map::new()));
        }
        match read(body, BODY_VALUES_MAX, JSON_DEPTH_MAX) {
            Ok(Value::Object(object)) => Ok(Self(object)),
            Ok(Value::Null) => Ok(Self(Map::new())),
            Ok(Value::String(_)) => Err(ApiError::bad_request(JSON_IN_JSON)),
            Ok(_) => Err(ApiError::bad_request("not_json")),
            Err(error) => Err(error.refused("not_json")),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The values of required keys; the error names all missing keys.
    pub(crate) fn required<const N: usize>(
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

    /// The strings under required keys.
    pub(crate) fn texts<const N: usize>(
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

/// The answer if the value of a key is not a `kind`.
pub(crate) fn not_a(key: &str, kind: &str) -> ApiError {
    ApiError::bad_request(format!("{key} should be a {kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_errors_distinguish_wrong_types_and_missing_keys() {
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
}

//! Fields of answers in JSON. A field that is missing, or of another type, has the empty value.

use serde_json::Value;

/// The text of a field.
pub(super) fn word<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The number of a field.
pub(super) fn number(of: &Value, name: &str) -> u64 {
    of.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// The items of a field that is a list.
pub(super) fn items<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

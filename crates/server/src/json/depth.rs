//! The depth of JSON.

use serde_json::Value;

/// The number of lists and objects of a value that lie inside each other: 0 for a number, 1 for a list of numbers.
#[must_use]
pub fn json_depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(json_depth).max().unwrap_or(0),
        Value::Object(items) => 1 + items.values().map(json_depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

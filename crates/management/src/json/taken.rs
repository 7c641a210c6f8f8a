//! Lists out of the answers of other nodes.

use serde_json::Value;

/// Takes the list of this name out of an object; none if there is no such list.
pub(crate) fn taken(object: &mut Value, name: &str) -> Option<Vec<Value>> {
    match object.get_mut(name).map(Value::take) {
        Some(Value::Array(items)) => Some(items),
        _ => None,
    }
}

//! Order and columns of the items of a list.

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// The value at a path with dots.
pub(super) fn at<'a>(item: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(item, |value, name| value.get(name))
}

/// The order of values: missing, numbers, literals, objects and lists, strings.
pub(super) fn compare(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    let (Some(a), Some(b)) = (a, b) else {
        return a.is_some().cmp(&b.is_some());
    };
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::Null | Value::Bool(_) => 1,
        Value::Object(_) | Value::Array(_) => 2,
        Value::String(_) => 3,
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_u64(), b.as_u64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
        },
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let members = a.iter().zip(b).map(|(a, b)| compare(Some(a), Some(b)));
            members.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// An item with the requested columns, or with all.
pub(super) fn selected(item: Value, columns: Option<&[String]>) -> Value {
    let Some(columns) = columns else { return item };
    let paths: Vec<&str> = columns.iter().map(String::as_str).collect();
    select_paths(&item, &paths).unwrap_or_else(|| Value::Object(Map::new()))
}

/// The parts of a value at the given paths. Arguments are one column, because their names may contain dots.
fn select_paths(value: &Value, paths: &[&str]) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            let mut found = Map::new();
            for (name, field) in fields {
                let below = paths.iter().filter_map(|path| match path.split_once('.') {
                    Some((first, rest)) if first == name => Some(Some(rest)),
                    None if path == name => Some(None),
                    _ => None,
                });
                let below: Vec<Option<&str>> = below.collect();
                let rests: Option<Vec<&str>> = below.iter().copied().collect();
                let json = match rests {
                    Some(rests) if rests.is_empty() => None,
                    Some(rests) if name != "arguments" => select_paths(field, &rests),
                    _ => Some(field.clone()),
                };
                if let Some(json) = json {
                    found.insert(name.clone(), json);
                }
            }
            (!found.is_empty()).then_some(Value::Object(found))
        }
        Value::Array(items) => {
            Some(items.iter().filter_map(|one| select_paths(one, paths)).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_ordered_by_their_first_differing_member_then_by_length() {
        let ordered = [json!([]), json!(["a"]), json!(["a", "b"]), json!(["b"])];
        for (at, one) in ordered.iter().enumerate() {
            for (other_at, other) in ordered.iter().enumerate() {
                assert_eq!(compare(Some(one), Some(other)), at.cmp(&other_at), "{one} {other}");
            }
        }
    }
}

//! The changes that an import of definitions would make, as text.

use serde_json::Value;

use crate::printable::in_line;
use crate::term::Term;

/// The families in the order of an import.
const FAMILIES: [&str; 10] = [
    "users",
    "vhosts",
    "permissions",
    "topic_permissions",
    "global_parameters",
    "parameters",
    "policies",
    "exchanges",
    "queues",
    "bindings",
];

/// The changes and what they mean for an existing item.
const CHANGES: [(&str, &str); 4] =
    [("new", "new"), ("changed", "replaced"), ("kept", "kept as it is"), ("skipped", "skipped")];

/// The answer to a dry run, a line for each family and one for each named item.
pub(in crate::commands) fn told(answer: &Value) -> String {
    let mut lines = Vec::new();
    for name in FAMILIES {
        let Some(family) = answer.get(name) else { continue };
        let count = |change: &str| family.get(change).and_then(Value::as_u64).unwrap_or_default();
        let counts: Vec<String> = ["new", "changed", "kept", "equal", "skipped"]
            .into_iter()
            .filter(|change| count(change) > 0)
            .map(|change| format!("{} {change}", count(change)))
            .collect();
        if counts.is_empty() {
            continue;
        }
        lines.push(format!("{name}: {}", counts.join(", ")));
        for (change, meaning) in CHANGES {
            let items =
                family.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let of = items.iter().filter(|item| item.get("change").is_some_and(|is| is == change));
            let named: Vec<&Value> = of.collect();
            lines.extend(named.iter().map(|item| format!("  {meaning}: {}", in_line(&line(item)))));
            let more = count(change).saturating_sub(named.len() as u64);
            if more > 0 {
                lines.push(format!("  {meaning}: and {more} more"));
            }
        }
    }
    if lines.is_empty() {
        lines.push("The file has no definitions.".to_owned());
    }
    lines.join("\n")
}

/// The name of an item, and what differs.
fn line(item: &Value) -> String {
    let text = |field| item.get(field).map(|value| Term::of(Some(value)).shown());
    let mut name = match (text("source"), text("destination")) {
        (Some(source), Some(destination)) => {
            let key = text("routing_key").unwrap_or_default();
            format!("from '{source}' to '{destination}' with key '{key}'")
        }
        _ => {
            let parts = ["component", "name", "user", "exchange"].map(text);
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            format!("'{}'", parts.join("' '"))
        }
    };
    if let Some(vhost) = text("vhost") {
        name.push_str(&format!(" in vhost '{vhost}'"));
    }
    let differences = item.get("differences").and_then(Value::as_array);
    let differences: Vec<String> = differences.into_iter().flatten().map(difference).collect();
    match differences.is_empty() {
        true => name,
        false => format!("{name} ({})", differences.join(", ")),
    }
}

/// A field with its values, or without them if they are secret.
fn difference(difference: &Value) -> String {
    let value = |name| difference.get(name).map(Value::to_string);
    let field = Term::of(difference.get("field")).shown();
    match (value("before"), value("after")) {
        (None, None) => field,
        (before, after) => {
            let [before, after] =
                [before, after].map(|value| value.unwrap_or_else(|| "none".to_owned()));
            format!("{field}: {before} -> {after}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_listed_by_family() {
        let answer = json!({
            "queues": {"new": 2, "equal": 5, "changed": 0, "kept": 1, "skipped": 0, "items": [
                {"change": "new", "vhost": "/", "name": "a"},
                {"change": "kept", "vhost": "/", "name": "b",
                    "differences": [{"field": "arguments.x-max-length", "after": 5}]},
            ]},
            "users": {"new": 0, "equal": 0, "changed": 1, "kept": 0, "skipped": 0, "items": [
                {"change": "changed", "name": "u", "differences": [{"field": "password"},
                    {"field": "tags", "before": [], "after": ["monitoring"]}]},
            ]},
            "bindings": {"new": 1, "equal": 0, "changed": 0, "kept": 0, "skipped": 0, "items": [
                {"change": "new", "vhost": "/", "source": "x", "destination": "a",
                    "destination_type": "queue", "routing_key": "k"},
            ]},
        });
        let expected = "users: 1 changed\n  \
            replaced: 'u' (password, tags: [] -> [\"monitoring\"])\n\
            queues: 2 new, 1 kept, 5 equal\n  \
            new: 'a' in vhost '/'\n  \
            new: and 1 more\n  \
            kept as it is: 'b' in vhost '/' (arguments.x-max-length: none -> 5)\n\
            bindings: 1 new\n  \
            new: from 'x' to 'a' with key 'k' in vhost '/'";
        assert_eq!(told(&answer), expected);
    }

    #[test]
    fn name_of_an_item_ends_no_line() {
        let answer = json!({"users": {"new": 1, "items": [{"change": "new", "name": "a\nb"}]}});
        assert_eq!(told(&answer), "users: 1 new\n  new: 'a\\u000ab'");
    }

    #[test]
    fn empty_definitions_are_told() {
        assert_eq!(told(&json!({})), "The file has no definitions.");
    }
}

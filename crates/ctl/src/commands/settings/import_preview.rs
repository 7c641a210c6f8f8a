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
    let mut remarks: Vec<String> = differences.into_iter().flatten().map(difference).collect();
    remarks.extend(text("reason"));
    match remarks.is_empty() {
        true => name,
        false => format!("{name} ({})", remarks.join(", ")),
    }
}

/// The items that an import has left out, below a headline; empty if there are none.
pub(in crate::commands) fn left_out(answer: &Value) -> Vec<String> {
    let total = answer.get("left_out_total").and_then(Value::as_u64).unwrap_or_default();
    if total == 0 {
        return Vec::new();
    }
    let headline = match total {
        1 => "Warning: 1 item of the definitions is not, or not completely, imported:".to_owned(),
        _ => format!(
            "Warning: {total} items of the definitions are not, or not completely, imported:"
        ),
    };
    with_items(headline, answer.get("left_out"), total)
}

/// The problems for which definitions are refused, below a headline; the reason alone if there is one problem.
pub(in crate::commands) fn problems(answer: &Value) -> Vec<String> {
    let total = answer.get("problems_total").and_then(Value::as_u64).unwrap_or_default();
    let mut lines = match total {
        0 | 1 => vec![Term::of(answer.get("reason")).shown()],
        _ => {
            let headline =
                format!("{total} items of the definitions cannot be imported, so nothing is:");
            with_items(headline, answer.get("problems"), total)
        }
    };
    let named = answer.get("problems").and_then(Value::as_array);
    let is_unsupported = |item: &Value| item.get("unsupported") == Some(&Value::Bool(true));
    if named.into_iter().flatten().any(is_unsupported) {
        lines.push("--skip-unsupported leaves out what Leveret does not have.".to_owned());
    }
    lines
}

/// A headline, and below it a line for each item, with the number of those that are not named.
fn with_items(headline: String, items: Option<&Value>, total: u64) -> Vec<String> {
    let items = items.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let one = |item: &Value| {
        let family = Term::of(item.get("family")).shown();
        let number = item.get("item").and_then(Value::as_u64);
        let number = number.map(|number| format!(", item {number}")).unwrap_or_default();
        in_line(&format!("  {family}{number}: {}", line(item))).into_owned()
    };
    let mut lines = vec![headline];
    lines.extend(items.iter().map(one));
    let more = total.saturating_sub(items.len() as u64);
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    lines
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
    fn problems_are_told_with_the_way_out() {
        let one = json!({"reason": "r (queues, item 1)", "problems_total": 1, "problems": []});
        assert_eq!(problems(&one), ["r (queues, item 1)"]);
        let two = json!({"reason": "r", "problems_total": 2, "problems": [
            {"family": "queues", "item": 3, "vhost": "/", "name": "s", "reason": "why", "unsupported": true},
        ]});
        assert_eq!(
            problems(&two),
            [
                "2 items of the definitions cannot be imported, so nothing is:",
                "  queues, item 3: 's' in vhost '/' (why)",
                "  and 1 more",
                "--skip-unsupported leaves out what Leveret does not have.",
            ]
        );
    }

    #[test]
    fn empty_definitions_are_told() {
        assert_eq!(told(&json!({})), "The file has no definitions.");
    }
}

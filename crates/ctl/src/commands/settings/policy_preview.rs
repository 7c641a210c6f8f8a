//! Commands of Leveret: explanation of a queue's settings, and preview of a policy.

use serde_json::{Value, json};

use super::policies::{OPERATOR_POLICIES, POLICIES, SWITCHES, described};
use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::failure::Failure;
use crate::format::{Formatter, Output, Style, formatted};
use crate::http::{HttpError, path};
use crate::printable::in_line;
use crate::rows::{rows_of, same};
use crate::term::Term;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Queues,
        "explain_queue",
        "explain_queue [--vhost <vhost>] <queue>",
        "Shows the effective settings of a queue, their sources, and the overridden values",
        explain,
    )
    .everywhere()
    .words(1, 1)
    .banner(|call| format!("Explaining queue '{}' in vhost '{}' ...", call.word(0), call.vhost())),
    Command::new(
        Section::Policies,
        "dry_run_policy",
        "dry_run_policy [--vhost <vhost>] [--priority <priority>] [--apply-to <apply-to>] \
         [--operator] <name> <pattern> <definition> | --clear <name>",
        "Shows the effects of a policy, or of its removal, without changing anything",
        dry_run,
    )
    .words(1, 3)
    .switches(DRY_RUN)
    .check(|call| match (call.has("clear"), call.words.len()) {
        (true, 1) | (false, 3) => Ok(()),
        (true, _) => Err(Failure::too_many_arguments()),
        (false, _) => Err(Failure::not_enough_arguments()),
    })
    .banner(|call| {
        let does = if call.has("clear") { "Clearing" } else { "Setting" };
        let kind = if call.has("operator") { "operator policy" } else { "policy" };
        format!("{does} {kind} \"{}\" on vhost \"{}\" would do ...", call.word(0), call.vhost())
    }),
];

const DRY_RUN: &[Switch] =
    &[SWITCHES[0], SWITCHES[1], Switch::flag("operator"), Switch::flag("clear")];

/// A table as text, for answers that are also shown as a whole.
fn table(rows: Vec<Vec<(String, Term)>>) -> String {
    let style = Style { has_header: true, is_unicode: true };
    formatted(&rows.into(), Formatter::Table, style, "")
}

fn explain(call: &Call<'_>) -> Result<Output, Failure> {
    let answer = call.node.api.find(&path(&["queues", call.vhost(), call.word(0), "explain"]))?;
    let answer = answer.ok_or_else(|| Failure::no_such_queue(call.vhost(), call.word(0)))?;
    let text = settings(answer.get("keys").and_then(Value::as_array).cloned().unwrap_or_default());
    Ok(Output::Both(text, answer))
}

/// The settings of a queue as a table: first those that somebody has set, then those at their defaults.
fn settings(mut keys: Vec<Value>) -> String {
    let is_default = |key: &Value| {
        let nothing_lost = key.get("lost").and_then(Value::as_array).is_none_or(Vec::is_empty);
        nothing_lost && key.get("source").and_then(Value::as_str) == Some("default")
    };
    // The sort is stable: each part keeps its order.
    keys.sort_by_key(is_default);
    let (total, defaults) = (keys.len(), keys.iter().filter(|key| is_default(key)).count());
    let rows = rows_of(&Value::Array(keys), |key| {
        vec![
            same(key, "key"),
            same(key, "value"),
            same(key, "source"),
            same(key, "source_name"),
            ("lost".to_owned(), Term::text(lost(key))),
        ]
    });
    format!("{}\n{defaults} of {total} settings are at their defaults", table(rows))
}

/// Values that a key has overridden: `policy ttl: 60000 (why)`.
fn lost(key: &Value) -> String {
    let text = |one: &Value, field| Term::of(one.get(field)).shown();
    let one = |one: &Value| {
        let source = format!("{} {}", text(one, "source"), text(one, "source_name"));
        format!("{}: {} ({})", source.trim(), text(one, "value"), text(one, "why"))
    };
    let all = key.get("lost").and_then(Value::as_array);
    all.into_iter().flatten().map(one).collect::<Vec<_>>().join("; ")
}

fn dry_run(call: &Call<'_>) -> Result<Output, Failure> {
    let kind = if call.has("operator") { OPERATOR_POLICIES } else { POLICIES };
    let policy = if call.has("clear") { json!({"delete": true}) } else { described(call)? };
    let at = path(&[kind, call.vhost(), call.word(0), "dry-run"]);
    let answer = match call.node.api.post(&at, &policy) {
        Err(HttpError::Refused { status: 404, .. }) if call.has("clear") => {
            return Err(Failure::no_such_parameter());
        }
        Err(HttpError::Refused { status: 404, .. }) => {
            return Err(Failure::no_such_vhost(call.vhost()));
        }
        result => result?,
    };
    let totals = answer.as_object().into_iter().flatten().filter(|(_, value)| value.is_number());
    let mut lines: Vec<String> = totals.map(|(name, value)| format!("{name}: {value}")).collect();
    lines.extend(without_effect(&answer));
    let mut text = lines.join("\n");
    let columns = ["name", "type", "messages", "expired", "dead_lettered", "dropped"];
    let queues = answer.get("queues").cloned().unwrap_or_default();
    let rows = rows_of(&queues, |queue| columns.map(|name| same(queue, name)).to_vec());
    if !rows.is_empty() {
        text.push_str("\n\n");
        text.push_str(&table(rows));
    }
    Ok(Output::Both(text, answer))
}

/// The reasons why the policy has no effect on queues that its pattern matches, a sentence for each.
fn without_effect(answer: &Value) -> Vec<String> {
    let queues = |count: u64| format!("{count} queue{}", if count == 1 { "" } else { "s" });
    let count = |value: &Value, name| value.get(name).and_then(Value::as_u64).unwrap_or_default();
    let text = |value: &Value, name| Term::of(value.get(name)).shown();
    let all = answer.get("outranked_by").and_then(Value::as_array);
    let mut sentences: Vec<String> = all
        .into_iter()
        .flatten()
        .map(|policy| {
            let (name, priority) = (text(policy, "name"), text(policy, "priority"));
            let there = queues(count(policy, "queues"));
            format!(
                "Policy '{name}' of priority {priority} takes precedence in {there} that the pattern matches \
                 (see --priority)"
            )
        })
        .collect();
    let excluded = count(answer, "queues_excluded");
    if excluded > 0 {
        sentences.push(format!(
            "The policy leaves out {} that the pattern matches: --apply-to or a key does not fit the type",
            queues(excluded)
        ));
    }
    sentences.iter().map(|sentence| in_line(sentence).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_somebody_has_set_come_first() {
        let key =
            |key: &str, source: &str| json!({"key": key, "value": 1, "source": source, "lost": []});
        let mut limited = key("c", "default");
        limited["lost"] =
            json!([{"source": "argument", "source_name": null, "value": 2, "why": "w"}]);
        let text = settings(vec![key("a", "default"), key("b", "policy"), limited]);
        let names: Vec<&str> = text.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(names, ["key", "b", "c", "a", "", "1 of 3 settings are at their defaults"]);
    }

    #[test]
    fn policies_that_take_precedence_are_named() {
        let answer = json!({"queues_excluded": 2, "outranked_by": [
            {"name": "high", "priority": 5, "queues": 1},
        ]});
        assert_eq!(
            without_effect(&answer),
            [
                "Policy 'high' of priority 5 takes precedence in 1 queue that the pattern matches (see --priority)",
                "The policy leaves out 2 queues that the pattern matches: --apply-to or a key does not fit the type",
            ]
        );
        assert!(without_effect(&json!({})).is_empty());
    }

    #[test]
    fn overridden_values_are_shown_with_the_reason() {
        let key = json!({"lost": [
            {"source": "policy", "source_name": "ttl", "value": 60000, "why": "the lower wins"},
            {"source": "argument", "source_name": null, "value": "a", "why": "limited"},
        ]});
        assert_eq!(lost(&key), "policy ttl: 60000 (the lower wins); argument: a (limited)");
        assert_eq!(lost(&json!({})), "");
    }
}

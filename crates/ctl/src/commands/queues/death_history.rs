//! `dlq history`: the deaths of messages, also of those that are gone.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::redrives::positive;
use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::failure::Failure;
use crate::format::{Empty, Output, Row, Rows};
use crate::http::path;
use crate::rows::same;
use crate::term::Term;
use crate::timestamp::rfc3339;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command::new(
    Section::Queues,
    "dlq history",
    "dlq history [--vhost <vhost>] [<message id>] [--header <name>=<value>] [--queue <queue>] \
     [--filter-reason rejected|expired|maxlen|delivery_limit] [--limit <number>]",
    "Lists deaths of messages, the latest first: when, where, why, by whose settlement, and where the message went",
    history,
)
.words(0, 1)
.switches(&[
    Switch::text("header"),
    Switch::text("queue"),
    Switch::text("filter-reason"),
    Switch::integer("limit"),
])
.check(|call| positive(call, "limit").map(drop))
.banner(|call| format!("Listing deaths of messages in vhost '{}' ...", call.vhost()))];

/// Default number of listed deaths.
const SHOWN_DEFAULT: u64 = 50;

/// Deaths per request, the maximum of the API.
const SHOWN_AT_ONCE: u64 = 500;

fn history(call: &Call<'_>) -> Result<Output, Failure> {
    let mut left = positive(call, "limit")?.unwrap_or(SHOWN_DEFAULT);
    let at = path(&["dead-letter-history", call.vhost()]);
    let filters = filters(call);
    let mut cursor = String::new();
    let mut rows: Vec<Row> = Vec::new();
    let mut about = Value::Null;
    while left > 0 {
        let count = left.min(SHOWN_AT_ONCE);
        let answer = call.node.api.find(&format!("{at}?count={count}&cursor={cursor}{filters}"))?;
        let answer = answer.ok_or_else(|| Failure::no_such_vhost(call.vhost()))?;
        let some = answer.get("deaths").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        left -= left.min(some.len() as u64);
        rows.extend(some.iter().map(row));
        let next = answer.get("cursor").and_then(Value::as_str).map(str::to_owned);
        about = answer;
        match next {
            Some(next) => cursor = next,
            None => break,
        }
    }
    // A queue that is gone may have deaths: only without any is its name perhaps wrong.
    if let (true, Some(queue)) = (rows.is_empty(), call.options.text("queue"))
        && call.node.api.find(&path(&["queues", call.vhost(), queue]))?.is_none()
    {
        call.warn(&Failure::no_such_queue(call.vhost(), queue).sentence());
    }
    for line in notes(&about) {
        call.say(&line);
    }
    Ok(Output::Rows(Rows { rows, empty: Empty::Nothing, has_header: true }))
}

/// The filters as part of a query; each begins with `&`.
fn filters(call: &Call<'_>) -> String {
    let mut query = String::new();
    let mut add = |name: &str, value: &str| {
        query.push_str(&format!("&{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
    };
    if let Some(id) = call.words.first() {
        add("message_id", id);
    }
    for (option, name) in [("queue", "queue"), ("filter-reason", "reason")] {
        if let Some(value) = call.options.text(option) {
            add(name, value);
        }
    }
    for header in call.options.texts("header") {
        add("header", header);
    }
    query
}

/// Sentences about deaths that are not listed.
fn notes(answer: &Value) -> Vec<String> {
    let count = |name| answer.get(name).and_then(Value::as_u64).unwrap_or_default();
    let mut lines = Vec::new();
    if answer.get("enabled") == Some(&Value::Bool(false)) {
        lines.push("The history is off: dead_letter_history.max_entries is 0".to_owned());
    } else if let Some(since) = answer.get("kept_since_ms").and_then(Value::as_u64) {
        let forgotten = count("forgotten");
        lines.push(format!("Deaths since {} are kept, {forgotten} are forgotten", rfc3339(since)));
    }
    if let dropped @ 1.. = count("dropped_without_dlx") {
        lines.push(format!(
            "{dropped} messages died without a dead-letter exchange since the start: those without headers and message_id \
             are counted, not listed"
        ));
    }
    if let hidden @ 1.. = count("hidden") {
        lines.push(format!("{hidden} deaths are in queues from which this user may not read"));
    }
    lines
}

fn row(death: &Value) -> Row {
    let time = death.get("time_ms").and_then(Value::as_u64).map(rfc3339).unwrap_or_default();
    let by = death.get("settled_by").cloned().unwrap_or_default();
    vec![
        ("time".to_owned(), Term::text(time)),
        same(death, "message_id"),
        same(death, "queue"),
        same(death, "reason"),
        same(death, "reason_given"),
        ("went_to".to_owned(), Term::text(went_to(death))),
        same(&by, "user"),
        same(&by, "consumer_tag"),
        same(&by, "connection"),
        same(death, "policy"),
        same(death, "operator_policy"),
    ]
}

/// The target queues, or the cause for which there is none.
fn went_to(death: &Value) -> String {
    let text = |name| death.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("outcome") {
        "dead_lettered" => {
            let targets = death.get("targets").and_then(Value::as_array);
            let mut names: Vec<String> =
                targets.into_iter().flatten().map(|name| Term::of(Some(name)).shown()).collect();
            let total = death.get("targets_total").and_then(Value::as_u64).unwrap_or_default();
            if let more @ 1.. = total.saturating_sub(names.len() as u64) {
                names.push(format!("and {more} more"));
            }
            if names.is_empty() {
                names.push(format!("exchange {}", text("dead_letter_exchange")));
            }
            names.join(", ")
        }
        outcome => format!("{outcome}: {}", text("cause")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn target_of_a_death_is_its_queues_or_the_cause() {
        for (death, expected) in [
            (
                json!({"outcome": "dead_lettered", "targets": ["a", "b"], "targets_total": 2}),
                "a, b",
            ),
            (
                json!({"outcome": "dead_lettered", "targets": ["a"], "targets_total": 9}),
                "a, and 8 more",
            ),
            (
                json!({"outcome": "dead_lettered", "targets": [], "targets_total": 0, "dead_letter_exchange": "x"}),
                "exchange x",
            ),
            (json!({"outcome": "dropped", "cause": "unroutable"}), "dropped: unroutable"),
            (json!({"outcome": "kept", "cause": "target_full"}), "kept: target_full"),
        ] {
            assert_eq!(went_to(&death), expected, "{death}");
        }
    }

    #[test]
    fn notes_say_what_is_missing() {
        let answer = json!({"enabled": true, "forgotten": 3, "kept_since_ms": 0, "hidden": 2});
        assert_eq!(
            notes(&answer),
            [
                "Deaths since 1970-01-01T00:00:00Z are kept, 3 are forgotten",
                "2 deaths are in queues from which this user may not read",
            ]
        );
        let off = json!({"enabled": false, "forgotten": 0, "kept_since_ms": 0, "hidden": 0});
        assert_eq!(notes(&off), ["The history is off: dead_letter_history.max_entries is 0"]);
    }
}

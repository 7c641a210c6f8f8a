//! Commands of Leveret's own about dead messages: what is in a dead-letter queue, and the way back.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::given_reasons;
use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::commands::progress::{is_over, until};
use crate::failure::{DATA, Failure, UNAVAILABLE};
use crate::format::{Empty, Output, Rows};
use crate::http::{HttpError, path};
use crate::printable::in_line;
use crate::rows::same;
use crate::term::Term;
use crate::timestamp::rfc3339;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Queues,
        "dlq show",
        "dlq show [--vhost <vhost>] <queue> [--limit <number>] [--id <id>] [--headers] [--body] \
         [--by-reason] [--kept]",
        "Lists messages of a queue, with queue, reason and time of their last deaths, or counts them by the reasons of \
         their deaths and by those that their consumers gave",
        show,
    )
    .everywhere()
    .words(1, 1)
    .switches(&[
        Switch::integer("limit"),
        Switch::text("id"),
        Switch::flag("headers"),
        Switch::flag("body"),
        Switch::flag("by-reason"),
        Switch::flag("kept"),
    ])
    .check(|call| {
        positive(call, "limit")?;
        given_reasons::check(call)
    })
    .banner(|call| format!("Showing messages of queue '{}' in vhost '{}' ...", call.word(0), call.vhost())),
    Command::new(
        Section::Queues,
        "dlq redrive",
        "dlq redrive [--vhost <vhost>] <queue> [--id <id>] \
         [--to origin|first|queue:<name>|exchange:<name>[:<key>]] \
         [--filter-reason rejected|expired|maxlen|delivery_limit] [--first-queue <queue>] \
         [--header <name>=<value>] [--text <text>] [--without-header <name>=<value>] [--without-text <text>] [--json <pointer>=<value>] [--older-than <seconds>] [--max-redrives <number>] [--limit <number>] \
         [--rate <messages per second>] [--kept] [--dry-run] [--no-wait]",
        "Sends dead letters back to the queues where they died, or to another target",
        redrive,
    )
    .slow()
    .words(1, 1)
    .switches(REDRIVE)
    .check(|call| request(call).map(drop))
    .banner(|call| {
        let does = if call.has("dry-run") { "Would redrive" } else { "Redriving" };
        format!("{does} messages of queue '{}' in vhost '{}' ...", call.word(0), call.vhost())
    })
    .waits(),
    Command::new(
        Section::Queues,
        "dlq cancel",
        "dlq cancel <id>",
        "Cancels a redrive; moved messages stay moved",
        cancel,
    )
    .words(1, 1)
    .banner(|call| format!("Ending redrive {} ...", call.word(0))),
];

const REDRIVE: &[Switch] = &[
    Switch::text("id"),
    Switch::text("to"),
    Switch::text("filter-reason"),
    Switch::text("first-queue"),
    Switch::text("header"),
    Switch::text("text"),
    Switch::text("without-header"),
    Switch::text("json"),
    Switch::text("without-text"),
    Switch::integer("older-than"),
    Switch::integer("max-redrives"),
    Switch::integer("limit"),
    Switch::integer("rate"),
    Switch::flag("kept"),
    Switch::flag("dry-run"),
    Switch::flag("wait"),
];

/// Default number of listed messages.
const SHOWN_DEFAULT: u64 = 50;

/// Messages per request, the maximum of the API.
const SHOWN_AT_ONCE: u64 = 100;

/// Bytes of a body that are shown.
const BODY_SHOWN_BYTES: u64 = 64 * 1024;

// ---- looking ----

fn show(call: &Call<'_>) -> Result<Output, Failure> {
    if call.has("by-reason") {
        return given_reasons::list(call, positive(call, "limit")?);
    }
    let mut left = positive(call, "limit")?.unwrap_or(SHOWN_DEFAULT);
    let messages = path(&["queues", call.vhost(), call.word(0), "messages"]);
    let ids: Vec<&str> = call.options.texts("id").collect();
    let details = Details { headers: call.has("headers"), body: call.has("body") };
    let truncate = if details.body { BODY_SHOWN_BYTES } else { 0 };
    let mut cursor = String::new();
    let mut rows = Vec::new();
    while left > 0 {
        let count = left.min(SHOWN_AT_ONCE);
        let at = format!("{messages}?count={count}&truncate={truncate}&cursor={cursor}");
        let answer = call
            .node
            .api
            .find(&at)?
            .ok_or_else(|| Failure::no_such_queue(call.vhost(), call.word(0)))?;
        let some = answer.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let chosen: Vec<&Value> =
            some.iter().filter(|one| ids.is_empty() || ids.contains(&id(one))).collect();
        left -= left.min(chosen.len() as u64);
        rows.extend(chosen.into_iter().map(|message| row(message, details)));
        if !ids.is_empty() && rows.len() == ids.len() {
            break;
        }
        match answer.get("cursor").and_then(Value::as_str) {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    Ok(Output::Rows(Rows { rows, empty: Empty::Nothing, has_header: true }))
}

/// Further columns of a message.
#[derive(Clone, Copy, Default)]
struct Details {
    headers: bool,
    body: bool,
}

fn row(message: &Value, details: Details) -> Vec<(String, Term)> {
    let last = message.get("deaths").and_then(|deaths| deaths.get(0)).cloned().unwrap_or_default();
    let keys = last.get("routing_keys").and_then(Value::as_array);
    let keys: Vec<&str> = keys.into_iter().flatten().filter_map(Value::as_str).collect();
    let key = match keys.is_empty() {
        true => Term::of(message.get("routing_key")),
        false => Term::text(keys.join(", ")),
    };
    let time = last.get("time_ms").and_then(Value::as_u64).map(rfc3339);
    let redrives = message.get("redrives").and_then(Value::as_array).map_or(0, Vec::len);
    // A message that has not died is where it was published.
    let exchange = last.get("exchange").or_else(|| message.get("exchange"));
    let mut row = vec![
        same(message, "id"),
        same(&last, "reason"),
        same(&last, "queue"),
        same(&last, "count"),
        ("time".to_owned(), Term::text(time.unwrap_or_default())),
        ("given_reason".to_owned(), given_reason(message)),
        ("exchange".to_owned(), Term::of(exchange)),
        ("routing_key".to_owned(), key),
        ("redrives".to_owned(), Term::of(Some(&json!(redrives)))),
        same(message, "payload_bytes"),
    ];
    if details.headers {
        let mut properties = message.get("properties").cloned().unwrap_or_default();
        let headers = properties.get_mut("headers").map(Value::take).unwrap_or_else(|| json!({}));
        row.push(("headers".to_owned(), Term::text(headers.to_string())));
        if let Some(properties) = properties.as_object_mut() {
            properties.remove("headers");
        }
        row.push(("properties".to_owned(), Term::text(properties.to_string())));
    }
    if details.body {
        row.push(same(message, "payload_encoding"));
        row.push(same(message, "payload"));
    }
    row
}

/// The reason that the consumer of a dead message gave: the header `x-reason`, where it is text.
fn given_reason(message: &Value) -> Term {
    let header =
        message.pointer("/properties/headers/x-reason").filter(|header| header.is_string());
    header.map_or_else(|| Term::text(String::new()), |header| Term::of(Some(header)))
}

// ---- redriving ----

fn redrive(call: &Call<'_>) -> Result<Output, Failure> {
    let at = path(&["queues", call.vhost(), call.word(0), "redrive"]);
    let job = match call.node.api.post(&at, &request(call)?) {
        Err(HttpError::Refused { status: 404, reason }) if reason.starts_with("NOT_FOUND") => {
            return Err(Failure::error(DATA, reason));
        }
        Err(HttpError::Refused { status: 404, .. }) => {
            return Err(Failure::no_such_queue(call.vhost(), call.word(0)));
        }
        Err(HttpError::Refused { status: 400, reason }) => {
            return Err(Failure::error(DATA, reason));
        }
        result => result?,
    };
    if call.has("dry-run") {
        return Ok(Output::Both(told(&job), job));
    }
    if call.options.flag("wait") == Some(false) {
        return Ok(Output::Both(format!("Redrive {} runs", id(&job)), job));
    }
    let job = wait(call, job)?;
    let reason = Term::of(job.get("reason")).shown();
    match state(&job) {
        "failed" => Err(Failure::error_lines(UNAVAILABLE, [reason, progress(&job)])),
        "cancelled" => Err(Failure::error(UNAVAILABLE, format!("Cancelled. {}", progress(&job)))),
        _ => Ok(Output::Both(progress(&job), job)),
    }
}

/// Waits for the end of a job.
fn wait(call: &Call<'_>, job: Value) -> Result<Value, Failure> {
    let at = path(&["redrives", id(&job)]);
    let line = |job: &Value| {
        (state(job) == "running").then(|| format!("Running ({}): {}", id(job), progress(job)))
    };
    until(call, &at, job, is_over, line)
}

fn id(job: &Value) -> &str {
    job.get("id").and_then(Value::as_str).unwrap_or_default()
}

fn state(job: &Value) -> &str {
    job.get("state").and_then(Value::as_str).unwrap_or_default()
}

/// Progress of a job, in one line.
fn progress(job: &Value) -> String {
    let count = |name| job.get(name).and_then(Value::as_u64).unwrap_or_default();
    let mut text = format!("{} of {} messages moved", count("moved"), count("messages_total"));
    let (rest, meaning) = match state(job) {
        "finished" => (count("not_examined"), "beyond the limit"),
        "cancelled" | "failed" => (count("not_examined"), "not examined"),
        _ => (0, ""),
    };
    for (name, what) in [
        ("skipped", "skipped"),
        ("unroutable", "unroutable"),
        ("no_origin", "without origin"),
        ("gone", "already gone"),
        ("unacked_left", "left unacknowledged"),
    ] {
        if count(name) > 0 {
            text.push_str(&format!(", {} {what}", count(name)));
        }
    }
    if rest > 0 {
        text.push_str(&format!(", {rest} {meaning}"));
    }
    text
}

/// Result of a dry run.
fn told(answer: &Value) -> String {
    let count = |of: &Value, name| of.get(name).and_then(Value::as_u64).unwrap_or_default();
    let mut lines = vec![format!(
        "{} of {} messages match, {} would move, {} unroutable",
        count(answer, "matched"),
        count(answer, "scanned"),
        count(answer, "would_move"),
        count(answer, "unroutable")
    )];
    if let (Some(line), without @ 1..) = (lines.last_mut(), count(answer, "no_origin")) {
        line.push_str(&format!(", {without} without origin"));
    }
    if let (Some(line), held @ 1..) = (lines.last_mut(), count(answer, "unacked_left")) {
        line.push_str(&format!(", {held} left unacknowledged"));
    }
    for target in answer.get("targets").and_then(Value::as_array).into_iter().flatten() {
        let queue = Term::of(target.get("queue")).shown();
        let queue = in_line(&queue);
        lines.push(format!("{} to queue '{queue}'", count(target, "messages")));
    }
    let rest = count(answer, "not_examined");
    if answer.get("complete") == Some(&json!(false)) {
        lines.push(format!("A dry run does not examine {rest} more messages"));
    } else if rest > 0 {
        lines.push(format!("{rest} more messages are beyond the limit"));
    }
    lines.join("\n")
}

/// Body of the request.
fn request(call: &Call<'_>) -> Result<Value, Failure> {
    let mut filter = Map::new();
    let options = call.options;
    for (option, name) in [
        ("filter-reason", "reason"),
        ("first-queue", "first_queue"),
        ("text", "text"),
        ("without-text", "without_text"),
    ] {
        if let Some(text) = options.text(option) {
            filter.insert(name.to_owned(), json!(text));
        }
    }
    let ids: Vec<&str> = options.texts("id").collect();
    let headers = options.texts("header").map(header);
    filter.insert("headers".to_owned(), Value::Object(headers.collect()));
    let json: Map<String, Value> = options.texts("json").map(header).collect();
    if !json.is_empty() {
        filter.insert("json".to_owned(), Value::Object(json));
    }
    let mut unwanted: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (name, value) in options.texts("without-header").map(header) {
        unwanted.entry(name).or_default().push(value);
    }
    if !unwanted.is_empty() {
        filter.insert("without_headers".to_owned(), json!(unwanted));
    }
    if let Some(seconds) = natural(call, "older-than")? {
        filter.insert("older_than_ms".to_owned(), json!(seconds.saturating_mul(1000)));
    }
    Ok(json!({
        "ids": if ids.is_empty() { Value::Null } else { json!(ids) },
        "to": target(options.text("to").unwrap_or("origin"))?,
        "filter": filter,
        "limit": positive(call, "limit")?,
        "rate": positive(call, "rate")?,
        "max_redrives": natural(call, "max-redrives")?,
        "kept": call.has("kept"),
        "dry_run": call.has("dry-run"),
    }))
}

/// Name and value of a header; null stands for any value.
fn header(option: &str) -> (String, Value) {
    match option.split_once('=') {
        Some((name, value)) => (name.to_owned(), json!(value)),
        None => (option.to_owned(), Value::Null),
    }
}

fn target(to: &str) -> Result<Value, Failure> {
    match to.split_once(':') {
        None if to == "origin" || to == "first" => Ok(json!(to)),
        Some(("queue", queue)) => Ok(json!({ "queue": queue })),
        Some(("exchange", exchange)) => Ok(match exchange.split_once(':') {
            Some((exchange, key)) => json!({"exchange": exchange, "routing_key": key}),
            None => json!({ "exchange": exchange }),
        }),
        _ => {
            let problem =
                "--to must be origin, first, queue:NAME, exchange:NAME or exchange:NAME:KEY";
            Err(Failure::bad_argument(Some(problem)))
        }
    }
}

/// An option that is a number, not less than 0.
fn natural(call: &Call<'_>, option: &str) -> Result<Option<u64>, Failure> {
    let Some(number) = call.options.integer(option) else { return Ok(None) };
    let problem = format!("--{option} must not be negative");
    u64::try_from(number).map(Some).map_err(|_| Failure::bad_argument(Some(&problem)))
}

/// An option that is a number, more than 0.
pub(in crate::commands) fn positive(call: &Call<'_>, option: &str) -> Result<Option<u64>, Failure> {
    match natural(call, option)? {
        Some(0) => Err(Failure::bad_argument(Some(&format!("--{option} must be more than 0")))),
        number => Ok(number),
    }
}

fn cancel(call: &Call<'_>) -> Result<Output, Failure> {
    match call.node.api.remove(&path(&["redrives", call.word(0)])) {
        Ok(true) => Ok(Output::Done),
        Ok(false) => Err(Failure::error(DATA, "The redrive does not exist")),
        Err(HttpError::Refused { status: 409, reason }) => Err(Failure::error(DATA, reason)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redrive_targets() {
        for (to, expected) in [
            ("origin", json!("origin")),
            ("first", json!("first")),
            ("queue:a:b", json!({"queue": "a:b"})),
            ("exchange:x", json!({"exchange": "x"})),
            ("exchange:x:k:l", json!({"exchange": "x", "routing_key": "k:l"})),
            ("exchange::q", json!({"exchange": "", "routing_key": "q"})),
        ] {
            assert_eq!(target(to), Ok(expected), "{to}");
        }
        for to in ["", "elsewhere", "vhost:v"] {
            assert!(target(to).is_err(), "{to}");
        }
    }

    #[test]
    fn dead_message_row_shows_the_last_death() {
        let shown = |message| {
            let cells = row(&message, Details::default()).into_iter().map(|(_, term)| term.shown());
            cells.collect::<Vec<_>>().join("|")
        };
        let death = json!({"reason": "expired", "queue": "q", "count": 2, "time_ms": 60_000,
            "routing_keys": ["a", "b"], "exchange": "x"});
        let dead = json!({"id": "1-2-0", "deaths": [death], "redrives": [{}], "payload_bytes": 5,
            "routing_key": "dlq"});
        assert_eq!(shown(dead.clone()), "1-2-0|expired|q|2|1970-01-01T00:01:00Z||x|a, b|1|5");
        let alive = json!({"id": "1-3-0", "deaths": [], "routing_key": "k", "exchange": "amq.topic",
            "payload_bytes": 0});
        assert_eq!(shown(alive), "1-3-0||||||amq.topic|k|0|0");
        let mut given = dead;
        given["properties"] = json!({"headers": {"x-reason": "no\tstock"}});
        assert_eq!(
            shown(given.clone()),
            "1-2-0|expired|q|2|1970-01-01T00:01:00Z|no\tstock|x|a, b|1|5"
        );
        given["properties"] = json!({"headers": {"x-reason": [1]}});
        assert_eq!(shown(given), "1-2-0|expired|q|2|1970-01-01T00:01:00Z||x|a, b|1|5");
    }

    #[test]
    fn details_are_headers_properties_and_body() {
        let message = json!({"id": "1-2-0", "payload": "a\nb", "payload_encoding": "string",
            "properties": {"headers": {"h": [1]}, "message_id": "m"}});
        let details = Details { headers: true, body: true };
        let cells = row(&message, details).into_iter().skip(10);
        let cells: Vec<String> =
            cells.map(|(name, term)| format!("{name} {}", term.shown())).collect();
        let expected = [
            "headers {\"h\":[1]}",
            "properties {\"message_id\":\"m\"}",
            "payload_encoding string",
            "payload a\nb",
        ];
        assert_eq!(cells, expected);
    }

    #[test]
    fn progress_shows_messages_that_did_not_move() {
        let mut job = json!({"moved": 5, "messages_total": 9});
        assert_eq!(progress(&job), "5 of 9 messages moved");
        job["unroutable"] = json!(2);
        job["skipped"] = json!(1);
        let expected = "5 of 9 messages moved, 1 skipped, 2 unroutable";
        assert_eq!(progress(&job), expected);
        let job = json!({"state": "finished", "moved": 5, "messages_total": 2000, "skipped": 1700,
            "no_origin": 5, "not_examined": 290});
        let expected =
            "5 of 2000 messages moved, 1700 skipped, 5 without origin, 290 beyond the limit";
        assert_eq!(progress(&job), expected);
    }

    #[test]
    fn dry_run_names_targets() {
        let answer = json!({"matched": 3, "scanned": 4, "would_move": 2, "unroutable": 1,
            "no_origin": 3, "unacked_left": 6, "targets": [{"queue": "q\nr", "messages": 2}], "complete": false,
            "not_examined": 7});
        assert_eq!(
            told(&answer),
            "3 of 4 messages match, 2 would move, 1 unroutable, 3 without origin, \
             6 left unacknowledged\n2 to queue 'q\\u000ar'\n\
             A dry run does not examine 7 more messages"
        );
    }
}

//! Commands of Leveret's own about scheduled messages: `schedule` and an action.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::commands::answer::number;
use crate::failure::{DATA, Failure, UNAVAILABLE};
use crate::format::{Empty, Output, Row, Rows};
use crate::http::{HttpError, path};
use crate::moment::{DURATION_FORMS, MOMENT_FORMS, duration_ms, moment_ms};
use crate::rows::{rows_of, same};
use crate::term::Term;
use crate::timestamp::rfc3339;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Queues,
        "schedule ls",
        "schedule ls [--vhost <vhost>] [--target queue/<name>|exchange/<name>] [--id <id>] \
         [--after <time>] [--before <time>] [--limit <number>]",
        "Lists messages before their delivery time, in queues and in delayed exchanges",
        list,
    )
    .everywhere()
    .switches(&[TARGET, ID, AFTER, BEFORE, Switch::integer("limit")])
    .check(|call| limit(call).and_then(|_| filters(call)).map(drop))
    .banner(|call| format!("Listing scheduled messages for vhost {} ...", call.vhost())),
    Command::new(
        Section::Queues,
        "schedule show",
        "schedule show [--vhost <vhost>] --target queue/<name>|exchange/<name> \
         --id <id>|--handle <number>",
        "Shows the scheduled messages with a name, or one by the number that the broker gave to it",
        show,
    )
    .everywhere()
    .switches(&[TARGET, ID, HANDLE])
    .check(|call| selected(call).map(drop))
    .banner(|call| format!("Showing {} ...", selected_words(call))),
    Command::new(
        Section::Queues,
        "schedule cancel",
        "schedule cancel [--vhost <vhost>] [--target queue/<name>|exchange/<name>] \
         [--id <id>|--handle <number>] [--after <time>] [--before <time>] [--dry-run]",
        "Removes scheduled messages: those with a name, one by its number, or all that match",
        cancel,
    )
    .slow()
    .switches(&[TARGET, ID, HANDLE, AFTER, BEFORE, Switch::flag("dry-run")])
    .check(|call| cancellation(call).map(drop))
    .banner(|call| match call.has("dry-run") {
        true => "Counting scheduled messages ...".to_owned(),
        false => "Cancelling scheduled messages ...".to_owned(),
    }),
    Command::new(
        Section::Queues,
        "schedule reschedule",
        "schedule reschedule [--vhost <vhost>] --target queue/<name>|exchange/<name> \
         --id <id>|--handle <number> --time <time>|--delay <duration>",
        "Gives scheduled messages another delivery time",
        reschedule,
    )
    .slow()
    .switches(&[TARGET, ID, HANDLE, Switch::text("time"), Switch::text("delay")])
    .check(|call| selected(call).and_then(|_| new_time(call)).map(drop))
    .banner(|call| format!("Rescheduling {} ...", selected_words(call))),
    Command::new(
        Section::Queues,
        "schedule deliver",
        "schedule deliver [--vhost <vhost>] --target queue/<name>|exchange/<name> \
         --id <id>|--handle <number>",
        "Makes scheduled messages ready now, or lets their exchange route them",
        deliver,
    )
    .slow()
    .switches(&[TARGET, ID, HANDLE])
    .check(|call| selected(call).map(drop))
    .banner(|call| format!("Delivering {} ...", selected_words(call))),
];

const TARGET: Switch = Switch::text("target");
const ID: Switch = Switch::text("id");
const HANDLE: Switch = Switch::text("handle");
const AFTER: Switch = Switch::text("after");
const BEFORE: Switch = Switch::text("before");

/// Default number of listed messages.
const SHOWN_DEFAULT: u64 = 100;

/// Messages per request, the maximum of the API.
const SHOWN_AT_ONCE: u64 = 500;

// ---- looking ----

fn list(call: &Call<'_>) -> Result<Output, Failure> {
    let mut left = limit(call)?;
    let filters = filters(call)?;
    let mut cursor = String::new();
    let mut rows = Vec::new();
    while left > 0 {
        let count = left.min(SHOWN_AT_ONCE);
        let at = path(&["scheduled", call.vhost()]);
        let at = format!("{at}?limit={count}&cursor={cursor}{filters}");
        let answer = answered(call, call.node.api.get(&at))?;
        let messages = answer.get("messages").cloned().unwrap_or_default();
        let some = rows_of(&messages, row);
        left -= left.min(some.len() as u64);
        rows.extend(some);
        match answer.get("cursor").and_then(Value::as_str) {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    Ok(Output::Rows(Rows { rows, empty: Empty::Nothing, has_header: true }))
}

fn show(call: &Call<'_>) -> Result<Output, Failure> {
    let answer = answered(call, call.node.api.get(&selected(call)?.path(call, "")))?;
    let rows = rows_of(&answer, row);
    Ok(Output::Rows(Rows { rows, empty: Empty::Nothing, has_header: true }))
}

fn row(message: &Value) -> Row {
    let target = ["target_kind", "target_name"].map(|name| Term::of(message.get(name)).shown());
    let time = message.get("delivery_time").and_then(Value::as_u64).unwrap_or_default();
    vec![
        ("target".to_owned(), Term::text(target.join("/"))),
        same(message, "id"),
        same(message, "handle"),
        ("time".to_owned(), Term::text(rfc3339(time))),
        same(message, "delivery_time"),
        same(message, "exchange"),
        same(message, "routing_key"),
        same(message, "message_id"),
        same(message, "payload_bytes"),
        same(message, "persistent"),
    ]
}

// ---- changing ----

/// The messages to cancel.
enum Cancellation {
    One(Selected),
    /// All that match a query, which begins with `&`.
    All(String),
}

fn cancel(call: &Call<'_>) -> Result<Output, Failure> {
    let is_dry = call.has("dry-run");
    let query = match cancellation(call)? {
        Cancellation::One(one) if is_dry => {
            let found = answered(call, call.node.api.get(&one.path(call, "")))?;
            let matched = found.as_array().map_or(0, Vec::len);
            return Ok(matching(matched as u64, true));
        }
        Cancellation::One(one) => {
            let at = one.path(call, "");
            let done = answered(call, call.node.api.delete_answered(&at))?;
            return Ok(Output::Both(told(number(&done, "cancelled"), "cancelled"), done));
        }
        Cancellation::All(query) => query,
    };
    let query = query.trim_start_matches('&');
    if is_dry {
        let at = format!("{}?{query}", path(&["scheduled-counts", call.vhost()]));
        let counts = answered(call, call.node.api.get(&at))?;
        let is_complete = counts.get("complete").and_then(Value::as_bool).unwrap_or(true);
        return Ok(matching(number(&counts, "messages"), is_complete));
    }
    let at = format!("{}?{query}", path(&["scheduled", call.vhost()]));
    let (mut cancelled, mut refused) = (0, 0);
    loop {
        let done = answered(call, call.node.api.delete_answered(&at))?;
        cancelled += number(&done, "cancelled");
        refused = number(&done, "refused").max(refused);
        let is_complete = done.get("complete").and_then(Value::as_bool).unwrap_or(true);
        // A request that cancelled nothing met only messages that the user may not cancel.
        if is_complete || number(&done, "cancelled") == 0 {
            break;
        }
    }
    let mut text = told(cancelled, "cancelled");
    if refused > 0 {
        text.push_str(&format!(", {refused} refused: no write permission"));
    }
    Ok(Output::Both(text, json!({"cancelled": cancelled, "refused": refused})))
}

/// The result of a dry run.
fn matching(messages: u64, is_complete: bool) -> Output {
    let more = if is_complete { "" } else { "at least " };
    let text = format!("{more}{} would be cancelled", counted(messages));
    Output::Both(text, json!({"messages": messages, "complete": is_complete}))
}

fn reschedule(call: &Call<'_>) -> Result<Output, Failure> {
    let at = selected(call)?.path(call, "");
    let done = answered(call, call.node.api.put_answered(&at, &new_time(call)?))?;
    let time = rfc3339(number(&done, "delivery_time"));
    let text = format!("{} for {time}", told(number(&done, "rescheduled"), "rescheduled"));
    Ok(Output::Both(text, done))
}

fn deliver(call: &Call<'_>) -> Result<Output, Failure> {
    let at = selected(call)?.path(call, "/deliver");
    let done = answered(call, call.node.api.post(&at, &Value::Null))?;
    Ok(Output::Both(told(number(&done, "delivered"), "delivered"), done))
}

fn counted(messages: u64) -> String {
    format!("{messages} message{}", if messages == 1 { "" } else { "s" })
}

fn told(messages: u64, done: &str) -> String {
    format!("{} {done}", counted(messages))
}

/// The answer of the node; a refusal because of the request is an error of the input.
fn answered(call: &Call<'_>, answer: Result<Value, HttpError>) -> Result<Value, Failure> {
    match answer {
        Err(HttpError::Refused { status: 404, reason })
            if matches!(&*reason, "Not Found" | "vhost_not_found") =>
        {
            Err(Failure::no_such_vhost(call.vhost()))
        }
        Err(HttpError::Refused { status: 400 | 404, reason }) => Err(Failure::error(DATA, reason)),
        // A login that is refused is a problem of the node's address; a missing permission is not.
        Err(HttpError::Refused { status: 401, reason }) if reason.starts_with("ACCESS_REFUSED") => {
            Err(Failure::error(UNAVAILABLE, reason))
        }
        answer => Ok(answer?),
    }
}

// ---- options ----

/// Scheduled messages of one queue or exchange.
struct Selected {
    kind: String,
    name: String,
    /// A name, or a number with `by_handle`.
    id: String,
    by_handle: bool,
}

impl Selected {
    fn path(&self, call: &Call<'_>, action: &str) -> String {
        let at = path(&["scheduled", call.vhost(), &self.kind, &self.name, &self.id]);
        format!("{at}{action}{}", if self.by_handle { "?by=handle" } else { "" })
    }
}

fn selected(call: &Call<'_>) -> Result<Selected, Failure> {
    let Some((kind, name)) = target(call)? else {
        return Err(Failure::bad_argument(Some("--target is needed")));
    };
    let (id, by_handle) = match (id(call)?, handle(call)?) {
        (Some(id), None) => (id.to_owned(), false),
        (None, Some(handle)) => (handle.to_string(), true),
        _ => return Err(Failure::bad_argument(Some("one of --id and --handle is needed"))),
    };
    Ok(Selected { kind: kind.to_owned(), name: name.to_owned(), id, by_handle })
}

/// The selected messages in words.
fn selected_words(call: &Call<'_>) -> String {
    let text = |name| call.options.text(name).unwrap_or_default();
    let place = format!("of '{}' in vhost '{}'", text("target"), call.vhost());
    match call.options.text("id") {
        Some(id) => format!("scheduled messages '{id}' {place}"),
        None => format!("scheduled message {} {place}", text("handle")),
    }
}

fn cancellation(call: &Call<'_>) -> Result<Cancellation, Failure> {
    let has = |name| call.options.text(name).is_some();
    let has_times = has("after") || has("before");
    if has("handle") || (has("target") && has("id") && !has_times) {
        if has_times {
            let problem = "--handle names one message: --after and --before do not apply";
            return Err(Failure::bad_argument(Some(problem)));
        }
        return selected(call).map(Cancellation::One);
    }
    let query = filters(call)?;
    if query.is_empty() {
        let problem = "one of --target, --id, --after and --before is needed; \
                       --after 0 selects all messages";
        return Err(Failure::bad_argument(Some(problem)));
    }
    Ok(Cancellation::All(query))
}

/// The filters as part of a query; each begins with `&`.
fn filters(call: &Call<'_>) -> Result<String, Failure> {
    let mut query = String::new();
    let mut add = |name: &str, value: &str| {
        query.push_str(&format!("&{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
    };
    if let Some((kind, name)) = target(call)? {
        add("target", &format!("{kind}/{name}"));
    }
    if let Some(id) = id(call)? {
        add("id", id);
    }
    for name in ["after", "before"] {
        if let Some(ms) = moment(call, name)? {
            add(name, &ms.to_string());
        }
    }
    Ok(query)
}

fn target<'a>(call: &Call<'a>) -> Result<Option<(&'a str, &'a str)>, Failure> {
    let Some(text) = call.options.text("target") else { return Ok(None) };
    let target = text.split_once('/').filter(|(kind, _)| matches!(*kind, "queue" | "exchange"));
    let problem = "--target must be queue/NAME or exchange/NAME";
    target.map(Some).ok_or_else(|| Failure::bad_argument(Some(problem)))
}

fn id<'a>(call: &Call<'a>) -> Result<Option<&'a str>, Failure> {
    match call.options.text("id") {
        Some(id) if !(1..=255).contains(&id.len()) => {
            Err(Failure::bad_argument(Some("--id must have 1 to 255 bytes")))
        }
        id => Ok(id),
    }
}

fn handle(call: &Call<'_>) -> Result<Option<u64>, Failure> {
    let Some(text) = call.options.text("handle") else { return Ok(None) };
    let problem = "--handle must be the number of a message, as schedule ls shows it";
    text.parse().map(Some).map_err(|_| Failure::bad_argument(Some(problem)))
}

fn moment(call: &Call<'_>, name: &str) -> Result<Option<u64>, Failure> {
    let Some(text) = call.options.text(name) else { return Ok(None) };
    let problem = || format!("--{name} must be {MOMENT_FORMS}");
    moment_ms(text).map(Some).ok_or_else(|| Failure::bad_argument(Some(&problem())))
}

/// The body of a request that reschedules.
fn new_time(call: &Call<'_>) -> Result<Value, Failure> {
    match (moment(call, "time")?, call.options.text("delay")) {
        (Some(ms), None) => Ok(json!({"delivery_time": ms})),
        (None, Some(delay)) => {
            let problem = || format!("--delay must be {DURATION_FORMS}");
            let ms = duration_ms(delay);
            let ms = ms.ok_or_else(|| Failure::bad_argument(Some(&problem())))?;
            Ok(json!({"delay": ms}))
        }
        _ => Err(Failure::bad_argument(Some("one of --time and --delay is needed"))),
    }
}

fn limit(call: &Call<'_>) -> Result<u64, Failure> {
    let Some(limit) = call.options.integer("limit") else { return Ok(SHOWN_DEFAULT) };
    let limit = u64::try_from(limit).ok().filter(|limit| *limit > 0);
    limit.ok_or_else(|| Failure::bad_argument(Some("--limit must be more than 0")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheduled_message_row() {
        let shown = |message| {
            let cells = row(&message).into_iter().map(|(_, term)| term.shown());
            cells.collect::<Vec<_>>().join("|")
        };
        let message = json!({"target_kind": "queue", "target_name": "a/b", "id": "o-7", "handle": 3,
            "delivery_time": 60_500, "exchange": "x", "routing_key": "k", "message_id": null,
            "payload_bytes": 5, "persistent": true});
        let expected = "queue/a/b|o-7|3|1970-01-01T00:01:00Z|60500|x|k||5|true";
        assert_eq!(shown(message), expected);
    }

    #[test]
    fn numbers_of_messages_are_told() {
        assert_eq!(told(1, "cancelled"), "1 message cancelled");
        assert_eq!(told(0, "delivered"), "0 messages delivered");
        let Output::Both(text, _) = matching(5, false) else { panic!("a text and a value") };
        assert_eq!(text, "at least 5 messages would be cancelled");
    }
}

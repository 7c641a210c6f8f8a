//! `dlq delays`: the places where messages wait for their time, or for their next delivery.

use serde_json::Value;

use crate::command::{Call, Command, Section};
use crate::failure::Failure;
use crate::format::{Empty, Output, Row, Rows};
use crate::http::path;
use crate::term::Term;
use crate::timestamp::rfc3339;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command::new(
    Section::Queues,
    "dlq delays",
    "dlq delays [--vhost <vhost>]",
    "Lists the delays on the ways of messages: wait queues with a TTL, retries, scheduled messages and delayed exchanges",
    list,
)
.everywhere()
.banner(|call| format!("Listing delays in vhost {} ...", call.vhost()))];

/// Entries of the map per request, the maximum of the API.
const PAGE_ENTRIES: u64 = 500;

fn list(call: &Call<'_>) -> Result<Output, Failure> {
    let at = path(&["dead-letter-map", call.vhost()]);
    let (mut rows, mut page) = (Vec::new(), 1);
    loop {
        let map = call.node.api.find(&format!("{at}?page={page}&page_size={PAGE_ENTRIES}"))?;
        let map = map.ok_or_else(|| Failure::no_such_vhost(call.vhost()))?;
        rows.extend(entries(&map, "edges").filter_map(wait_queue));
        // Every page has the same delays: those with the most messages.
        if page == 1 {
            rows.extend(entries(&map, "delays").map(delay));
            let left_out = number(&map, "delay_entries").unwrap_or(0);
            let left_out = left_out.saturating_sub(entries(&map, "delays").count() as u64);
            if left_out > 0 {
                call.say(&format!("{left_out} delays with fewer messages are not listed"));
            }
        }
        if page >= map.get("page_count").and_then(Value::as_u64).unwrap_or(1) {
            return Ok(Output::Rows(Rows { rows, empty: Empty::Nothing, has_header: true }));
        }
        page += 1;
    }
}

fn entries<'a>(map: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    map.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn row(kind: &str, from: String, to: String, delay: String, messages: u64, next: String) -> Row {
    let text = |name: &str, text: String| (name.to_owned(), Term::text(text));
    vec![
        text("kind", kind.to_owned()),
        text("from", from),
        text("to", to),
        text("delay", delay),
        ("messages".to_owned(), Term::of(Some(&Value::from(messages)))),
        text("next", next),
    ]
}

/// An edge of dead letters whose queue has a TTL; none without one.
fn wait_queue(edge: &Value) -> Option<Row> {
    let (min, max) = (number(edge, "ttl_min_ms")?, number(edge, "ttl_max_ms")?);
    let delay =
        if min == max { shown_ms(min) } else { format!("{} to {}", shown_ms(min), shown_ms(max)) };
    let waiting = number(edge, "from_messages").unwrap_or(0);
    Some(row(
        "ttl",
        names(edge, "from_queues"),
        names(edge, "to_queues"),
        delay,
        waiting,
        time(edge, "next_expiry_time_ms"),
    ))
}

fn delay(entry: &Value) -> Row {
    let kind = Term::of(entry.get("kind")).shown();
    let from = match kind.as_str() {
        "exchange" => Term::of(entry.get("exchange")).shown(),
        _ => names(entry, "from_queues"),
    };
    let delay = entry.get("retry").map(retry).unwrap_or_default();
    let waiting = number(entry, "messages").unwrap_or(0);
    row(&kind, from, names(entry, "to_queues"), delay, waiting, time(entry, "next_time_ms"))
}

/// The rule by which retries wait, in words.
fn retry(rule: &Value) -> String {
    if let Some(schedule) = rule.get("schedule").and_then(Value::as_str) {
        return schedule.to_owned();
    }
    let Some(min) = number(rule, "min_ms") else { return String::new() };
    let growth = match rule.get("multiplier").and_then(Value::as_f64) {
        Some(multiplier) => format!(" times {multiplier}"),
        None => String::new(),
    };
    let end = number(rule, "max_ms").map(|max| format!(", at most {}", shown_ms(max)));
    format!("{}{growth}{}", shown_ms(min), end.unwrap_or_default())
}

fn number(entry: &Value, name: &str) -> Option<u64> {
    entry.get(name).and_then(Value::as_u64)
}

fn names(entry: &Value, name: &str) -> String {
    entries(entry, name).map(|name| Term::of(Some(name)).shown()).collect::<Vec<_>>().join(", ")
}

fn time(entry: &Value, name: &str) -> String {
    number(entry, name).map(rfc3339).unwrap_or_default()
}

/// A duration in its largest whole unit.
fn shown_ms(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s")];
    let whole = units.into_iter().find(|(unit_ms, _)| ms > 0 && ms.is_multiple_of(*unit_ms));
    whole.map_or_else(|| format!("{ms}ms"), |(unit_ms, unit)| format!("{}{unit}", ms / unit_ms))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_have_their_largest_whole_unit() {
        let shown = [0, 1, 1500, 5000, 90_000, 7_200_000, 172_800_000].map(shown_ms);
        assert_eq!(shown, ["0ms", "1ms", "1500ms", "5s", "90s", "2h", "2d"]);
    }

    #[test]
    fn rules_of_retries_are_in_words() {
        let rules = [
            json!({"schedule": "1s,5s", "min_ms": null}),
            json!({"min_ms": 1000, "max_ms": 60_000, "multiplier": 2.5, "schedule": null}),
            json!({"min_ms": 1500, "max_ms": null, "multiplier": null, "schedule": null}),
            json!({"min_ms": null}),
        ];
        let shown: Vec<_> = rules.iter().map(retry).collect();
        assert_eq!(shown, ["1s,5s", "1s times 2.5, at most 1m", "1500ms", ""]);
    }

    #[test]
    fn edges_without_a_ttl_are_no_delay() {
        assert_eq!(wait_queue(&json!({"ttl_min_ms": null, "ttl_max_ms": null})), None);
    }
}

//! `dlq show --by-reason`: messages counted by the reason of their last death, and by the one that their consumers gave.

use serde_json::{Value, json};

use crate::command::Call;
use crate::failure::Failure;
use crate::format::{Empty, Output, Rows};
use crate::http::path;
use crate::term::Term;

/// Default number of listed reasons.
const REASONS_SHOWN_DEFAULT: u64 = 20;

/// Checks the options of `dlq show`: some belong to the list of messages, some to the reasons.
pub(in crate::commands) fn check(call: &Call<'_>) -> Result<(), Failure> {
    let has_id = call.options.text("id").is_some();
    let flag = ["headers", "body"].into_iter().find(|option| call.has(option));
    let lists = has_id.then_some("id").or(flag);
    match (call.has("by-reason"), call.has("kept"), lists) {
        (true, _, Some(option)) => {
            let problem = format!("--{option} is for lists of messages, not for --by-reason");
            Err(Failure::bad_argument(Some(&problem)))
        }
        (false, true, _) => Err(Failure::bad_argument(Some("--kept is for --by-reason"))),
        (true, _, None) | (false, false, _) => Ok(()),
    }
}

/// Counts messages by the reason of their last death and by their header `x-reason`; `limit` is the maximum number of values
/// of the header.
pub(in crate::commands) fn list(call: &Call<'_>, limit: Option<u64>) -> Result<Output, Failure> {
    let at = path(&["queues", call.vhost(), call.word(0), "given-reasons"]);
    let count = limit.unwrap_or(REASONS_SHOWN_DEFAULT);
    let kept = call.has("kept");
    let answer = call.node.api.find(&format!("{at}?count={count}&kept={kept}"))?;
    let answer = answer.ok_or_else(|| Failure::no_such_queue(call.vhost(), call.word(0)))?;
    if answer.get("complete") == Some(&json!(false)) {
        let count = |name| answer.get(name).and_then(Value::as_u64).unwrap_or_default();
        let (scanned, total) = (count("scanned"), count("messages_total"));
        call.say(&format!("Counted the first {scanned} of {total} messages"));
    }
    let rows = reason_rows(&answer, kept);
    Ok(Output::Rows(Rows { rows, empty: Empty::Nothing, has_header: true }))
}

/// One row for each reason: first why messages died, then what consumers gave. The kind tells them apart, and from the
/// sums. Messages that their queue keeps (`is_kept`) have died, and their headers do not tell it yet.
fn reason_rows(answer: &Value, is_kept: bool) -> Vec<Vec<(String, Term)>> {
    let row = |kind: &str, messages: Option<&Value>, reason: Term| {
        let kind = ("kind".to_owned(), Term::text(kind.to_owned()));
        vec![kind, ("messages".to_owned(), Term::of(messages)), ("reason".to_owned(), reason)]
    };
    let listed = |name: &str| answer.get(name).and_then(Value::as_array).into_iter().flatten();
    let sum = |kind: &str, field: &str| {
        let messages = answer.get(field).filter(|messages| **messages != json!(0))?;
        Some(row(kind, Some(messages), Term::text(String::new())))
    };
    let deaths = listed("death_reasons")
        .map(|one| row("death", one.get("messages"), Term::of(one.get("reason"))));
    let given = listed("given_reasons").map(|group| {
        let kind = if group.get("cut") == Some(&json!(true)) { "given_cut" } else { "given" };
        row(kind, group.get("messages"), Term::of(group.get("given_reason")))
    });
    let alive = sum("no_death", "without_death").filter(|_| !is_kept);
    let rows = deaths.chain(alive).chain(given);
    let sums = sum("given_other", "other_reasons").into_iter();
    rows.chain(sums).chain(sum("none_given", "without_reason")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_tells_reasons_from_sums() {
        let answer = json!({
            "death_reasons": [
                {"reason": "rejected", "messages": 5}, {"reason": "expired", "messages": 1},
            ],
            "without_death": 1,
            "given_reasons": [
                {"given_reason": "503", "messages": 3, "cut": false},
                {"given_reason": "long", "messages": 1, "cut": true},
            ],
            "other_reasons": 2, "without_reason": 0,
        });
        let rows = reason_rows(&answer, false).into_iter().map(|row| {
            let cells: Vec<String> = row.into_iter().map(|(_, term)| term.shown()).collect();
            cells.join("|")
        });
        let expected = [
            "death|5|rejected",
            "death|1|expired",
            "no_death|1|",
            "given|3|503",
            "given_cut|1|long",
            "given_other|2|",
        ];
        assert_eq!(rows.collect::<Vec<String>>(), expected);
    }
}

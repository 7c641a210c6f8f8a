//! Commands of Leveret for dead-letter queues: `dlq` and an action.

use serde_json::Value;

use crate::command::{Call, Command, Section};
use crate::failure::Failure;
use crate::format::{Empty, Output, Rows};
use crate::http::path;
use crate::rows::{rows_of, same};
use crate::term::Term;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command::new(
    Section::Queues,
    "dlq ls",
    "dlq ls [--vhost <vhost>]",
    "Lists the queues that dead letters go to, what waits in them, and whose dead letters that are",
    list,
)
.everywhere()
.banner(|call| format!("Listing dead-letter queues for vhost {} ...", call.vhost()))];

fn list(call: &Call<'_>) -> Result<Output, Failure> {
    let queues = call.node.api.find(&path(&["dead-letter-queues", call.vhost()]))?;
    let queues = queues.ok_or_else(|| Failure::no_such_vhost(call.vhost()))?;
    let rows = rows_of(&queues, |queue| {
        vec![
            same(queue, "name"),
            same(queue, "messages"),
            same(queue, "consumers"),
            ("sources".to_owned(), Term::text(sources(queue))),
        ]
    });
    Ok(Output::Rows(Rows { rows, empty: Empty::Nothing, has_header: true }))
}

/// The queues whose dead letters come here; those that perhaps do, depending on a message's key, with
/// a question mark.
fn sources(queue: &Value) -> String {
    let one = |from: &Value| {
        let name = Term::of(from.get("queue")).shown();
        let is_certain = from.get("certain").and_then(Value::as_bool).unwrap_or(true);
        if is_certain { name } else { format!("{name}?") }
    };
    let all = queue.get("from").and_then(Value::as_array);
    all.into_iter().flatten().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dead_letter_sources_are_shown_by_name() {
        let queue = json!({"from": [
            {"queue": "a", "certain": true},
            {"queue": "b", "certain": false},
        ]});
        assert_eq!(sources(&queue), "a, b?");
        assert_eq!(sources(&json!({})), "");
    }
}

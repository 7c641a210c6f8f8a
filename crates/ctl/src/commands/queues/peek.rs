//! `rabbitmq-queues peek`: a message at a position of a quorum queue.

use serde_json::{Map, Value, json};

use crate::command::{Call, Command, Section, Tools};
use crate::commands::cluster::quorum_queue::QuorumQueue;
use crate::failure::{Failure, UNAVAILABLE, USAGE};
use crate::format::{Formatter, Output};
use crate::http::{escaped, path};
use crate::term::Term;

/// Bytes of a body that are shown.
const PAYLOAD_BYTES: u64 = 64;

/// Messages of one answer, the most that a node gives.
const COUNT: u64 = 500;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command::new(
    Section::Queues,
    "peek",
    "peek [--vhost <vhost>] <queue> <position> [--timeout <timeout>]",
    "Shows the message at a position of a quorum queue, without taking it",
    peek,
)
.of(Tools::QUEUES)
.words(2, 2)
.formatter(Formatter::PrettyTable)
.check(|call| match position(call) {
    Some(_) => Ok(()),
    None => Err(Failure::arguments(USAGE, "\"position value must be a positive integer\"")),
})
.banner(|call| {
    let (queue, position, node) = (call.word(0), call.word(1), call.node.name());
    format!("Peeking at quorum queue {queue} at position {position} on node {node} ...")
})];

/// The position in the words, from 1 on.
fn position(call: &Call<'_>) -> Option<u64> {
    call.word(1).parse().ok().filter(|position| *position > 0)
}

fn peek(call: &Call<'_>) -> Result<Output, Failure> {
    let problem = |text: &str| Failure::error(UNAVAILABLE, text);
    let (vhost, name) = (call.vhost(), call.word(0));
    let Ok(queue) = QuorumQueue::named(call) else {
        return Err(problem(&format!("Target queue was not found in virtual host '{vhost}'")));
    };
    queue.check(&|kind| problem(&format!("Cannot peek into a {kind} queue")))?;
    let at = path(&["queues", vhost, name, "messages"]);
    let (mut left, mut cursor) = (position(call).unwrap_or(1), String::new());
    let found = loop {
        let count = left.min(COUNT);
        let query = format!("state=ready&count={count}&truncate={PAYLOAD_BYTES}{cursor}");
        let page = call.node.api.get(&format!("{at}?{query}"))?;
        let messages = page.get("messages").and_then(Value::as_array);
        let got = messages.map_or(0, |messages| messages.len() as u64);
        if got >= left {
            break messages.and_then(|messages| messages.last()).cloned();
        }
        let Some(next) = page.get("cursor").and_then(Value::as_str) else { break None };
        (left, cursor) = (left - got, format!("&cursor={}", escaped(next)));
    };
    let Some(message) = found else {
        return Err(problem("Target queue does not have a message at that position"));
    };
    let fields = fields(&message);
    if call.options.text("formatter") == Some("json") {
        return Ok(Output::Both(String::new(), json!({"result": "ok", "message": fields})));
    }
    let row = |(key, value): (String, Value)| {
        vec![("keys".to_owned(), Term::text(key)), ("values".to_owned(), Term::of(Some(&value)))]
    };
    Ok(fields.into_iter().map(row).collect::<Vec<_>>().into())
}

/// A message with RabbitMQ's names: properties and headers beside what is known of every message.
fn fields(message: &Value) -> Map<String, Value> {
    let told = |name: &str| message.get(name).cloned().unwrap_or_default();
    let mut fields = Map::new();
    let properties = message.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut headers = Map::new();
    for (name, value) in properties {
        if let Value::Object(all) = value
            && name == "headers"
        {
            headers.clone_from(all);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    fields.insert("routing_keys".to_owned(), json!([told("routing_key")]));
    fields.insert("exchange".to_owned(), told("exchange"));
    fields.insert(format!("payload (max {PAYLOAD_BYTES} bytes)"), told("payload"));
    for (name, value) in headers {
        fields.insert(format!("header.{name}"), value);
    }
    fields.entry("header.x-delivery-count").or_insert_with(|| told("delivery_count"));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_has_the_fields_of_rabbitmq() {
        let message = json!({
            "exchange": "x", "routing_key": "k", "payload": "hello", "delivery_count": 2,
            "properties": {"delivery_mode": 2, "headers": {"a": 1}},
        });
        assert_eq!(
            Value::Object(fields(&message)),
            json!({
                "delivery_mode": 2, "routing_keys": ["k"], "exchange": "x", "payload (max 64 bytes)": "hello",
                "header.a": 1, "header.x-delivery-count": 2,
            })
        );
    }
}

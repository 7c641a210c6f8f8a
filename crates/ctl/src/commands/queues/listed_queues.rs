//! Queues: lists, purging, deleting.

use serde_json::Value;

use crate::arguments::Switch;
use crate::columns::{Column, selected};
use crate::command::{Call, Command, Section, Tools};
use crate::commands::cluster::quorum_queue::{QuorumQueue, unsupported};
use crate::failure::{Failure, UNAVAILABLE, USAGE};
use crate::format::{Empty, Output, Rows};
use crate::http::{HttpError, path};
use crate::pids::Pids;
use crate::rows::{rows_of, same};
use crate::term::Term;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Monitoring,
        "list_queues",
        "list_queues [--vhost <vhost>] [--online] [--offline] [--local] [--no-table-headers] \
         [<column>, ...] [--timeout <timeout>]",
        "Lists the queues of a vhost",
        list,
    )
    .everywhere()
    .words(0, usize::MAX)
    .switches(&[Switch::flag("online"), Switch::flag("offline"), Switch::flag("local")])
    .columns(COLUMNS)
    .banner(|call| {
        let seconds = call.options.integer("timeout").unwrap_or(60);
        format!("Timeout: {seconds}.0 seconds ...\nListing queues for vhost {} ...", call.vhost())
    }),
    Command::new(
        Section::Monitoring,
        "list_unresponsive_queues",
        "list_unresponsive_queues [--local] [--queue-timeout <milliseconds>] [<column> ...]",
        "Lists unresponsive queues; Leveret has none",
        |_| Ok(Output::Rows(Rows { rows: Vec::new(), empty: Empty::Nothing, has_header: true })),
    )
    .everywhere()
    .words(0, usize::MAX)
    .switches(&[Switch::flag("local"), Switch::integer("queue-timeout")])
    .columns(COLUMNS)
    .banner(|call| format!("Listing unresponsive queues for vhost {} ...", call.vhost())),
    Command::new(
        Section::Queues,
        "quorum_status",
        "quorum_status <queue> [--vhost <vhost>]",
        "Shows the members of the vhost of a queue",
        quorum_status,
    )
    .of(Tools::QUEUES)
    .words(1, 1)
    .banner(|call| {
        let (queue, node) = (call.word(0), call.node.name());
        format!("Status of queue {queue} on node {node} ...")
    }),
    Command::new(
        Section::Queues,
        "purge_queue",
        "purge_queue <queue> [--timeout <timeout>]",
        "Removes all ready messages of a queue",
        purge,
    )
    .slow()
    .words(1, 1)
    .banner(|call| format!("Purging queue '{}' in vhost '{}' ...", call.word(0), call.vhost())),
    Command::new(
        Section::Queues,
        "delete_queue",
        "delete_queue [--vhost <vhost>] <queue_name> [--if-empty|-e] [--if-unused|-u] [--force] \
         [--timeout <timeout>]",
        "Deletes a queue with its messages",
        delete,
    )
    .slow()
    .words(1, 1)
    .switches(&[
        Switch::flag("if-empty").or('e'),
        Switch::flag("if-unused").or('u'),
        Switch::flag("force"),
    ])
    .banner(|call| {
        let condition = match (call.has("if-empty"), call.has("if-unused")) {
            (true, true) => "if queue is empty and if queue is unused ",
            (true, false) => "if queue is empty ",
            (false, true) => "if queue is unused ",
            (false, false) => "",
        };
        format!("Deleting queue '{}' on vhost '{}' {condition}...", call.word(0), call.vhost())
    }),
];

pub(in crate::commands) const COLUMNS: &[Column] = &[
    Column::same("name"),
    Column::atom("durable"),
    Column::atom("auto_delete"),
    Column::arguments("arguments"),
    Column::same("policy"),
    Column::same("operator_policy"),
    Column::new("effective_policy_definition", |queue, _| {
        let none = Value::Object(serde_json::Map::new());
        let definition = queue.get("effective_policy_definition").filter(|it| it.is_object());
        Term::of(Some(definition.unwrap_or(&none)))
    }),
    Column::new("pid", |queue, pids| {
        let text = |key| queue.get(key).and_then(Value::as_str).unwrap_or_default();
        Term::atom(pids.queue(text("vhost"), text("name")))
    }),
    Column::new("owner_pid", |queue, pids| {
        let owner = queue.get("owner_pid_details").and_then(|owner| owner.get("name"));
        Term::atom(
            owner.and_then(Value::as_str).map_or_else(String::new, |name| pids.connection(name)),
        )
    }),
    Column::atom("exclusive"),
    Column::same("exclusive_consumer_pid"),
    Column::same("exclusive_consumer_tag"),
    Column::same("messages_ready"),
    Column::same("messages_unacknowledged"),
    Column::same("messages"),
    Column::same("messages_ready_ram"),
    Column::same("messages_unacknowledged_ram"),
    Column::same("messages_ram"),
    Column::same("messages_persistent"),
    Column::same("message_bytes"),
    Column::same("message_bytes_ready"),
    Column::same("message_bytes_unacknowledged"),
    Column::same("message_bytes_ram"),
    Column::same("message_bytes_persistent"),
    Column::same("head_message_timestamp"),
    Column::same("disk_reads"),
    Column::same("disk_writes"),
    Column::same("consumers"),
    Column::same("consumer_utilisation"),
    Column::same("consumer_capacity"),
    Column::same("memory"),
    Column::atom("state"),
    Column::atom("type"),
    Column::atom("leader"),
    Column::atom("members"),
    Column::atom("online"),
    Column::same("messages_delayed"),
    Column::same("messages_dlx"),
    Column::same("messages_paged_out"),
    Column::same("message_bytes_paged_out"),
    Column::same("refuses_publishes"),
    Column::same("held_until_ms"),
    Column::count("publish"),
    Column::rate("publish_rate"),
    Column::count("deliver_get"),
    Column::rate("deliver_get_rate"),
    Column::count("ack"),
    Column::rate("ack_rate"),
    Column::count("refused"),
    Column::rate("refused_rate"),
    Column::count("expired"),
    Column::rate("expired_rate"),
    Column::count("dead_lettered"),
    Column::rate("dead_lettered_rate"),
    Column::count("dropped"),
    Column::rate("dropped_rate"),
    Column::count("dropped_without_dlx"),
    Column::rate("dropped_without_dlx_rate"),
    Column::count("dead_letters_lost"),
    Column::rate("dead_letters_lost_rate"),
];

fn list(call: &Call<'_>) -> Result<Output, Failure> {
    let columns = selected(call.words, COLUMNS, &["name", "messages"]);
    let is_offline = call.has("offline") && !call.has("online");
    // All queues are on the one node, which has answered.
    let queues = match call.node.api.find(&path(&["queues", call.vhost()]))? {
        Some(queues) if !is_offline => queues,
        _ => Value::Null,
    };
    let pids = match columns.iter().any(|column| column.name.ends_with("pid")) {
        true => Pids::ask(call.node)?,
        false => Pids::default(),
    };
    let rows = rows_of(&queues, |queue| columns.iter().map(|c| c.cell(queue, &pids)).collect());
    Ok(Output::Rows(Rows { rows, empty: Empty::Nothing, has_header: true }))
}

fn purge(call: &Call<'_>) -> Result<Output, Failure> {
    match call.node.api.remove(&path(&["queues", call.vhost(), call.word(0), "contents"]))? {
        true => Ok(Output::Done),
        false => Err(Failure::no_such_object()),
    }
}

fn delete(call: &Call<'_>) -> Result<Output, Failure> {
    let missing = || Failure::error(USAGE, "No such queue was found");
    let at = path(&["queues", call.vhost(), call.word(0)]);
    let queue = call.node.api.find(&at)?.ok_or_else(missing)?;
    let ready = queue.get("messages_ready").and_then(Value::as_u64).unwrap_or_default();
    let mut conditions = Vec::new();
    for condition in ["if-empty", "if-unused"] {
        if call.has(condition) {
            conditions.push(format!("{condition}=true"));
        }
    }
    match call.node.api.remove(&format!("{at}?{}", conditions.join("&"))) {
        Ok(true) => {
            Ok(Output::Text(format!("Queue was successfully deleted with {ready} ready messages")))
        }
        Ok(false) => Err(missing()),
        Err(HttpError::Refused { status: 400, reason }) => {
            let reason = format!("{{:amqp_error, :precondition_failed, ~c\"{reason}\", :none}}");
            Err(Failure::error(UNAVAILABLE, reason))
        }
        Err(error) => Err(error.into()),
    }
}

/// RabbitMQ's columns of a member, which are the names of the fields.
const MEMBER: [&str; 10] = [
    "Node Name",
    "Raft State",
    "Membership",
    "Last Log Index",
    "Last Written",
    "Last Applied",
    "Commit Index",
    "Snapshot Index",
    "Term",
    "Machine Version",
];

fn quorum_status(call: &Call<'_>) -> Result<Output, Failure> {
    let at = path(&["queues", "quorum", call.vhost(), call.word(0), "status"]);
    QuorumQueue::named(call)?.check(&unsupported)?;
    let members = call.node.api.get(&at)?;
    let row = |member: &Value| MEMBER.iter().map(|name| same(member, name)).collect();
    let rows = rows_of(&members, row);
    Ok(Output::Rows(Rows { rows, empty: Empty::Nothing, has_header: true }))
}

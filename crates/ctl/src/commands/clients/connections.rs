//! Connections, channels and consumers.

use std::time::Duration;

use serde_json::Value;

use crate::arguments::Switch;
use crate::columns::{Column, selected};
use crate::command::{Call, Command, Section};
use crate::failure::{Failure, UNAVAILABLE};
use crate::format::{Empty, Output, Rows};
use crate::http::{HttpError, path};
use crate::pids::{Pids, is_pid};
use crate::rows::rows_of;
use crate::term::{Term, quoted};

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Monitoring,
        "list_connections",
        "list_connections [--no-table-headers] [<column> ...] [--timeout <timeout>]",
        "Lists the connections of clients",
        |call| {
            let usual = ["user", "peer_host", "peer_port", "state"];
            list(call, "/api/connections", CONNECTION, &usual)
        },
    )
    .everywhere()
    .words(0, usize::MAX)
    .columns(CONNECTION)
    .banner(|_| "Listing connections ...".to_owned()),
    Command::new(
        Section::Monitoring,
        "list_channels",
        "list_channels [--no-table-headers] [<column> ...]",
        "Lists the channels of clients",
        |call| {
            let usual = ["pid", "user", "consumer_count", "messages_unacknowledged"];
            list(call, "/api/channels", CHANNEL, &usual)
        },
    )
    .everywhere()
    .words(0, usize::MAX)
    .columns(CHANNEL)
    .banner(|_| "Listing channels ...".to_owned()),
    Command::new(
        Section::Monitoring,
        "list_consumers",
        "list_consumers [--vhost <vhost>] [--no-table-headers] [<column> ...] \
         [--timeout <timeout>]",
        "Lists the consumers of a vhost",
        |call| {
            let is_usual = |name: &&str| *name != "activity_status";
            let usual: Vec<&str> = CONSUMER.iter().map(|c| c.name).filter(is_usual).collect();
            list(call, &path(&["consumers", call.vhost()]), CONSUMER, &usual)
        },
    )
    .everywhere()
    .words(0, usize::MAX)
    .columns(CONSUMER)
    .banner(|call| format!("Listing consumers in vhost {} ...", call.vhost())),
    Command::new(
        Section::Operations,
        "close_connection",
        "close_connection <connection pid> <explanation>",
        "Closes a connection and sends the reason to the client",
        close,
    )
    .words(2, 2)
    .banner(|call| format!("Closing connection {}, reason: {}...", call.word(0), call.word(1))),
    Command::new(
        Section::Operations,
        "close_all_connections",
        "close_all_connections [--vhost <vhost> --limit <limit>] [-n <node> --global] \
         [--per-connection-delay <delay>] <explanation>",
        "Closes the connections of a vhost, or all, and sends the reason to the clients",
        close_all,
    )
    .slow()
    .words(1, 1)
    .switches(&[
        Switch::flag("global"),
        Switch::integer("limit"),
        Switch::integer("per-connection-delay"),
    ])
    .banner(|call| {
        let reason = call.word(0);
        if call.has("global") {
            let node = call.node.name();
            return format!(
                "Closing all connections to node {node} (across all vhosts), reason: {reason}..."
            );
        }
        format!("Closing all connections in vhost {}, reason: {reason}...", call.vhost())
    }),
    Command::new(
        Section::Operations,
        "close_all_user_connections",
        "close_all_user_connections <username> <explanation>",
        "Closes the connections of a user and sends the reason to the clients",
        |call| {
            close_those(call, call.word(1), |c| field(c, "user") == call.word(0))?;
            Ok(Output::Done)
        },
    )
    .slow()
    .words(2, 2)
    .banner(|call| {
        format!("Closing connections of user {}, reason: {}...", call.word(0), call.word(1))
    }),
];

const CONNECTION: &[Column] = &[
    Column::new("pid", |connection, pids| Term::atom(pids.connection(field(connection, "name")))),
    Column::same("name"),
    Column::same("port"),
    Column::same("host"),
    Column::same("peer_port"),
    Column::same("peer_host"),
    Column::atom("ssl"),
    Column::same("ssl_protocol"),
    Column::same("ssl_key_exchange"),
    Column::same("ssl_cipher"),
    Column::same("ssl_hash"),
    Column::same("peer_cert_subject"),
    Column::same("peer_cert_issuer"),
    Column::same("peer_cert_validity"),
    Column::atom("state"),
    Column::same("channels"),
    Column::new("protocol", |connection, _| match field(connection, "protocol") {
        "AMQP 0-9-1" => Term::atom("{0,9,1}"),
        other => Term::text(other),
    }),
    Column::same("auth_mechanism"),
    Column::same("user"),
    Column::same("vhost"),
    Column::same("timeout"),
    Column::same("frame_max"),
    Column::same("channel_max"),
    Column::arguments("client_properties"),
    Column::same("recv_oct"),
    Column::same("recv_cnt"),
    Column::same("send_oct"),
    Column::same("send_cnt"),
    Column::same("send_pend"),
    Column::same("connected_at"),
];

const CHANNEL: &[Column] = &[
    Column::new("pid", |channel, pids| Term::atom(channel_pid(channel, pids))),
    Column::new("connection", |channel, pids| {
        Term::atom(pids.connection(details(channel, "connection_details", "name")))
    }),
    Column::same("name"),
    Column::same("number"),
    Column::same("user"),
    Column::same("vhost"),
    Column::atom("transactional"),
    Column::atom("confirm"),
    Column::same("consumer_count"),
    Column::same("messages_unacknowledged"),
    Column::same("messages_uncommitted"),
    Column::same("acks_uncommitted"),
    Column::same("messages_unconfirmed"),
    Column::same("prefetch_count"),
];

const CONSUMER: &[Column] = &[
    Column::new("queue_name", |consumer, _| Term::text(details(consumer, "queue", "name"))),
    Column::new("channel_pid", |consumer, pids| {
        let channel = consumer.get("channel_details").unwrap_or(&Value::Null);
        let number = channel.get("number").and_then(Value::as_u64).unwrap_or_default();
        Term::atom(pids.channel(field(channel, "connection_name"), number))
    }),
    Column::same("consumer_tag"),
    Column::atom("ack_required"),
    Column::same("prefetch_count"),
    Column::atom("active"),
    Column::atom("activity_status"),
    Column::arguments("arguments"),
];

/// A field with a text.
fn field<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A field within another.
fn details<'a>(of: &'a Value, inner: &str, name: &str) -> &'a str {
    of.get(inner).map(|inner| field(inner, name)).unwrap_or_default()
}

fn channel_pid(channel: &Value, pids: &Pids) -> String {
    let number = channel.get("number").and_then(Value::as_u64).unwrap_or_default();
    pids.channel(details(channel, "connection_details", "name"), number)
}

fn list(call: &Call<'_>, at: &str, columns: &[Column], usual: &[&str]) -> Result<Output, Failure> {
    let columns = selected(call.words, columns, usual);
    let all = call.node.api.find(at)?.unwrap_or_default();
    let has_pids = |c: &&Column| c.name.ends_with("pid") || c.name == "connection";
    let pids = match columns.iter().any(has_pids) {
        true if at == "/api/connections" => Pids::of(call.node.name(), &all),
        true => Pids::ask(call.node)?,
        false => Pids::default(),
    };
    let rows = rows_of(&all, |one| columns.iter().map(|c| c.cell(one, &pids)).collect());
    Ok(Output::Rows(Rows { rows, empty: Empty::Nothing, has_header: true }))
}

fn close(call: &Call<'_>) -> Result<Output, Failure> {
    let (id, reason) = (call.word(0), call.word(1));
    if !is_pid(id) {
        let text = format!("{{:invalid_pid_syntax, {}}}", quoted(id));
        return Err(Failure::error_lines(UNAVAILABLE, ["Error:", &text]));
    }
    let pids = Pids::ask(call.node)?;
    // A connection that is gone counts as closed.
    if let Some(name) = pids.name_of(id) {
        close_named(call, name, reason)?;
    }
    Ok(Output::Done)
}

fn close_named(call: &Call<'_>, name: &str, reason: &str) -> Result<(), Failure> {
    match call.node.api.delete_with_reason(&path(&["connections", name]), reason) {
        Err(HttpError::Refused { status: 404, .. }) => Ok(()),
        result => result.map_err(Failure::from),
    }
}

/// Closes all connections of the node, with a reason for the clients.
///
/// # Errors
/// If the node cannot be asked, or does not close one.
pub(in crate::commands) fn close_everyone(call: &Call<'_>, reason: &str) -> Result<usize, Failure> {
    // A node of a cluster lists the clients of all nodes.
    let overview = call.node.api.get("/api/overview")?;
    let node = field(&overview, "node");
    close_those(call, reason, |connection| field(connection, "node") == node)
}

fn close_all(call: &Call<'_>) -> Result<Output, Failure> {
    let is_meant = |c: &Value| call.has("global") || field(c, "vhost") == call.vhost();
    let closed = close_those(call, call.word(0), is_meant)?;
    Ok(Output::Text(format!("Closed {closed} connections")))
}

/// Closes connections; how many.
fn close_those(
    call: &Call<'_>,
    reason: &str,
    is_meant: impl Fn(&Value) -> bool,
) -> Result<usize, Failure> {
    let all = call.node.api.get("/api/connections")?;
    let limit = call.options.integer("limit").and_then(|limit| usize::try_from(limit).ok());
    let limit = limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let delay = call.options.integer("per-connection-delay");
    let delay = delay.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    let meant = all.as_array().into_iter().flatten().filter(|connection| is_meant(connection));
    let mut closed = 0;
    for connection in meant.take(limit) {
        if let Some(delay) = delay.filter(|_| closed > 0) {
            std::thread::sleep(delay);
        }
        close_named(call, field(connection, "name"), reason)?;
        closed += 1;
    }
    Ok(closed)
}

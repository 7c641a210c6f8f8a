//! Permissions for routing keys of topic exchanges.

use serde_json::{Value, json};

use super::permissions::{cause, missing};
use super::users::no_such_user;
use super::vhosts::existing_vhost;
use crate::command::{Call, Command, Section};
use crate::failure::{Failure, NO_USER, UNAVAILABLE};
use crate::format::{Empty, Output, Rows};
use crate::http::{HttpError, path};
use crate::rows::{rows_of, same};

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::AccessControl,
        "set_topic_permissions",
        "set_topic_permissions [--vhost <vhost>] <username> <exchange> <write> <read>",
        "Sets the permissions of a user on routing keys of a topic exchange",
        set,
    )
    .words(4, 4)
    .banner(|call| {
        let (user, exchange, vhost) = (call.word(0), call.word(1), call.vhost());
        format!(
            "Setting topic permissions on \"{exchange}\" for user \"{user}\" in vhost \"{vhost}\" ..."
        )
    }),
    Command::new(
        Section::AccessControl,
        "clear_topic_permissions",
        "clear_topic_permissions [--vhost <vhost>] <username> [<exchange>]",
        "Removes the topic permissions of a user in a vhost, or those for one exchange",
        clear,
    )
    .words(1, 2)
    .banner(|call| {
        let (user, vhost) = (call.word(0), call.vhost());
        let on = call.words.get(1).map_or_else(String::new, |x| format!(" on \"{x}\""));
        format!("Clearing topic permissions{on} for user \"{user}\" in vhost \"{vhost}\" ...")
    }),
    Command::new(
        Section::AccessControl,
        "list_topic_permissions",
        "list_topic_permissions [--vhost <vhost>] [--no-table-headers] [--timeout <timeout>]",
        "Lists the topic permissions of a vhost",
        list,
    )
    .everywhere()
    .banner(|call| format!("Listing topic permissions for vhost \"{}\" ...", call.vhost())),
    Command::new(
        Section::AccessControl,
        "list_user_topic_permissions",
        "list_user_topic_permissions [--no-table-headers] <username>",
        "Lists the topic permissions of a user",
        list_of_user,
    )
    .everywhere()
    .words(1, 1)
    .banner(|call| format!("Listing topic permissions for user \"{}\" ...", call.word(0))),
];

fn set(call: &Call<'_>) -> Result<Output, Failure> {
    let (user, exchange, vhost) = (call.word(0), call.word(1), call.vhost());
    let is_missing = |parts: &[&str]| call.node.api.find(&path(parts)).map(|found| found.is_none());
    if is_missing(&["users", user])? {
        return Err(missing(call, NO_USER, &format!("User {user}")));
    }
    if is_missing(&["vhosts", vhost])? {
        return Err(missing(call, UNAVAILABLE, &format!("Virtual host {vhost}")));
    }
    if !exchange.is_empty() && is_missing(&["exchanges", vhost, exchange])? {
        return Err(missing(call, UNAVAILABLE, &format!("Exchange {exchange}")));
    }
    let body = json!({"exchange": exchange, "write": call.word(2), "read": call.word(3)});
    let result = call.node.api.put(&path(&["topic-permissions", vhost, user]), &body);
    result.map_err(|error| cause(call, vhost, error))?;
    Ok(Output::Done)
}

fn clear(call: &Call<'_>) -> Result<Output, Failure> {
    let at = path(&["topic-permissions", call.vhost(), call.word(0)]);
    // The API clears those for all exchanges only: the others are set again.
    let kept = match call.words.get(1) {
        None => Vec::new(),
        Some(exchange) => {
            let all = call.node.api.find(&at)?.unwrap_or_default();
            let all = all.as_array().cloned().unwrap_or_default();
            let is_other =
                |one: &Value| one.get("exchange").and_then(Value::as_str) != Some(exchange);
            let kept: Vec<Value> = all.iter().filter(|one| is_other(one)).cloned().collect();
            if kept.len() == all.len() {
                return Ok(Output::Done);
            }
            kept
        }
    };
    match call.node.api.remove(&at) {
        Ok(_) | Err(HttpError::Refused { status: 400, .. }) => {}
        Err(error) => return Err(error.into()),
    }
    for one in kept {
        call.node.api.put(&at, &one)?;
    }
    Ok(Output::Done)
}

fn list(call: &Call<'_>) -> Result<Output, Failure> {
    existing_vhost(call)?;
    let permissions = call.node.api.get(&path(&["vhosts", call.vhost(), "topic-permissions"]))?;
    Ok(rows_of(&permissions, |one| {
        ["user", "exchange", "write", "read"].map(|name| same(one, name)).to_vec()
    })
    .into())
}

fn list_of_user(call: &Call<'_>) -> Result<Output, Failure> {
    let permissions = call.node.api.find(&path(&["users", call.word(0), "topic-permissions"]))?;
    let permissions = permissions.ok_or_else(|| no_such_user(call.word(0)))?;
    let rows = rows_of(&permissions, |one| {
        ["vhost", "exchange", "write", "read"].map(|name| same(one, name)).to_vec()
    });
    // RabbitMQ's tool shows this table without its head.
    Ok(Output::Rows(Rows { rows, empty: Empty::Line, has_header: false }))
}

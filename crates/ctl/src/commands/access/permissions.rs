//! Permissions of users in vhosts.

use serde_json::{Value, json};

use super::users::no_such_user;
use super::vhosts::existing_vhost;
use crate::command::{Call, Command, Section};
use crate::failure::{Failure, NO_USER, UNAVAILABLE};
use crate::format::Output;
use crate::http::{HttpError, path};
use crate::rows::{rows_of, same};

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::AccessControl,
        "set_permissions",
        "set_permissions [--vhost <vhost>] <username> <conf> <write> <read>",
        "Sets the permissions of a user in a vhost",
        set,
    )
    .words(4, 4)
    .banner(|call| {
        format!(
            "Setting permissions for user \"{}\" in vhost \"{}\" ...",
            call.word(0),
            call.vhost()
        )
    }),
    Command::new(
        Section::AccessControl,
        "set_permissions_globally",
        "set_permissions_globally <username> <conf> <write> <read>",
        "Sets the permissions of a user in every vhost",
        set_everywhere,
    )
    .words(4, 4)
    .banner(|call| {
        format!("Setting permissions for user \"{}\" in all virtual hosts ...", call.word(0))
    }),
    Command::new(
        Section::AccessControl,
        "clear_permissions",
        "clear_permissions [--vhost <vhost>] <username>",
        "Removes the permissions of a user in a vhost",
        clear,
    )
    .words(1, 1)
    .banner(|call| {
        format!(
            "Clearing permissions for user \"{}\" in vhost \"{}\" ...",
            call.word(0),
            call.vhost()
        )
    }),
    Command::new(
        Section::AccessControl,
        "list_permissions",
        "list_permissions [--vhost <vhost>] [--no-table-headers] [--timeout <timeout>]",
        "Lists the permissions in a vhost",
        list,
    )
    .everywhere()
    .banner(|call| format!("Listing permissions for vhost \"{}\" ...", call.vhost())),
    Command::new(
        Section::AccessControl,
        "list_user_permissions",
        "list_user_permissions [--no-table-headers] <username>",
        "Lists the permissions of a user in all vhosts",
        list_of_user,
    )
    .everywhere()
    .words(1, 1)
    .banner(|call| format!("Listing permissions for user \"{}\" ...", call.word(0))),
];

fn set(call: &Call<'_>) -> Result<Output, Failure> {
    set_in(call, call.vhost())?;
    Ok(Output::Done)
}

fn set_everywhere(call: &Call<'_>) -> Result<Output, Failure> {
    for vhost in call.node.api.get("/api/vhosts")?.as_array().unwrap_or(&Vec::new()) {
        set_in(call, vhost.get("name").and_then(Value::as_str).unwrap_or_default())?;
    }
    Ok(Output::Done)
}

fn set_in(call: &Call<'_>, vhost: &str) -> Result<(), Failure> {
    let (configure, write, read) = (call.word(1), call.word(2), call.word(3));
    let body = json!({"configure": configure, "write": write, "read": read});
    let result = call.node.api.put(&path(&["permissions", vhost, call.word(0)]), &body);
    result.map_err(|error| cause(call, vhost, error))
}

/// The missing user or vhost, if that is why permissions could not be set.
pub(in crate::commands) fn cause(call: &Call<'_>, vhost: &str, error: HttpError) -> Failure {
    if !matches!(error, HttpError::Refused { status: 400 | 404, .. }) {
        return error.into();
    }
    let is_missing = |parts: &[&str]| matches!(call.node.api.find(&path(parts)), Ok(None));
    let user = call.word(0);
    if is_missing(&["users", user]) {
        return missing(call, NO_USER, &format!("User {user}"));
    }
    if is_missing(&["vhosts", vhost]) {
        return missing(call, UNAVAILABLE, &format!("Virtual host {vhost}"));
    }
    error.into()
}

/// The failure about something that permissions name and that does not exist.
pub(in crate::commands) fn missing(call: &Call<'_>, code: u8, what: &str) -> Failure {
    Failure::error(code, format!("{what} does not exist")).told_by(call.node.name())
}

fn clear(call: &Call<'_>) -> Result<Output, Failure> {
    match call.node.api.remove(&path(&["permissions", call.vhost(), call.word(0)])) {
        // Without the user or the vhost there is nothing to clear, either.
        Ok(_) | Err(HttpError::Refused { status: 400, .. }) => Ok(Output::Done),
        Err(error) => Err(error.into()),
    }
}

fn list(call: &Call<'_>) -> Result<Output, Failure> {
    existing_vhost(call)?;
    let permissions = call.node.api.get(&path(&["vhosts", call.vhost(), "permissions"]))?;
    Ok(rows_of(&permissions, |one| {
        ["user", "configure", "write", "read"].map(|name| same(one, name)).to_vec()
    })
    .into())
}

fn list_of_user(call: &Call<'_>) -> Result<Output, Failure> {
    let permissions = call.node.api.find(&path(&["users", call.word(0), "permissions"]))?;
    let permissions = permissions.ok_or_else(|| no_such_user(call.word(0)))?;
    Ok(rows_of(&permissions, |one| {
        ["vhost", "configure", "write", "read"].map(|name| same(one, name)).to_vec()
    })
    .into())
}

//! Limits of vhosts and of users.

use serde_json::{Map, Value};

use super::users::no_such_user;
use super::vhosts::existing_vhost;
use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::documents;
use crate::failure::{Failure, UNAVAILABLE};
use crate::format::Output;
use crate::http::path;
use crate::rows::{document, rows_of, same};
use crate::term::quoted;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::VirtualHosts,
        "set_vhost_limits",
        "set_vhost_limits [--vhost <vhost>] <definition>",
        "Replaces the limits of a vhost: max-connections, max-queues",
        set_of_vhost,
    )
    .words(1, 1)
    .banner(|call| {
        format!("Setting vhost limits to \"{}\" for vhost \"{}\" ...", call.word(0), call.vhost())
    }),
    Command::new(
        Section::VirtualHosts,
        "clear_vhost_limits",
        "clear_vhost_limits [--vhost <vhost>]",
        "Removes the limits of a vhost",
        clear_of_vhost,
    )
    .banner(|call| format!("Clearing vhost \"{}\" limits ...", call.vhost())),
    Command::new(
        Section::VirtualHosts,
        "list_vhost_limits",
        "list_vhost_limits [--vhost <vhost>] [--global] [--no-table-headers]",
        "Shows the limits of a vhost, or of all",
        list_of_vhosts,
    )
    .everywhere()
    .switches(&[Switch::flag("global")])
    .banner(|call| {
        if call.has("global") {
            return "Listing limits for all vhosts ...".to_owned();
        }
        format!("Listing limits for vhost \"{}\" ...", call.vhost())
    }),
    Command::new(
        Section::Users,
        "set_user_limits",
        "set_user_limits <username> <definition>",
        "Sets limits of a user: max-connections, max-channels",
        set_of_user,
    )
    .words(2, 2)
    .banner(|call| {
        format!("Setting user limits to \"{}\" for user \"{}\" ...", call.word(1), call.word(0))
    }),
    Command::new(
        Section::Users,
        "clear_user_limits",
        "clear_user_limits <username> <limit_type> | all",
        "Removes a limit of a user, or all",
        clear_of_user,
    )
    .words(2, 2)
    .banner(|call| match (call.word(0), call.word(1)) {
        (user, "all") => format!("Clearing all limits for user \"{user}\" ..."),
        (user, limit) => format!("Clearing \"{limit}\" limit for user \"{user}\" ..."),
    }),
    Command::new(
        Section::Users,
        "list_user_limits",
        "list_user_limits [--user <username>] [--global]",
        "Shows the limits of a user, or of all",
        list_of_users,
    )
    .everywhere()
    .switches(&[Switch::flag("global"), Switch::text("user")])
    .banner(|call| {
        if call.has("global") {
            return "Listing limits for all users ...".to_owned();
        }
        format!("Listing limits for user \"{}\" ...", user(call))
    }),
];

/// The user whose limits are shown.
fn user<'a>(call: &'a Call<'_>) -> &'a str {
    call.options.text("user").unwrap_or("guest")
}

/// Limits from a definition. Wrong limits are an error before any change.
fn limits(
    text: &str,
    known: &[&str],
    what: &str,
    lead: &[&str],
) -> Result<Map<String, Value>, Failure> {
    let invalid = |problem: String| {
        Failure::error_lines(UNAVAILABLE, lead.iter().copied().chain([problem.as_str()]))
    };
    let document = documents::parse(text)?;
    let Some(limits) = document.as_object().cloned() else {
        return Err(invalid(format!("Unrecognised terms {document} in {what}")));
    };
    let shown = |value: &Value| {
        value.as_str().map_or_else(|| value.to_string(), |text| format!("<<{}>>", quoted(text)))
    };
    for (name, value) in &limits {
        if !known.contains(&name.as_str()) {
            let term = format!("{{<<{}>>,{}}}", quoted(name), shown(value));
            return Err(invalid(format!("Unrecognised terms [{term}] in {what}")));
        }
        if !value.is_i64() && !value.is_u64() {
            let problem = format!("{name} should be a number, actually was {}", shown(value));
            return Err(invalid(problem));
        }
    }
    Ok(limits)
}

/// The value of the first entry of a list of limits.
fn first(limits: &Value) -> Map<String, Value> {
    let value = limits.get(0).and_then(|one| one.get("value")).and_then(Value::as_object);
    value.cloned().unwrap_or_default()
}

fn set_of_vhost(call: &Call<'_>) -> Result<Output, Failure> {
    existing_vhost(call)?;
    let known = ["max-connections", "max-queues"];
    let limits = limits(call.word(0), &known, "limits", &["Validation failed", ""])?;
    for name in known {
        let at = path(&["vhost-limits", call.vhost(), name]);
        match limits.get(name) {
            Some(value) => call.node.api.put(&at, &serde_json::json!({"value": value}))?,
            None => drop(call.node.api.remove(&at)?),
        }
    }
    Ok(Output::Done)
}

fn clear_of_vhost(call: &Call<'_>) -> Result<Output, Failure> {
    let limits = call.node.api.find(&path(&["vhost-limits", call.vhost()]))?.unwrap_or_default();
    let limits = first(&limits);
    if limits.is_empty() {
        return Err(Failure::no_such_parameter());
    }
    for name in limits.keys() {
        call.node.api.remove(&path(&["vhost-limits", call.vhost(), name]))?;
    }
    Ok(Output::Done)
}

fn list_of_vhosts(call: &Call<'_>) -> Result<Output, Failure> {
    if call.has("global") {
        let all = call.node.api.get("/api/vhost-limits")?;
        return Ok(list("vhost", &all));
    }
    existing_vhost(call)?;
    let limits = call.node.api.find(&path(&["vhost-limits", call.vhost()]))?.unwrap_or_default();
    let limits = first(&limits);
    if limits.is_empty() {
        return Ok(Vec::new().into());
    }
    Ok(Output::Text(Value::Object(limits).to_string()))
}

fn set_of_user(call: &Call<'_>) -> Result<Output, Failure> {
    existing_user(call, call.word(0))?;
    let known = ["max-connections", "max-channels"];
    for (name, value) in limits(call.word(1), &known, "user-limits", &[])? {
        let at = path(&["user-limits", call.word(0), &name]);
        call.node.api.put(&at, &serde_json::json!({"value": value}))?;
    }
    Ok(Output::Done)
}

fn clear_of_user(call: &Call<'_>) -> Result<Output, Failure> {
    let user = call.word(0);
    existing_user(call, user)?;
    let names = match call.word(1) {
        "all" => {
            let limits = call.node.api.find(&path(&["user-limits", user]))?.unwrap_or_default();
            first(&limits).keys().cloned().collect()
        }
        limit => vec![limit.to_owned()],
    };
    for name in names {
        call.node.api.remove(&path(&["user-limits", user, &name]))?;
    }
    Ok(Output::Done)
}

fn list_of_users(call: &Call<'_>) -> Result<Output, Failure> {
    if call.has("global") {
        let all = call.node.api.get("/api/user-limits")?;
        return Ok(list("user", &all));
    }
    let user = user(call);
    existing_user(call, user)?;
    let limits = call.node.api.find(&path(&["user-limits", user]))?.unwrap_or_default();
    Ok(Output::message(Value::Object(first(&limits)).to_string()))
}

fn list(whose: &str, limits: &Value) -> Output {
    rows_of(limits, |one| {
        let (_, value) = document(one, "value");
        vec![same(one, whose), ("limits".to_owned(), value)]
    })
    .into()
}

fn existing_user(call: &Call<'_>, user: &str) -> Result<(), Failure> {
    let found = call.node.api.find(&path(&["users", user]))?;
    found.map(drop).ok_or_else(|| no_such_user(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_of_known_names() {
        let told = |text| match limits(text, &["max-queues"], "limits", &[]) {
            Err(Failure::Message { text, .. }) => text,
            other => format!("{other:?}"),
        };
        assert!(limits("{\"max-queues\": 5}", &["max-queues"], "limits", &[]).is_ok());
        assert_eq!(told("{\"b\": 1}"), "Error:\nUnrecognised terms [{<<\"b\">>,1}] in limits");
        assert_eq!(
            told("{\"max-queues\": \"a\"}"),
            "Error:\nmax-queues should be a number, actually was <<\"a\">>"
        );
    }
}

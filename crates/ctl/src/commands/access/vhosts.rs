//! Virtual hosts.

use serde_json::{Map, Value, json};

use crate::arguments::Switch;
use crate::columns::{Column, selected};
use crate::command::{Call, Command, Section};
use crate::failure::{DATA, Failure};
use crate::format::Output;
use crate::http::path;
use crate::rows::rows_of;
use crate::term::{Term, quoted};

const METADATA: &[Switch] = &[
    Switch::text("description"),
    Switch::text("tags"),
    Switch::text("default-queue-type"),
    Switch::text("protected-from-deletion"),
    Switch::text("replicas"),
];

const REPLICAS: &str = "[--replicas <1-7|all>]";

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::VirtualHosts,
        "add_vhost",
        "add_vhost <vhost> [--description <description> --tags \"<tag1>,<tag2>,<...>\" \
         --default-queue-type <quorum|classic|stream>]",
        "Creates a vhost",
        add,
    )
    .own_options(REPLICAS)
    .words(1, 1)
    .switches(METADATA)
    .check(check_metadata)
    .banner(|call| format!("Adding vhost \"{}\" ...", call.word(0))),
    Command::new(
        Section::VirtualHosts,
        "delete_vhost",
        "delete_vhost <vhost>",
        "Deletes a vhost with everything in it",
        delete,
    )
    .slow()
    .words(1, 1)
    .banner(|call| format!("Deleting vhost \"{}\" ...", call.word(0))),
    Command::new(
        Section::VirtualHosts,
        "set_vhost_tags",
        "set_vhost_tags <vhost> <tag> [...]",
        "Replaces the tags of a vhost",
        set_tags,
    )
    .words(1, usize::MAX)
    .banner(|call| {
        let tags = call.words.get(1..).unwrap_or_default().join(", ");
        format!("Setting tags for virtual host \"{}\" to [{tags}] ...", call.word(0))
    }),
    Command::new(
        Section::VirtualHosts,
        "update_vhost_metadata",
        "update_vhost_metadata <vhost> [--description=<description>] \
         [--tags=\"<tag1>,<tag2>,<...>\"] [--default-queue-type=<quorum|classic|stream>] \
         [--protected-from-deletion=<true|false>]",
        "Changes description, tags, default queue type, protection or replicas of a vhost",
        update,
    )
    .own_options(REPLICAS)
    .words(1, 1)
    .switches(METADATA)
    .check(|call| {
        if METADATA.iter().all(|switch| call.options.text(switch.name).is_none()) {
            return Err(Failure::not_enough_arguments());
        }
        check_metadata(call)
    })
    .banner(|call| format!("Updating metadata of vhost \"{}\" ...", call.word(0))),
    Command::new(
        Section::VirtualHosts,
        "enable_vhost_deletion_protection",
        "enable_vhost_deletion_protection <vhost>",
        "Protects a vhost from deletion",
        |call| protect(call, true),
    )
    .words(1, 1)
    .banner(|call| {
        let vhost = call.word(0);
        format!("Protecting virtual host \"{vhost}\" from removal by updating its metadata...")
    }),
    Command::new(
        Section::VirtualHosts,
        "disable_vhost_deletion_protection",
        "disable_vhost_deletion_protection <vhost>",
        "Removes the protection of a vhost from deletion",
        |call| protect(call, false),
    )
    .words(1, 1)
    .banner(|call| {
        let vhost = call.word(0);
        format!(
            "Removing deletion protection from virtual host \"{vhost}\" by updating its metadata..."
        )
    }),
    Command::new(
        Section::AccessControl,
        "list_vhosts",
        "list_vhosts [--no-table-headers] [<column> ...] [--timeout <timeout>]",
        "Lists vhosts",
        list,
    )
    .everywhere()
    .words(0, usize::MAX)
    .columns(COLUMNS)
    .banner(|_| "Listing vhosts ...".to_owned()),
];

const COLUMNS: &[Column] = &[
    Column::same("name"),
    Column::atom("tracing"),
    Column::new("cluster_state", |vhost, _| {
        let states = vhost.get("cluster_state").and_then(Value::as_object);
        let pair = |(node, state): (&String, &Value)| (node.clone(), Term::atom_of(Some(state)));
        Term::Pairs(states.map(|all| all.iter().map(pair).collect()).unwrap_or_default())
    }),
    Column::same("description"),
    Column::atom("tags"),
    Column::same("default_queue_type"),
    Column::new("metadata", |vhost, _| {
        let metadata =
            vhost.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut all: Vec<(String, Term)> =
            metadata.iter().map(|(name, value)| (name.clone(), Term::of(Some(value)))).collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        Term::Map(all)
    }),
    Column::atom("protected_from_deletion"),
    Column::same("replicas"),
    Column::same("leader"),
    Column::same("members"),
];

/// The vhost of the option `-p` must be there.
pub(in crate::commands) fn existing_vhost(call: &Call<'_>) -> Result<(), Failure> {
    let found = call.node.api.find(&path(&["vhosts", call.vhost()]))?;
    found.map(drop).ok_or_else(|| Failure::no_such_vhost(call.vhost()))
}

fn check_metadata(call: &Call<'_>) -> Result<(), Failure> {
    if let Some(replicas) = call.options.text("replicas")
        && replicas_of(replicas).is_none()
    {
        return Err(Failure::bad_argument(Some(&format!(
            "Replicas must be all, or a number from 1 to 7. Provided: {replicas}"
        ))));
    }
    match call.options.text("default-queue-type") {
        None | Some("quorum" | "stream" | "classic") => Ok(()),
        Some(other) => Err(Failure::bad_argument(Some(&format!(
            "Default queue type must be one of: quorum, stream, classic. Provided: {other}"
        )))),
    }
}

/// The number of replicas of a vhost, null for all nodes.
fn replicas_of(text: &str) -> Option<Value> {
    match text {
        "all" => Some(Value::Null),
        number => {
            number.parse().ok().filter(|number| (1..=7).contains(number)).map(|it: u8| json!(it))
        }
    }
}

/// The metadata that the options name.
fn metadata(call: &Call<'_>) -> Vec<(&'static str, Value)> {
    let mut given = Vec::new();
    if let Some(description) = call.options.text("description") {
        given.push(("description", json!(description)));
    }
    if let Some(tags) = call.options.text("tags") {
        given.push(("tags", json!(tags.split(',').map(str::trim).collect::<Vec<_>>())));
    }
    if let Some(kind) = call.options.text("default-queue-type") {
        given.push(("default_queue_type", json!(kind)));
    }
    if let Some(replicas) = call.options.text("replicas").and_then(replicas_of) {
        given.push(("replicas", replicas));
    }
    given
}

/// Protects the vhost of the first word from deletion, or ends that.
fn protect(call: &Call<'_>, on: bool) -> Result<Output, Failure> {
    let vhost = call.word(0);
    existing(call, vhost, Failure::no_such_vhost)?;
    let at = path(&["vhosts", vhost, "deletion", "protection"]);
    match on {
        true => drop(call.node.api.post(&at, &json!({}))?),
        false => drop(call.node.api.remove(&at)?),
    }
    Ok(Output::Done)
}

/// Protects the vhost as the options say.
fn protect_as_told(call: &Call<'_>) -> Result<(), Failure> {
    match call.options.text("protected-from-deletion") {
        Some(is) => protect(call, is == "true").map(drop),
        None => Ok(()),
    }
}

fn add(call: &Call<'_>) -> Result<Output, Failure> {
    let at = path(&["vhosts", call.word(0)]);
    // An existing vhost is not changed.
    if call.node.api.find(&at)?.is_none() {
        let mut body: Map<String, Value> = Map::new();
        body.extend(metadata(call).into_iter().map(|(key, value)| (key.to_owned(), value)));
        if let Some(Value::Array(tags)) = body.get_mut("tags") {
            let names: Vec<&str> = tags.iter().filter_map(Value::as_str).collect();
            body["tags"] = json!(names.join(","));
        }
        call.node.api.put(&at, &Value::Object(body))?;
        // The API gives permissions to the user who creates a vhost; the command gives them to no user.
        if let Some(user) = call.node.api.user() {
            call.node.api.remove(&path(&["permissions", call.word(0), user]))?;
        }
        protect_as_told(call)?;
    }
    Ok(Output::Done)
}

fn delete(call: &Call<'_>) -> Result<Output, Failure> {
    match call.node.api.remove(&path(&["vhosts", call.word(0)])) {
        Ok(true) => Ok(Output::Done),
        Ok(false) => Err(Failure::no_such_vhost(call.word(0))),
        Err(crate::http::HttpError::Refused { status: 412, .. }) => Err(Failure::error(
            DATA,
            "Cannot delete this virtual host: it is protected from deletion. To lift the \
             protection, inspect and update its metadata",
        )),
        Err(error) => Err(error.into()),
    }
}

fn set_tags(call: &Call<'_>) -> Result<Output, Failure> {
    let tags = json!(call.words.get(1..).unwrap_or_default());
    change(call, &[("tags", tags)], |vhost| {
        Failure::error(DATA, format!("Virtual host {} does not exist", quoted(vhost)))
    })
    .map_err(|failure| failure.told_by(call.node.name()))
}

fn update(call: &Call<'_>) -> Result<Output, Failure> {
    change(call, &metadata(call), Failure::no_such_vhost)?;
    protect_as_told(call)?;
    Ok(Output::Done)
}

fn existing(call: &Call<'_>, vhost: &str, missing: fn(&str) -> Failure) -> Result<Value, Failure> {
    call.node.api.find(&path(&["vhosts", vhost]))?.ok_or_else(|| missing(vhost))
}

/// Changes metadata of the vhost of the first word.
fn change(
    call: &Call<'_>,
    changes: &[(&str, Value)],
    missing: fn(&str) -> Failure,
) -> Result<Output, Failure> {
    let vhost = call.word(0);
    write(call, vhost, &existing(call, vhost, missing)?, changes)?;
    Ok(Output::Done)
}

/// Writes a vhost with these fields changed.
pub(in crate::commands) fn write(
    call: &Call<'_>,
    vhost: &str,
    is: &Value,
    changes: &[(&str, Value)],
) -> Result<(), Failure> {
    let mut body = Map::new();
    for key in ["description", "tags", "default_queue_type", "tracing"] {
        let changed = changes.iter().find(|(name, _)| *name == key).map(|(_, value)| value);
        let value = changed.or_else(|| is.get(key)).filter(|value| !value.is_null());
        let Some(value) = value else { continue };
        let listed = |all: &Vec<Value>| {
            json!(all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","))
        };
        body.insert(key.to_owned(), value.as_array().map_or_else(|| value.clone(), listed));
    }
    // Unlike the others, it stays as it is if the body does not name it.
    let replicas = changes.iter().find(|(name, _)| *name == "replicas");
    body.extend(replicas.map(|(name, value)| ((*name).to_owned(), value.clone())));
    call.node.api.put(&path(&["vhosts", vhost]), &Value::Object(body))?;
    Ok(())
}

fn list(call: &Call<'_>) -> Result<Output, Failure> {
    let columns = selected(call.words, COLUMNS, &["name"]);
    let vhosts = call.node.api.get("/api/vhosts")?;
    let nobody = crate::pids::Pids::default();
    Ok(rows_of(&vhosts, |vhost| columns.iter().map(|c| c.cell(vhost, &nobody)).collect()).into())
}

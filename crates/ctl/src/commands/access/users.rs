//! Users: names, passwords, tags.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::vhosts::existing_vhost;
use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::failure::{DATA, Failure, NO_USER, SOFTWARE, UNAVAILABLE};
use crate::format::Output;
use crate::http::path;
use crate::password;
use crate::rows::{rows_of, text};
use crate::term::{Term, quoted};

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Users,
        "add_user",
        "add_user <username> [<password>] [<password_hash> --pre-hashed-password]",
        "Creates a user, with the permissions only that the options give",
        add,
    )
    .words(1, 2)
    .check(|call| match call.word(0) {
        "" => Err(Failure::bad_argument(Some("user cannot be an empty string"))),
        _ => Ok(()),
    })
    .own_options("[--tags <tag>,...] [--all-permissions [-p <vhost>]]")
    .switches(&[
        Switch::flag("pre-hashed-password"),
        Switch::text("tags"),
        Switch::flag("all-permissions"),
    ])
    .banner(|call| format!("Adding user \"{}\" ...", call.word(0))),
    Command::new(
        Section::Users,
        "delete_user",
        "delete_user <username>",
        "Deletes a user with all permissions",
        delete,
    )
    .words(1, 1)
    .banner(|call| format!("Deleting user \"{}\" ...", call.word(0))),
    Command::new(
        Section::Users,
        "change_password",
        "change_password <username> <password>",
        "Changes the password of a user",
        change_password,
    )
    .words(1, 2)
    .banner(|call| format!("Changing password for user \"{}\" ...", call.word(0))),
    Command::new(
        Section::Users,
        "clear_password",
        "clear_password <username>",
        "Removes the password of a user, who cannot log in with a password then",
        clear_password,
    )
    .words(1, 1)
    .banner(|call| format!("Clearing password for user \"{}\" ...", call.word(0))),
    Command::new(
        Section::Users,
        "authenticate_user",
        "authenticate_user <username> [<password>]",
        "Checks the password of a user",
        authenticate,
    )
    .words(1, 2)
    .banner(|call| format!("Authenticating user \"{}\" ...", call.word(0))),
    Command::new(
        Section::Users,
        "set_user_tags",
        "set_user_tags <username> <tag> [...]",
        "Replaces the tags of a user, which give access to the management API",
        set_tags,
    )
    .words(1, usize::MAX)
    .banner(|call| {
        let tags = call.words.get(1..).unwrap_or_default().join(", ");
        format!("Setting tags for user \"{}\" to [{tags}] ...", call.word(0))
    }),
    Command::new(
        Section::Users,
        "list_users",
        "list_users [--no-table-headers] [--timeout <timeout>]",
        "Lists users and their tags",
        list,
    )
    .everywhere()
    .banner(|_| "Listing users ...".to_owned()),
    Command::new(
        Section::Other,
        "hash_password",
        "hash_password [<cleartext_password>]",
        "Shows the hash of a password, as in definitions files",
        hash,
    )
    .words(0, 1)
    .banner(|call| match call.words.first() {
        Some(password) => format!("Will hash password {password}"),
        None => "Will hash provided password".to_owned(),
    }),
];

fn add(call: &Call<'_>) -> Result<Output, Failure> {
    let name = call.word(0);
    let password = password_of(call, 1)?;
    let users = path(&["users", name]);
    if call.node.api.find(&users)?.is_some() {
        let failure = Failure::error(SOFTWARE, format!("User {} already exists", quoted(name)));
        return Err(failure.told_by(call.node.name()));
    }
    let is_permitted = call.has("all-permissions");
    if is_permitted {
        // Before the user exists: a failed command leaves none.
        existing_vhost(call)?;
    }
    let key = if call.has("pre-hashed-password") { "password_hash" } else { "password" };
    let tags = call.options.text("tags").unwrap_or_default();
    call.node.api.put(&users, &json!({key: password, "tags": tags}))?;
    if is_permitted {
        let all = json!({"configure": ".*", "write": ".*", "read": ".*"});
        call.node.api.put(&path(&["permissions", call.vhost(), name]), &all)?;
    }
    let done = if is_permitted {
        "Done."
    } else {
        "Done. Don't forget to grant the user permissions to some virtual hosts! See \
         'rabbitmqctl help set_permissions' to learn more."
    };
    let told = json!({"status": "ok", "node": call.node.name(), "message": done});
    let shown = if call.is_quiet { String::new() } else { done.to_owned() };
    Ok(Output::Said(shown, told))
}

fn delete(call: &Call<'_>) -> Result<Output, Failure> {
    call.node.api.remove(&even_protected(call.word(0)))?;
    Ok(Output::Done)
}

fn change_password(call: &Call<'_>) -> Result<Output, Failure> {
    let password = password_of(call, 1)?;
    let user = existing(call, no_user).map_err(|missing| missing.told_by(call.node.name()))?;
    replace(call, &user, &[("password", json!(password))])
}

fn clear_password(call: &Call<'_>) -> Result<Output, Failure> {
    let user = existing(call, no_such_user)?;
    replace(call, &user, &[("password_hash", json!(""))])
}

fn set_tags(call: &Call<'_>) -> Result<Output, Failure> {
    let mut user = existing(call, no_user).map_err(|missing| missing.told_by(call.node.name()))?;
    // A request without a password would remove it.
    let kept = ["password_hash", "hashing_algorithm"].map(|key| (key, user[key].take()));
    user["tags"] = json!(call.words.get(1..).unwrap_or_default());
    replace(call, &user, &kept)
}

/// The path of a user, for changes also of one with the tag `protected`.
fn even_protected(name: &str) -> String {
    format!("{}?include_protected=true", path(&["users", name]))
}

/// Writes a user with these fields changed.
fn replace(call: &Call<'_>, user: &Value, fields: &[(&str, Value)]) -> Result<Output, Failure> {
    let mut body = Map::new();
    body.insert("tags".to_owned(), Value::from(tags(user).join(",")));
    for (key, value) in fields {
        body.insert((*key).to_owned(), value.clone());
    }
    call.node.api.put(&even_protected(call.word(0)), &Value::Object(body))?;
    Ok(Output::Done)
}

fn authenticate(call: &Call<'_>) -> Result<Output, Failure> {
    let (name, password) = (call.word(0), password_of(call, 1)?);
    if call.node.api.accepts(name, &password)? {
        return Ok(Output::message("Success"));
    }
    let lines = [
        format!("Error: failed to authenticate user {}", quoted(name)),
        format!("user '{name}' - invalid credentials"),
    ];
    Err(Failure::error_lines(DATA, lines))
}

fn list(call: &Call<'_>) -> Result<Output, Failure> {
    let users = call.node.api.get("/api/users")?;
    let row = |user: &Value| {
        let tags = tags(user).into_iter().map(Term::Atom).collect();
        vec![("user".to_owned(), text(user, "name")), ("tags".to_owned(), Term::List(tags))]
    };
    Ok(rows_of(&users, row).into())
}

/// RabbitMQ's salted SHA-256.
fn hash(call: &Call<'_>) -> Result<Output, Failure> {
    let password = password_of(call, 0)?;
    let mut hashed = vec![0; 4];
    getrandom::fill(&mut hashed)
        .map_err(|error| Failure::plain(SOFTWARE, format!("Error: no randomness: {error}")))?;
    let digest = Sha256::new().chain_update(&hashed).chain_update(password).finalize();
    hashed.extend(digest.iter());
    Ok(Output::message(STANDARD.encode(hashed)))
}

/// The tags, which older nodes give as one text.
pub(in crate::commands) fn tags(user: &Value) -> Vec<String> {
    match user.get("tags") {
        Some(Value::Array(tags)) => {
            tags.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(Value::String(tags)) => tags
            .split(',')
            .map(str::trim)
            .filter(|tag| !tag.is_empty())
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

fn password_of(call: &Call<'_>, at: usize) -> Result<String, Failure> {
    match call.words.get(at) {
        Some(password) => Ok(password.clone()),
        None => password::read(),
    }
}

/// The user of the first word.
fn existing(call: &Call<'_>, missing: fn(&str) -> Failure) -> Result<Value, Failure> {
    let user = call.node.api.find(&path(&["users", call.word(0)]))?;
    user.ok_or_else(|| missing(call.word(0)))
}

fn no_user(name: &str) -> Failure {
    Failure::error(NO_USER, format!("User {} does not exist", quoted(name)))
}

/// Texts that RabbitMQ's tool prints as terms.
pub(in crate::commands) fn no_such_user(name: &str) -> Failure {
    Failure::error(UNAVAILABLE, format!("{{:no_such_user, {}}}", quoted(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_in_both_forms() {
        assert_eq!(tags(&json!({"tags": ["a", "b"]})), ["a", "b"]);
        assert_eq!(tags(&json!({"tags": "a, b,"})), ["a", "b"]);
        assert!(tags(&json!({})).is_empty());
    }
}

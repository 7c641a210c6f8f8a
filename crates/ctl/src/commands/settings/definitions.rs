//! Definitions: topology, users and permissions, in a file.

use std::fs::{OpenOptions, Permissions};
use std::io::{Read, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use serde_json::{Value, json};

use super::import_preview::{left_out, problems, told};
use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::failure::{DATA, Failure, INPUT_OUTPUT, UNAVAILABLE, USAGE};
use crate::format::Output;
use crate::http::path;

const FORMAT: Switch = Switch::text("format");

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Definitions,
        "export_definitions",
        "export_definitions <file_path | \"-\"> [--format <json | erlang>] [--timeout <timeout>]",
        "Exports users, vhosts, permissions, policies and topology to a file",
        export,
    )
    .slow()
    .words(1, 1)
    .switches(&[FORMAT])
    .check(|call| {
        check_format(call)?;
        let directory = Path::new(call.word(0)).parent().filter(|path| *path != Path::new(""));
        match directory {
            Some(directory) if call.word(0) != "-" && !directory.is_dir() => {
                let problem = format!("Directory {} does not exist", directory.display());
                Err(Failure::bad_argument(Some(&problem)))
            }
            _ => Ok(()),
        }
    })
    .banner(|call| match call.word(0) {
        "-" => String::new(),
        file => format!("Exporting definitions in JSON to a file at \"{file}\" ..."),
    }),
    Command::new(
        Section::Definitions,
        "import_definitions",
        "import_definitions <file_path> [--format <json | erlang>] [--skip-if-unchanged] \
         [--timeout <timeout>]",
        "Imports users, vhosts, permissions, policies and topology from a file",
        import,
    )
    .slow()
    .words(0, 1)
    .switches(&[
        FORMAT,
        Switch::flag("skip-if-unchanged"),
        Switch::flag("skip-unsupported"),
        Switch::flag("dry-run"),
    ])
    .own_options("[-p <vhost>] [--skip-unsupported] [--dry-run]")
    .check(|call| {
        check_format(call)?;
        match call.words.first().map(Path::new) {
            Some(file) if file != Path::new("-") && !file.exists() => {
                let problem = format!("File {} does not exist", file.display());
                Err(Failure::bad_argument(Some(&problem)))
            }
            _ => Ok(()),
        }
    })
    .banner(|call| {
        let does = if call.has("dry-run") { "Would import" } else { "Importing" };
        let into = call.options.text("vhost");
        let into = into.map(|vhost| format!(" into vhost \"{vhost}\"")).unwrap_or_default();
        match call.words.first() {
            Some(file) => format!("{does} definitions in JSON from a file at \"{file}\"{into} ..."),
            None => format!("{does} definitions in JSON from standard input{into} ..."),
        }
    }),
];

// COMPAT: Erlang terms in files: definitions are exported and imported as JSON only.
fn check_format(call: &Call<'_>) -> Result<(), Failure> {
    match call.options.text("format") {
        None | Some("json" | "JSON") => Ok(()),
        Some(other) => {
            let problem = format!("Formatting should be json, '{other}' is not supported");
            Err(Failure::arguments(USAGE, problem))
        }
    }
}

fn export(call: &Call<'_>) -> Result<Output, Failure> {
    let text = call.node.api.get_text("/api/definitions")?;
    if call.word(0) == "-" {
        let document = serde_json::from_str(&text).unwrap_or(Value::Null);
        return Ok(Output::Both(text, document));
    }
    write_private(call.word(0), &text).map_err(|error| {
        Failure::error(INPUT_OUTPUT, format!("cannot write {}: {error}", call.word(0)))
    })?;
    Ok(Output::Done)
}

// COMPAT: mode of exported definitions: hashes of passwords are in them, so that the file is its owner's alone.
fn write_private(path: &str, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(path)?;
    // An existing file may be readable for others; the mode of a device or a pipe is not changed.
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    file.write_all(text.as_bytes())
}

// COMPAT: end of an import: the command ends when everything is there, and says so, where RabbitMQ's
// ends before.
fn import(call: &Call<'_>) -> Result<Output, Failure> {
    let mut text = String::new();
    let read = match call.words.first().map(String::as_str) {
        None | Some("-") => std::io::stdin().read_to_string(&mut text).map(drop),
        Some(file) => std::fs::read_to_string(file).map(|read| text = read),
    };
    read.map_err(|error| Failure::error(DATA, format!("cannot read the definitions: {error}")))?;
    if let Err(error) = serde_json::from_str::<Value>(&text) {
        let text = format!("Failed to deserialise input (format: JSON) (error: {error})");
        return Err(Failure::error(DATA, text));
    }
    // COMPAT: import into one vhost: `-p` imports the objects of one vhost; RabbitMQ ignores the option.
    let address = match call.options.text("vhost") {
        Some(vhost) => path(&["definitions", vhost]),
        None => "/api/definitions".to_owned(),
    };
    let is_dry = call.has("dry-run");
    let query = format!("?dry_run={is_dry}&skip_unsupported={}", call.has("skip-unsupported"));
    let answer = call.node.api.post_judged(&format!("{address}{query}"), &text)?;
    let answer = answer.map_err(|refusal| Failure::error_lines(UNAVAILABLE, problems(&refusal)))?;
    if is_dry {
        return Ok(Output::Both(told(&answer), answer));
    }
    for line in left_out(&answer) {
        call.warn(&line);
    }
    let done = "Definitions are imported.";
    let mut document = json!({"message": done, "result": "ok"});
    if let Some(left_out) = answer.get("left_out") {
        document["left_out"] = left_out.clone();
    }
    Ok(Output::Said(done.to_owned(), document))
}

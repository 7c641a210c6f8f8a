//! The check of the files that the running node uses.

use serde_json::{Value, json};

use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::commands::answer::{items, number, word};
use crate::commands::progress::until;
use crate::failure::Failure;
use crate::format::Output;
use crate::http::path;
use crate::printable::in_line;

/// Exit code for a file that has changed and that nobody mends.
const DAMAGED: u8 = 2;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Nodes,
        "check_files",
        "check_files [--no-wait]",
        "Reads the files of the running node again and compares them with their checksums; exit code 2 for damage",
        check,
    )
    .switches(&[Switch::flag("wait")])
    .banner(|call| format!("Checking the files of node {} ...", call.node.name()))
    .waits(),
    Command::new(
        Section::Nodes,
        "check_files_status",
        "check_files_status",
        "Shows the check of files that runs, or the last one since the start",
        |call| Ok(graded(call.node.api.get(&path(&["file-check"]))?)),
    ),
];

fn check(call: &Call<'_>) -> Result<Output, Failure> {
    let at = path(&["file-check"]);
    let state = call.node.api.post(&at, &json!({}))?;
    if call.options.flag("wait") == Some(false) {
        return Ok(Output::Both("The check runs".to_owned(), state));
    }
    let line = |state: &Value| is_running(state).then(|| format!("Running: {}", progress(state)));
    let state = until(call, &at, state, |state| !is_running(state), line)?;
    Ok(graded(state))
}

fn is_running(state: &Value) -> bool {
    state.get("running") == Some(&Value::Bool(true))
}

fn progress(state: &Value) -> String {
    let (files, bytes) = (number(state, "files"), number(state, "bytes"));
    format!("{files} files, {bytes} of {} bytes", number(state, "bytes_total"))
}

/// The state with an exit code: damage that nobody mends, or a log that could not be read, is an error.
fn graded(state: Value) -> Output {
    let is_bad = items(&state, "damaged").iter().any(|one| word(one, "repair") == "none")
        || !items(&state, "unread").is_empty();
    let code = if is_bad { DAMAGED } else { 0 };
    Output::Graded { output: Box::new(Output::Both(told(&state), state)), code }
}

/// The check in lines: its progress, and each damaged file with what is known of it.
fn told(state: &Value) -> String {
    if state.get("started_ms").is_none_or(Value::is_null) {
        return "No check since the start".to_owned();
    }
    let how = if is_running(state) { "Running" } else { "Checked" };
    let mut lines = vec![format!("{how}: {}", progress(state))];
    for file in items(state, "damaged") {
        let (vhost, name) = (word(file, "vhost"), word(file, "file"));
        let then = match word(file, "repair") {
            "rebuilt" => "the replica is rebuilt from the files of the leader".to_owned(),
            _ => format!("not mended: {}", word(file, "reason")),
        };
        lines.push(format!(
            "DAMAGED {name} of vhost '{vhost}', {} places; {then}",
            number(file, "places")
        ));
        let damages = items(file, "damages").iter().filter_map(Value::as_str);
        lines.extend(damages.map(|damage| format!("  {damage}")));
    }
    for log in items(state, "unread") {
        lines.push(format!("NOT READ vhost '{}': {}", word(log, "vhost"), word(log, "reason")));
    }
    if !is_running(state) && lines.len() == 1 {
        lines.push("Nothing has changed since it was written".to_owned());
    }
    let lines: Vec<_> = lines.iter().map(|line| in_line(line)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_is_told_with_what_it_found() {
        let mut state = json!({"running": false, "started_ms": 1, "files": 2, "bytes": 30, "bytes_total": 30,
            "damaged": [], "unread": []});
        assert_eq!(
            told(&state),
            "Checked: 2 files, 30 of 30 bytes\nNothing has changed since it was written"
        );
        state["damaged"] = json!([{"vhost": "a\nb", "file": "vhosts/1/2.log", "places": 1, "damages": ["at 4096"],
            "repair": "none", "reason": "no other node has the log"}]);
        let lines: Vec<String> = told(&state).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines.last().is_some_and(|line| line == "  at 4096"), "{lines:?}");
        assert!(matches!(graded(state), Output::Graded { code: DAMAGED, .. }));
    }
}

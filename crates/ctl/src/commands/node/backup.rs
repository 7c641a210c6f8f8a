//! Backups of the running node.

use serde_json::{Value, json};

use crate::arguments::Switch;
use crate::command::{Call, Command, Section};
use crate::commands::answer::{items, number, word};
use crate::commands::progress::{is_over, until};
use crate::failure::{DATA, Failure, UNAVAILABLE};
use crate::format::Output;
use crate::http::{HttpError, path};
use crate::printable::in_line;
use crate::timestamp::rfc3339;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command::new(
        Section::Nodes,
        "backup",
        "backup <directory> [--no-wait]",
        "Backs up the running node into a new directory on its machine",
        backup,
    )
    .words(1, 1)
    .switches(&[Switch::flag("wait")])
    .banner(|call| format!("Backing up node {} into {} ...", call.node.name(), call.word(0)))
    .waits(),
    Command::new(
        Section::Nodes,
        "backup_status",
        "backup_status",
        "Shows the backup that runs, or the last one since the start",
        |call| match call.node.api.get(&path(&["backup"])) {
            Ok(job) => Ok(Output::Both(told(&job), job)),
            Err(HttpError::Refused { status: 404, reason }) => Err(Failure::error(DATA, reason)),
            Err(error) => Err(error.into()),
        },
    ),
    Command::new(
        Section::Nodes,
        "cancel_backup",
        "cancel_backup",
        "Cancels the backup that runs and removes its files",
        |call| match call.node.api.remove(&path(&["backup"])) {
            Ok(_) => Ok(Output::Done),
            Err(HttpError::Refused { status: 409, reason }) => Err(Failure::error(DATA, reason)),
            Err(error) => Err(error.into()),
        },
    ),
];

fn backup(call: &Call<'_>) -> Result<Output, Failure> {
    let at = path(&["backup"]);
    let job = match call.node.api.post(&at, &json!({"directory": call.word(0)})) {
        Err(HttpError::Refused { status: 400 | 409, reason }) => {
            return Err(Failure::error(DATA, reason));
        }
        result => result?,
    };
    if call.options.flag("wait") == Some(false) {
        return Ok(Output::Both("The backup runs".to_owned(), job));
    }
    let started = job.get("started_ms").cloned();
    let is_another = |job: &Value| job.get("started_ms") != started.as_ref();
    let has_ended = |job: &Value| is_over(job) || is_another(job);
    let line = |job: &Value| {
        let runs = word(job, "state") == "running" && !is_another(job);
        runs.then(|| format!("Running: {}", progress(job)))
    };
    let job = until(call, &at, job, has_ended, line)?;
    if is_another(&job) {
        return Err(Failure::error(UNAVAILABLE, "Another backup has begun meanwhile"));
    }
    match word(&job, "state") {
        "finished" => Ok(Output::Both(told(&job), job)),
        _ => Err(Failure::error_lines(UNAVAILABLE, told(&job).lines())),
    }
}

fn vhosts(job: &Value) -> &[Value] {
    items(job, "vhosts")
}

/// Progress of a backup, in one line.
fn progress(job: &Value) -> String {
    format!(
        "{} of {} vhosts, {} bytes linked in {} files, {} bytes copied",
        vhosts(job).len(),
        number(job, "vhosts_total"),
        number(job, "bytes_linked"),
        number(job, "files_linked"),
        number(job, "bytes_copied"),
    )
}

/// A backup: state, progress, and the point in time of each vhost.
fn told(job: &Value) -> String {
    let mut lines = match word(job, "state") {
        "failed" => vec![format!("The backup failed: {}", word(job, "reason"))],
        state => vec![format!("Backup {}: {state}, {}", word(job, "directory"), progress(job))],
    };
    lines.extend(vhosts(job).iter().map(|vhost| {
        let (name, position) = (word(vhost, "name"), number(vhost, "position"));
        format!("vhost '{name}' as of {}, position {position}", rfc3339(number(vhost, "time_ms")))
    }));
    let lines: Vec<_> = lines.iter().map(|text| in_line(text)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backup_is_told_with_its_points_in_time() {
        let mut job = json!({"directory": "/b", "state": "finished", "vhosts_total": 1,
            "files_linked": 2, "bytes_linked": 30, "bytes_copied": 4,
            "vhosts": [{"name": "/", "position": 17, "time_ms": 0}]});
        let said = told(&job);
        assert!(said.starts_with("Backup /b: finished, 1 of 1 vhosts, 30 bytes linked in 2 files"));
        assert!(said.ends_with("position 17"), "{said}");
        job["vhosts"][0]["name"] = json!("a\nb");
        assert_eq!(told(&job).lines().count(), 2);
        job["state"] = json!("failed");
        job["reason"] = json!("no room");
        assert!(told(&job).starts_with("The backup failed: no room\n"));
    }
}

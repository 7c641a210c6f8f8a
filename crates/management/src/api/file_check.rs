//! `/api/file-check`: the check of the files that are in use. Leveret's own.

use axum::extract::State;
use axum::routing::get;
use serde_json::{Value, json};
use server::requests::{DamagedFile, FileCheck, FileRepair};

use crate::http::access::Administrator;
use crate::http::answer::Json;
use crate::http::extract::SharedNode;
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The path.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/file-check", Scope::Here, get(show).post(begin))
}

async fn show(State(node): State<SharedNode>, _: Administrator) -> Json {
    Json::ok(to_json(&node.file_check()))
}

/// Begins a check, unless one runs.
async fn begin(State(node): State<SharedNode>, _: Administrator) -> Json {
    Json::ok(to_json(&node.begin_file_check()))
}

fn to_json(check: &FileCheck) -> Value {
    json!({
        "running": check.is_running,
        "ended": check.ended,
        "started_ms": check.started_ms,
        "ended_ms": check.ended_ms,
        "files": check.files,
        "bytes": check.bytes,
        "bytes_total": check.bytes_total,
        "damaged": check.damaged.iter().map(damaged).collect::<Vec<Value>>(),
        "unread": check.unread.iter().map(unread).collect::<Vec<Value>>(),
    })
}

fn damaged(file: &DamagedFile) -> Value {
    let (repair, reason) = match &file.repair {
        FileRepair::Rebuilt => ("rebuilt", None),
        FileRepair::None(reason) => ("none", Some(*reason)),
    };
    json!({
        "vhost": file.vhost,
        "file": file.file,
        "places": file.places,
        "damages": file.damages,
        "repair": repair,
        "reason": reason,
    })
}

fn unread((vhost, reason): &(String, String)) -> Value {
    json!({"vhost": vhost, "reason": reason})
}

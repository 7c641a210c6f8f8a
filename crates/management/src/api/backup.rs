//! `/api/backup`: a backup of the running node. Leveret's own.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Value, json};
use server::requests::{BackupError, BackupJob, BackupState, BackupVhost};

use crate::http::access::Administrator;
use crate::http::answer::{ApiError, Json};
use crate::http::body::Object;
use crate::http::extract::SharedNode;
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The path.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/backup", Scope::Here, get(show).post(begin).delete(cancel))
}

async fn begin(
    State(node): State<SharedNode>,
    Administrator(caller): Administrator,
    body: Object,
) -> Result<Json, ApiError> {
    if let Some(key) = body.0.keys().find(|key| *key != "directory") {
        return Err(ApiError::bad_request(format!("{key} is not known; known is directory")));
    }
    let Some(directory) = body.get("directory").and_then(Value::as_str) else {
        return Err(ApiError::bad_request("directory should be a path on the machine of the node"));
    };
    match node.begin_backup(directory, &caller.name).await {
        Ok(job) => Ok(Json(StatusCode::CREATED, to_json(&job))),
        Err(BackupError::Refused(reason)) => Err(ApiError::bad_request(reason)),
        Err(BackupError::Running(directory)) => {
            let reason = format!("another backup runs, into {directory}");
            Err(ApiError::new(StatusCode::CONFLICT, "conflict", reason))
        }
    }
}

async fn show(State(node): State<SharedNode>, _: Administrator) -> Result<Json, ApiError> {
    let job = node.backup().ok_or_else(|| ApiError::missing("no backup since the start"))?;
    Ok(Json::ok(to_json(&job)))
}

async fn cancel(State(node): State<SharedNode>, _: Administrator) -> Result<StatusCode, ApiError> {
    match node.cancel_backup() {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::new(StatusCode::CONFLICT, "conflict", "no backup runs")),
    }
}

fn to_json(job: &BackupJob) -> Value {
    let (state, reason) = match &job.state {
        BackupState::Running => ("running", None),
        BackupState::Finished => ("finished", None),
        BackupState::Cancelled => ("cancelled", None),
        BackupState::Failed(reason) => ("failed", Some(reason)),
    };
    let mut value = json!({
        "directory": job.directory,
        "user": job.user,
        "state": state,
        "started_ms": job.started_ms,
        "ended_ms": job.ended_ms,
        "vhosts_elsewhere": job.vhosts_elsewhere,
        "vhosts_total": job.vhosts_total,
        "vhosts": job.vhosts.iter().map(BackupVhost::to_json).collect::<Vec<_>>(),
        "files_linked": job.files_linked,
        "bytes_linked": job.bytes_linked,
        "bytes_copied": job.bytes_copied,
    });
    if let Some(reason) = reason {
        value["reason"] = json!(reason);
    }
    value
}

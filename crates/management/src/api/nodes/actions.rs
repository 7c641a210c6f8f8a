//! `/api/nodes/{name}/actions`: a node is stopped, started and emptied, closes its doors, joins a cluster, and goes on
//! without the others of one. Leveret's own.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::Value;
use server::limits::JSON_DEPTH_MAX;
use server::requests::{LifecycleAction, LifecycleError};

use crate::http::access::Administrator;
use crate::http::answer::ApiError;
use crate::http::extract::{Body, Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::json::bounded;
use crate::limits::BODY_VALUES_MAX;

/// The path.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/nodes/{name}/actions", Scope::Node("name"), post(act))
}

async fn act(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
    Body(body): Body,
) -> Result<StatusCode, ApiError> {
    if name != node.snapshot().name {
        return Err(ApiError::not_found());
    }
    answer(node.act(action(&body)?).await)
}

/// The answer to an action, after it.
///
/// # Errors
/// The reason why it was not done.
pub(crate) fn answer(done: Result<(), LifecycleError>) -> Result<StatusCode, ApiError> {
    match done {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(LifecycleError::MustBeStopped) => {
            let reason = "the rabbit app must be stopped for that";
            Err(ApiError::new(StatusCode::CONFLICT, "conflict", reason))
        }
        Err(LifecycleError::Refused(reason)) => {
            Err(ApiError::new(StatusCode::CONFLICT, "conflict", reason))
        }
        Err(LifecycleError::Failed(reason)) => {
            Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", reason))
        }
    }
}

/// The action that a body names.
///
/// # Errors
/// If there is none.
pub(crate) fn action(body: &[u8]) -> Result<LifecycleAction, ApiError> {
    let body = bounded::read(body, BODY_VALUES_MAX, JSON_DEPTH_MAX)
        .map_err(|e| e.refused("failed_to_parse_json"))?;
    match body.get("action").and_then(Value::as_str) {
        Some("stop") => Ok(LifecycleAction::Stop),
        Some("stop_app") => Ok(LifecycleAction::StopApp),
        Some("start_app") => Ok(LifecycleAction::StartApp),
        Some("reset") => Ok(LifecycleAction::Reset),
        Some("force_reset") => Ok(LifecycleAction::ForceReset),
        Some("suspend_listeners") => Ok(LifecycleAction::SuspendListeners),
        Some("resume_listeners") => Ok(LifecycleAction::ResumeListeners),
        Some("drain") => Ok(LifecycleAction::Drain),
        Some("revive") => Ok(LifecycleAction::Revive),
        Some("join_cluster") => match body.get("node").and_then(Value::as_str) {
            Some(node) => Ok(LifecycleAction::JoinCluster(node.to_owned())),
            None => Err(ApiError::bad_request("node must name a node of the cluster")),
        },
        Some("stand_alone") => Ok(LifecycleAction::StandAlone),
        _ => Err(ApiError::bad_request(
            "action must be stop, stop_app, start_app, reset, force_reset, suspend_listeners, resume_listeners, drain, \
             revive, join_cluster or stand_alone",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_actions_are_parsed_by_name() {
        assert_eq!(action(br#"{"action": "reset"}"#).unwrap(), LifecycleAction::Reset);
        assert_eq!(action(br#"{"action": "stop_app"}"#).unwrap(), LifecycleAction::StopApp);
        let join = action(br#"{"action": "join_cluster", "node": "a@h"}"#).unwrap();
        assert_eq!(join, LifecycleAction::JoinCluster("a@h".to_owned()));
        for wrong in [
            r#"{"action": "join_cluster"}"#,
            "",
            "[]",
            "{}",
            r#"{"action": 1}"#,
            r#"{"action": "explode"}"#,
        ] {
            assert!(action(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}

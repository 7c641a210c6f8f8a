//! `/api/vhosts`: the vhosts with what is in them.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::{Value, json};

use super::{Name, Shared};
use crate::access::{Administrator, Management};
use crate::answer::{ApiError, Json};
use crate::snapshot::VhostTotals;

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/api/vhosts", get(list)).route("/api/vhosts/{name}", get(show))
}

/// Those that the user may enter; a monitor sees all.
async fn list(State(node): State<Shared>, Management(caller): Management) -> Json {
    let name = node.snapshot().name;
    let seen = node.vhost_names().into_iter().filter(|vhost| caller.sees(vhost));
    // One that has gone since is not shown.
    let totals = seen.filter_map(|vhost| node.vhost_totals(&vhost, None));
    Json::ok(totals.map(|totals| vhost(&name, &totals)).collect())
}

async fn show(
    State(node): State<Shared>,
    _: Administrator,
    Name(name): Name,
) -> Result<Json, ApiError> {
    let totals = node.vhost_totals(&name, None).ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(vhost(&node.snapshot().name, &totals)))
}

fn vhost(node: &str, totals: &VhostTotals) -> Value {
    json!({
        "name": totals.name,
        "description": "",
        "tags": [],
        "default_queue_type": "classic",
        "metadata": {"description": "", "tags": [], "default_queue_type": "classic"},
        "protected_from_deletion": false,
        "tracing": false,
        "cluster_state": {node: "running"},
        "messages": totals.messages,
        "messages_ready": totals.messages_ready,
        "messages_unacknowledged": totals.messages_unacknowledged,
        "message_stats": message_stats(&[totals]),
    })
}

/// What has happened to messages in some vhosts since the start.
pub(super) fn message_stats(vhosts: &[&VhostTotals]) -> Value {
    let sum = |count: fn(&VhostTotals) -> u64| vhosts.iter().map(|v| count(v)).sum::<u64>();
    json!({
        "publish": sum(|v| v.counters.published),
        "confirm": sum(|v| v.counters.confirmed),
        "return_unroutable": sum(|v| v.counters.returned_unroutable),
        "drop_unroutable": sum(|v| v.counters.dropped_unroutable),
    })
}

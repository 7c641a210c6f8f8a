//! `/api/cluster-name`: what the cluster is called.

use axum::extract::State;
use serde_json::json;

use super::Shared;
use crate::answer::Json;

pub(super) async fn show(State(node): State<Shared>) -> Json {
    Json::ok(json!({"name": node.snapshot().cluster_name}))
}

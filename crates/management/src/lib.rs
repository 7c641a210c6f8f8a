//! What the broker tells over HTTP.
//!
//! It asks the node for a snapshot, which is taken under the vhosts' locks, and formats it without
//! them. It knows nothing of frames, files or tasks.
//!
//! - `/metrics`: Prometheus, sums over all queues
//! - `/metrics/per-object`: Prometheus, every queue for itself

mod metrics;
mod snapshot;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;

pub use metrics::Detail;
pub use snapshot::{NodeSnapshot, QueueSnapshot, VhostSnapshot};

/// The content type of Prometheus' text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The node, as far as HTTP needs it.
pub trait Node: Send + Sync {
    /// What is the case now.
    fn snapshot(&self) -> NodeSnapshot;
}

/// Answers HTTP requests about `node`.
pub fn router(node: Arc<dyn Node>) -> Router {
    Router::new()
        .route("/metrics", get(|node| prometheus(node, Detail::Totals)))
        .route("/metrics/per-object", get(|node| prometheus(node, Detail::PerQueue)))
        .with_state(node)
}

async fn prometheus(State(node): State<Arc<dyn Node>>, detail: Detail) -> impl IntoResponse {
    ([(CONTENT_TYPE, PROMETHEUS)], metrics::text(&node.snapshot(), detail))
}

//! What the broker tells over HTTP.
//!
//! It asks the node for snapshots, which are copied under the vhosts' locks, and formats them without
//! these. It knows nothing of frames, files or tasks.
//!
//! - `/` and the files of the web page: without login
//! - `/metrics` and what is below it: Prometheus' format; names only with a login
//! - `/api`: RabbitMQ's management API; a request passes `edge`, its route and `access`, and only
//!   then one of the files of `api`, which has one for each resource

mod api;
mod history;
mod http;
mod json;
pub mod limits;
mod metrics;
mod node;
mod snapshot;
mod stopped_router;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};

use crate::limits::BODY_BYTES_MAX;
use crate::metrics::Audience;

use crate::http::{access, answer, middleware, web};

pub use crate::http::access::{Caller, ClientStanding, Credentials, LoginRefused};
pub use history::{SharedHistory, Taken, Taking, VhostTaken};
pub use json::limits::{limits_from_json, limits_to_json};
pub use json::policy::{PolicyProblem, policy_from_json, policy_to_json};
pub use json::table::table as table_to_json;
pub use json::vhost::{tags_from_json, vhost_metadata_from_json, vhost_metadata_to_json};
pub use node::message_filter::MessageFilter;
pub use node::message_id::{MessageId, NoMessageId};
pub use node::*;
pub use snapshot::client::{
    CertificateDetails, ChannelDetails, ClientDescription, ClientOf, ClientPid, ConnectionDetails,
    ConnectionState, ConsumerDetails, TlsDetails, Traffic, connection_name,
};
pub use snapshot::node::{Identity, Listener, NodeSnapshot, ProcessSnapshot, VhostTotals};
pub use snapshot::queue::QueueDetails;
pub use snapshot::scrape::{ConnectionScrape, Scrape, Scraping, VhostScrape};
pub use snapshot::topology::{BindingDetails, BindingsOf, ExchangeDetails};
pub use stopped_router::{StoppedNode, stopped_router};

/// The version of RabbitMQ that Leveret is like, unless the configuration says another.
pub const RABBITMQ_VERSION: &str = "4.3.6";

/// Answers HTTP requests about `node`; it must be served with the `SocketAddr` of each client.
pub fn router(node: Arc<dyn Node>) -> Router {
    let api = api::routes().route_layer(from_fn_with_state(Arc::clone(&node), access::guard));
    let routes = Router::new()
        .merge(metrics::routes(&node, Audience::Monitors))
        .merge(api)
        .merge(api::open_routes())
        .merge(web::routes())
        // Behind the guard: as in RabbitMQ, neither needs a login.
        .method_not_allowed_fallback(answer::wrong_method)
        .fallback(answer::no_such_path)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(node);
    // Around the routes, not on them: what comes in may change its path.
    Router::new().fallback_service(routes).layer(from_fn(middleware::pass))
}

/// Answers requests for metrics only: for a listener that nothing else is reached through.
pub fn metrics_router(node: Arc<dyn Node>) -> Router {
    let routes =
        metrics::routes(&node, Audience::Everybody).fallback(answer::no_such_path).with_state(node);
    Router::new().fallback_service(routes).layer(from_fn(middleware::pass))
}

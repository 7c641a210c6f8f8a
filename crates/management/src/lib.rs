//! The HTTP side of the broker: RabbitMQ's management API, Prometheus metrics and the web page.
//!
//! Handlers ask the node for snapshots, which are copied under the vhosts' locks and formatted without them.
//!
//! - `/` and the files of the web page need no login.
//! - `/metrics` and the paths below it answer in Prometheus' format; names need a login.
//! - `/api` is RabbitMQ's management API. A request passes `http::middleware`, its route and `http::access`, and
//!   only then a handler in `api`, which has one file or folder per resource.

mod api;
mod findings;
mod http;
mod json;
pub mod limits;
mod memory;
mod metrics;
mod router;
mod stopped_router;

use router::{metrics_router, peer_router};
use server::HttpServices;
use stopped_router::stopped_router;

pub use api::queues::properties::{QUEUE_DECLARATION, QUEUE_STATE, QueueProperty};
pub use router::router;

/// The handlers of requests to a node.
pub const SERVICES: HttpServices = HttpServices {
    clients: router,
    peers: peer_router,
    metrics: metrics_router,
    stopped: stopped_router,
};

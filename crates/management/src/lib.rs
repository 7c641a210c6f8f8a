//! The HTTP side of the broker: RabbitMQ's management API, Prometheus metrics and the web page.
//!
//! Handlers ask the node for snapshots, which are copied under the vhosts' locks and formatted without them. The
//! crate knows nothing of frames, files or tasks.
//!
//! - `/` and the files of the web page need no login.
//! - `/metrics` and the paths below it answer in Prometheus' format; names need a login.
//! - `/api` is RabbitMQ's management API. A request passes `http::middleware`, its route and `http::access`, and
//!   only then a handler in `api`, which has one file or folder per resource.

mod api;
mod findings;
mod history;
mod http;
mod json;
pub mod limits;
mod metrics;
mod node;
mod router;
mod snapshot;
mod stopped_router;

pub use api::queues::properties::{QUEUE_DECLARATION, QUEUE_STATE, QueueProperty};
pub use api::vhosts::barrier::{barrier_index, barrier_request};
pub use api::vhosts::leader::{leader_request, names_leader};
pub use history::{Sample, Sampling, SharedHistory, VhostSample};
pub use http::access::ClientStanding;
pub use http::answer::gave_way;
pub use http::budget::HttpBudget;
pub use http::forward::{json_of, reason_of, request_of_node};
pub use json::base64_text::bytes_from_base64;
pub use json::bounded::json_depth;
pub use json::import_preview::add_preview;
pub use json::limits::{limits_from_json, limits_to_json};
pub use json::policy::{PolicyError, policy_from_json, policy_to_json};
pub use json::table::table_to_json;
pub use json::vhost::{
    REPLICAS_MAX, check_labels, replicas_from_json, tags_from_json, too_many_tags,
    vhost_metadata_from_json, vhost_metadata_to_json,
};
pub use limits::{
    BODY_BYTES_MAX, CLOCKS_DIFFER_MS, GLOBAL_PARAMETER_BYTES_MAX, GLOBAL_PARAMETERS_BYTES_MAX,
    JSON_DEPTH_MAX, LOCAL_BODY_BYTES_MAX, USER_TAGS_MAX,
};
pub use node::*;
pub use router::{metrics_router, peer_router, router};
pub use snapshot::client::{
    CertificateDetails, ChannelSnapshot, ClientDescription, ClientOf, ClientPid,
    ConnectionSnapshot, ConnectionState, ConsumerSnapshot, TlsDetails, Traffic, connection_name,
};
pub use snapshot::cluster::{ClusterSnapshot, PeerFacts, PeerLink, PeerSnapshot};
pub use snapshot::condition::{
    ClockStep, ConnectionRefusal, NodeCondition, RefusedConnections, RefusedLogins,
};
pub use snapshot::logins::{LoginAttempts, Protocol};
pub use snapshot::node::{
    Identity, IoTotal, IoTotals, Listener, MemoryWatermark, NodeSnapshot, ProcessSnapshot,
    RABBITMQ_VERSION,
};
pub use snapshot::queue::{QueueKey, QueueSnapshot, QueueView, QueueViews};
pub use snapshot::queue_fields::{
    PageColumn, PageGroup, QUEUE_FIELDS, QueueField, QueueGroup, Unit,
};
pub use snapshot::replication::{
    RebuildSnapshot, ReplicaGroup, ReplicaSnapshot, ReplicationSnapshot, ShipmentSnapshot,
};
pub use snapshot::scrape::{ConnectionScrape, Scrape, VhostScrape};
pub use snapshot::topology::{BindingFilter, BindingSnapshot, ExchangeSnapshot};
pub use snapshot::vhost::VhostTotals;
pub use stopped_router::{StoppedNode, stopped_router};

//! The handlers of HTTP, which lie above the node.

use std::fmt;
use std::sync::Arc;

use axum::Router;

use crate::node::Node;
use crate::start::stopped_node::StoppedNode;

/// Makes the handlers of requests to a node. The program passes it to the process of the node, whose listeners and links
/// then serve HTTP without knowing what is answered.
#[derive(Clone, Copy)]
pub struct HttpServices {
    /// For clients of the API and the web page, and scrapers on the same listener.
    pub clients: fn(Arc<Node>) -> Router,
    /// For the other nodes of the cluster. Whoever is served may act as any user.
    pub peers: fn(Arc<Node>) -> Router,
    /// For scrapers of metrics, on a listener of their own.
    pub metrics: fn(Arc<Node>) -> Router,
    /// For clients of a stopped node.
    pub stopped: fn(Arc<StoppedNode>) -> Router,
}

impl fmt::Debug for HttpServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServices").finish_non_exhaustive()
    }
}

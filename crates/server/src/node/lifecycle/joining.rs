//! A node that finds a cluster to join while it runs.

use std::sync::Arc;

use crate::cluster::joining::nodes_at_start::seek_while_unfounded;
use crate::node::Node;
use crate::node::lifecycle::ExitReason;

/// Lets a node that has not met all nodes of its configuration join the cluster that they have, once it finds one: the
/// node starts anew.
pub(crate) async fn watch(node: Arc<Node>) {
    let Some(links) = node.cluster.clone() else { return };
    let stopping = node.lifecycle.stopping.subscribe();
    let data_dir = node.disk.data_dir.clone();
    let shutdown = Arc::downgrade(&node);
    drop(node);
    if seek_while_unfounded(links, &data_dir, stopping).await
        && let Some(node) = shutdown.upgrade()
    {
        tracing::warn!("the other nodes have a cluster already: this node starts anew to join it");
        node.lifecycle.shutdown.request(ExitReason::Restart);
    }
}

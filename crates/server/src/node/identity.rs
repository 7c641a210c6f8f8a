//! The identity of a node: its name, its cluster, and the product it presents itself as.

use crate::config::Config;
use crate::snapshot::node::Identity;

/// The identity of a node.
#[derive(Debug)]
pub(crate) struct NodeIdentity {
    /// Name of the node, in RabbitMQ's form `NAME@HOST`.
    pub(crate) name: String,
    /// Product name and version reported to clients.
    pub(crate) product: Identity,
    /// Name of the cluster, if no global parameter sets one.
    pub(crate) default_cluster_name: String,
    /// Nodes that the cluster is to have.
    pub(crate) target_cluster_size: usize,
}

impl NodeIdentity {
    /// The configured identity; the host's name completes it.
    pub(crate) fn new(config: &Config) -> Self {
        let name = config.full_node_name();
        let default_cluster_name = config.cluster_name.clone().unwrap_or_else(|| name.clone());
        Self {
            name,
            product: config.identity.clone(),
            default_cluster_name,
            target_cluster_size: config.cluster.discovery.target_size(),
        }
    }
}

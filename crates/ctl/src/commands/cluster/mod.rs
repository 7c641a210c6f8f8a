//! Commands about the cluster, its nodes and replicas.

pub(super) mod cluster_status;
pub(super) mod leadership;
pub(super) mod members;
pub(super) mod membership;
pub(super) mod quorum_queue;
pub(super) mod replicas;

//! The leads of the vhosts of a cluster, and their transfer to other nodes.

use crate::requests::change::{ChangeError, ChangeFuture};

/// Transfers of leads.
pub trait Leadership {
    /// Transfers the lead of a vhost from this node to `to`, or to the node that is most up to date. Completes with the
    /// name of the node that leads then.
    fn transfer_leader(
        &self,
        vhost: &str,
        to: Option<&str>,
    ) -> ChangeFuture<'_, Result<String, ChangeError>>;

    /// Waits until a majority has an entry of the log behind everything that the vhost, which this node leads, had confirmed
    /// before. Completes with the index of the entry.
    fn barrier(&self, vhost: &str) -> ChangeFuture<'_, Result<u64, ChangeError>>;

    /// Transfers leads of these vhosts from this node, one at a time, until it has no more than its share of them. Completes
    /// with the vhosts that have another leader now.
    fn rebalance_leaders(&self, vhosts: Vec<String>) -> ChangeFuture<'_, Vec<String>>;
}

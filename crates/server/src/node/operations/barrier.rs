//! Barriers: what a vhost that this node leads has confirmed.

use crate::node::Node;
use crate::peers::barriers::barrier_here;
use crate::requests::ChangeError;

impl Node {
    /// Waits until a majority has an entry of the log behind everything that the vhost, which this node leads, had confirmed
    /// before. Completes with the index of the entry.
    pub async fn barrier(&self, vhost: &str) -> Result<u64, ChangeError> {
        let handle = self.vhosts.get(vhost).ok_or(ChangeError::NoSuchVhost)?;
        let Some(replication) = &self.replication else {
            let text = "this node is not one of a cluster: it alone has all its vhosts";
            return Err(ChangeError::Invalid(text.to_owned()));
        };
        let index = barrier_here(&replication.replicator, &handle).await;
        index.map(|index| index.0).ok_or_else(|| handle.not_leading().into())
    }
}

//! Transfers of leads to other nodes.

use crate::http::barriers::barrier_here;
use crate::node::Node;
use crate::requests::{ChangeError, ChangeFuture, Leadership};

impl Leadership for Node {
    fn transfer_leader(
        &self,
        vhost: &str,
        to: Option<&str>,
    ) -> ChangeFuture<'_, Result<String, ChangeError>> {
        let (vhost, to) = (vhost.to_owned(), to.map(str::to_owned));
        Box::pin(async move { self.transfer_lead(&vhost, to.as_deref()).await })
    }

    fn barrier(&self, vhost: &str) -> ChangeFuture<'_, Result<u64, ChangeError>> {
        let vhost = vhost.to_owned();
        Box::pin(async move {
            let handle = self.vhosts.get(&vhost).ok_or(ChangeError::NoSuchVhost)?;
            let Some(replication) = &self.replication else {
                let text = "this node is not one of a cluster: it alone has all its vhosts";
                return Err(ChangeError::Invalid(text.to_owned()));
            };
            let index = barrier_here(&replication.replicator, &handle).await;
            index.map(|index| index.0).ok_or_else(|| handle.not_leading().into())
        })
    }

    fn rebalance_leaders(&self, vhosts: Vec<String>) -> ChangeFuture<'_, Vec<String>> {
        Box::pin(async move { self.rebalance_leads(&vhosts).await })
    }
}

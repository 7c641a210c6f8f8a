//! Transfers of leads to other nodes.

use management::{ChangeError, ChangeFuture, Leadership};

use crate::node::Node;

impl Leadership for Node {
    fn transfer_leader(
        &self,
        vhost: &str,
        to: Option<&str>,
    ) -> ChangeFuture<'_, Result<String, ChangeError>> {
        let (vhost, to) = (vhost.to_owned(), to.map(str::to_owned));
        Box::pin(async move { self.transfer_lead(&vhost, to.as_deref()).await })
    }

    fn rebalance_leaders(&self) -> ChangeFuture<'_, Vec<String>> {
        Box::pin(self.rebalance_leads())
    }
}

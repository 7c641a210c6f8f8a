//! What is in queues, for those who may read from them.

use broker::{BrowseCursor, ExpiryCursor};
use management::{BrowseBatch, Caller, ExpiryBatch, LookRefused, Looked};

use crate::limits::BROWSED_PER_LOCK;
use crate::node::Node;
use crate::vhost::BrowseProblem;

impl management::Browse for Node {
    fn browse(
        &self,
        caller: &Caller,
        vhost: &str,
        queue: &str,
        from: BrowseCursor,
        count: usize,
    ) -> Looked<'_, BrowseBatch> {
        let handle = self.vhosts.get(vhost);
        let access = self.access(caller, vhost);
        let queue = queue.to_owned();
        Box::pin(async move {
            let handle = handle.ok_or(LookRefused::NoSuchQueue)?;
            let state = from.state();
            let known = handle.read(|v, _| {
                let id = v.queue_id(&queue)?;
                Some((id, v.queue_of(id)?.number, v.count_of(id, state)?))
            });
            let (id, number, total) = known.ok_or(LookRefused::NoSuchQueue)?;
            let access = access.ok_or(LookRefused::NoPermissions)?;
            let may = handle.read(|v, _| v.check_browse(id, &access));
            may.map_err(LookRefused::Refused)?;
            let batch = handle.browse(id, from, count).await.map_err(|problem| match problem {
                BrowseProblem::NoQueue => LookRefused::NoSuchQueue,
                BrowseProblem::Disk(problem) => LookRefused::Unreadable(problem),
            })?;
            let (messages, next, now) = (batch.messages, batch.next, batch.now);
            Ok(BrowseBatch { queue: number, messages, next, total, now })
        })
    }

    fn expiry(&self, vhost: &str, queue: &str, from: ExpiryCursor) -> Looked<'_, ExpiryBatch> {
        let handle = self.vhosts.get(vhost);
        let queue = queue.to_owned();
        Box::pin(async move {
            // Others have their turn between two slices.
            tokio::task::yield_now().await;
            let handle = handle.ok_or(LookRefused::NoSuchQueue)?;
            let batch = handle.read_fair(|vhost, now| {
                let queue = vhost.queue(&queue)?;
                let slice = queue.expiry(from, BROWSED_PER_LOCK);
                let message_ttl_ms = queue.settings.message_ttl_ms;
                Some(ExpiryBatch { slice, message_ttl_ms, now })
            });
            batch.ok_or(LookRefused::NoSuchQueue)
        })
    }
}

//! Messages: browsed, published and taken on channels, and redriven.

use std::collections::BTreeMap;
use std::sync::Arc;

use broker::access::Access;
use broker::{BrowseCursor, ExpiryCursor, Name};

use crate::auth::ctl_token::full_access;
use crate::limits::{BROWSED_PER_LOCK, DEATHS_PER_LOCK};
use crate::node::Node;
use crate::redrive::dry_run;
use crate::requests::{
    BrowseBatch, BrowseError, BrowseFuture, Caller, ChangeFuture, Channel, ChannelError,
    DeathFilter, DeathsBatch, DeathsBefore, ExpiryBatch, Messages, Peers, QueuePath, RedriveDryRun,
    RedriveError, RedriveJob, RedriveRequest,
};
use crate::vhost::BrowseProblem;
use crate::vhost::internal_channel::InternalChannel;

impl Messages for Node {
    fn browse(
        &self,
        caller: &Caller,
        QueuePath { vhost, queue }: QueuePath<'_>,
        from: BrowseCursor,
        count: usize,
    ) -> BrowseFuture<'_, BrowseBatch> {
        let handle = self.vhosts.get(vhost);
        let access = self.access(caller, vhost);
        let queue = queue.to_owned();
        Box::pin(async move {
            // Lets other clients use the vhost between two slices.
            tokio::task::yield_now().await;
            let handle = handle.ok_or(BrowseError::NoSuchQueue)?;
            let state = from.state();
            let known = handle.read(|v, _| {
                let id = v.queue_id(&queue)?;
                Some((id, v.queue_of(id)?.number, v.count_of(id, state)?))
            });
            let (id, number, total) = known.ok_or(BrowseError::NoSuchQueue)?;
            let access = access.ok_or(BrowseError::NoPermissions)?;
            let may = handle.read(|v, _| v.check_browse(id, &access));
            may.map_err(BrowseError::Refused)?;
            let batch = handle.browse(id, from, count).await.map_err(|problem| match problem {
                BrowseProblem::NoQueue => BrowseError::NoSuchQueue,
                BrowseProblem::Disk(problem) => BrowseError::Unreadable(problem),
            })?;
            let (messages, next, now) = (batch.messages, batch.next, batch.now);
            Ok(BrowseBatch { queue: number, messages, next, total, now })
        })
    }

    fn expiry(
        &self,
        QueuePath { vhost, queue }: QueuePath<'_>,
        from: ExpiryCursor,
    ) -> BrowseFuture<'_, ExpiryBatch> {
        let handle = self.vhosts.get(vhost);
        let queue = queue.to_owned();
        Box::pin(async move {
            // Lets other clients use the vhost between two slices.
            tokio::task::yield_now().await;
            let handle = handle.ok_or(BrowseError::NoSuchQueue)?;
            let batch = handle.read_fair(|vhost, now| {
                let queue = vhost.queue(&queue)?;
                let slice = queue.expiry(from, BROWSED_PER_LOCK);
                let message_ttl_ms = queue.settings.message_ttl_ms;
                Some(ExpiryBatch { slice, message_ttl_ms, now })
            });
            batch.ok_or(BrowseError::NoSuchQueue)
        })
    }

    fn recorded_deaths<'a>(
        &'a self,
        caller: &Caller,
        vhost: &str,
        filter: &'a DeathFilter,
        wanted: DeathsBefore,
    ) -> BrowseFuture<'a, DeathsBatch> {
        let handle = self.vhosts.get(vhost);
        let access = self.access(caller, vhost);
        let vhost = vhost.to_owned();
        Box::pin(async move {
            // Lets other clients use the vhost between two slices.
            tokio::task::yield_now().await;
            let handle = handle.ok_or(BrowseError::NoSuchQueue)?;
            let access = access.ok_or(BrowseError::NoPermissions)?;
            let (read, options, now) = handle.read_fair(|vhost, now| {
                let read = vhost.recorded_deaths(now, wanted.before, DEATHS_PER_LOCK);
                (read, vhost.options(), now)
            });
            let uptime_ms = u64::try_from(self.lifecycle.started.elapsed().as_millis());
            let started_ms = now.wall_ms().saturating_sub(uptime_ms.unwrap_or(u64::MAX));
            let mut batch = DeathsBatch {
                deaths: Vec::new(),
                hidden: 0,
                before: read.before,
                is_on: options.dead_letter_history.entries_max > 0,
                forgotten: read.forgotten,
                kept_since_ms: read.forgotten_until_ms.unwrap_or(started_ms),
            };
            let mut may_see: BTreeMap<Name, bool> = BTreeMap::new();
            for death in read.deaths.into_iter().filter(|death| filter.matches(death)) {
                if batch.deaths.len() == wanted.count {
                    batch.before = batch.deaths.last().map(|death| death.number);
                    break;
                }
                let queue = &death.circumstances.queue;
                let is_visible = may_see.get(queue).copied().unwrap_or_else(|| {
                    let may_see_queue = access.may_read_queue(&vhost, queue);
                    may_see.insert(Arc::clone(queue), may_see_queue);
                    may_see_queue
                });
                if is_visible {
                    batch.deaths.push(death);
                } else {
                    batch.hidden += 1;
                }
            }
            Ok(batch)
        })
    }

    fn channel(
        &self,
        caller: &Caller,
        vhost: &str,
    ) -> ChangeFuture<'_, Result<Box<dyn Channel>, ChannelError>> {
        let handle = self.vhosts.get(vhost);
        let access = self.access(caller, vhost);
        Box::pin(async move {
            let handle = handle.ok_or(ChannelError::NoSuchVhost)?;
            let access = access.ok_or(ChannelError::NoPermissions)?;
            let channel = InternalChannel::open(Arc::clone(&handle), access).await;
            match channel {
                Ok(channel) => Ok(Box::new(channel) as _),
                Err(_) if handle.is_served_here() => Err(ChannelError::NoSuchVhost),
                Err(_) => Err(ChannelError::NotLeading),
            }
        })
    }

    fn message_size_max(&self) -> u64 {
        self.sessions.options(false).message_bytes_max
    }

    fn redrive(
        &self,
        caller: &Caller,
        QueuePath { vhost, queue }: QueuePath<'_>,
        request: RedriveRequest,
    ) -> ChangeFuture<'_, Result<RedriveJob, RedriveError>> {
        let (handle, access) = (self.vhosts.get(vhost), self.access(caller, vhost));
        let (queue, is_local) = (queue.to_owned(), caller.is_local_administrator);
        Box::pin(async move {
            let handle = handle.ok_or(RedriveError::NoSuchVhost)?;
            let access = access.ok_or(RedriveError::NoPermissions)?;
            let channel =
                InternalChannel::open(handle, access).await.map_err(RedriveError::Refused)?;
            let redrives = Arc::clone(&self.redrives);
            redrives.begin(channel, &queue, request, (is_local, self.clock)).await
        })
    }

    fn redrive_dry_run(
        &self,
        caller: &Caller,
        QueuePath { vhost, queue }: QueuePath<'_>,
        request: RedriveRequest,
    ) -> ChangeFuture<'_, Result<RedriveDryRun, RedriveError>> {
        let (handle, access) = (self.vhosts.get(vhost), self.access(caller, vhost));
        let queue = queue.to_owned();
        Box::pin(async move {
            let handle = handle.ok_or(RedriveError::NoSuchVhost)?;
            let access = access.ok_or(RedriveError::NoPermissions)?;
            dry_run(&handle, &queue, request, &access).await
        })
    }

    fn redrives(&self) -> Vec<RedriveJob> {
        self.redrives.all()
    }

    fn vhost_with_unknown_redrives(&self) -> Option<String> {
        let mut vhosts = self.vhosts.all().into_iter().filter(|handle| handle.is_replicated());
        let connected = self.connected_peers();
        let unknown = vhosts.find(|handle| match handle.leader() {
            Some(_) if handle.is_led_here() => !self.redrives.has_taken_over(handle),
            // A leader that cannot be asked is no leader for long.
            Some(leader) => !connected.iter().any(|peer| **peer == *leader),
            None => true,
        })?;
        Some(unknown.name().to_owned())
    }

    fn cancel_redrive(&self, id: u64) -> ChangeFuture<'_, Result<bool, RedriveError>> {
        Box::pin(self.redrives.cancel(id, self.clock))
    }
}

impl Node {
    /// The permissions of an HTTP user in a vhost.
    pub(super) fn access(&self, caller: &Caller, vhost: &str) -> Option<Arc<Access>> {
        if caller.is_local_administrator {
            return full_access().ok();
        }
        self.auth.user(&caller.name)?.access(vhost)
    }
}

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
    BrowseBatch, BrowseError, Caller, ChannelError, DeathFilter, DeathsBatch, DeathsBefore,
    ExpiryBatch, QueuePath, RedriveDryRun, RedriveError, RedriveJob, RedriveRequest,
};
use crate::vhost::BrowseProblem;
use crate::vhost::internal_channel::InternalChannel;

impl Node {
    /// Reads up to `count` messages of a queue, starting at a cursor, if the caller may read from the
    /// queue. One call reads no more than one page.
    pub async fn browse(
        &self,
        caller: &Caller,
        QueuePath { vhost, queue }: QueuePath<'_>,
        from: BrowseCursor,
        count: usize,
    ) -> Result<BrowseBatch, BrowseError> {
        let handle = self.vhosts.get(vhost);
        let access = self.access(caller, vhost);
        // Lets other clients use the vhost between two slices.
        tokio::task::yield_now().await;
        let handle = handle.ok_or(BrowseError::NoSuchQueue)?;
        let state = from.state();
        let known = handle.read(|v, _| {
            let id = v.queue_id(queue)?;
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
    }

    /// Reads the deadlines of some messages that wait in a queue, starting at a cursor.
    pub async fn expiry(
        &self,
        QueuePath { vhost, queue }: QueuePath<'_>,
        from: ExpiryCursor,
    ) -> Result<ExpiryBatch, BrowseError> {
        let handle = self.vhosts.get(vhost);
        // Lets other clients use the vhost between two slices.
        tokio::task::yield_now().await;
        let handle = handle.ok_or(BrowseError::NoSuchQueue)?;
        let batch = handle.read_fair(|vhost, now| {
            let queue = vhost.queue(queue)?;
            let slice = queue.expiry(from, BROWSED_PER_LOCK);
            let message_ttl_ms = queue.settings.message_ttl_ms;
            Some(ExpiryBatch { slice, message_ttl_ms, now })
        });
        batch.ok_or(BrowseError::NoSuchQueue)
    }

    /// Reads a slice of the history of dead letters of a vhost.
    pub async fn recorded_deaths(
        &self,
        caller: &Caller,
        vhost: &str,
        filter: &DeathFilter,
        wanted: DeathsBefore,
    ) -> Result<DeathsBatch, BrowseError> {
        let handle = self.vhosts.get(vhost);
        let access = self.access(caller, vhost);
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
                let may_see_queue = access.may_read_queue(vhost, queue);
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
    }

    /// Opens a channel in `vhost` with the permissions of `caller`. Waits while too much is queued for the
    /// disk.
    pub async fn channel(
        &self,
        caller: &Caller,
        vhost: &str,
    ) -> Result<InternalChannel, ChannelError> {
        let handle = self.vhosts.get(vhost).ok_or(ChannelError::NoSuchVhost)?;
        let access = self.access(caller, vhost).ok_or(ChannelError::NoPermissions)?;
        let channel = InternalChannel::open(Arc::clone(&handle), access).await;
        channel.map_err(|_| match handle.is_served_here() {
            true => ChannelError::NoSuchVhost,
            false => ChannelError::NotLeading,
        })
    }

    /// Maximum size of a message body, in bytes.
    pub fn message_size_max(&self) -> u64 {
        self.sessions.options(false).message_bytes_max
    }

    /// Starts to redrive messages of a queue on behalf of `caller`.
    pub async fn redrive(
        &self,
        caller: &Caller,
        QueuePath { vhost, queue }: QueuePath<'_>,
        request: RedriveRequest,
    ) -> Result<RedriveJob, RedriveError> {
        let handle = self.vhosts.get(vhost).ok_or(RedriveError::NoSuchVhost)?;
        let access = self.access(caller, vhost).ok_or(RedriveError::NoPermissions)?;
        let channel = InternalChannel::open(handle, access).await.map_err(RedriveError::Refused)?;
        let redrives = Arc::clone(&self.redrives);
        redrives.begin(channel, queue, request, (caller.is_local_administrator, self.clock)).await
    }

    /// The effects that [`Self::redrive`] would have now.
    pub async fn redrive_dry_run(
        &self,
        caller: &Caller,
        QueuePath { vhost, queue }: QueuePath<'_>,
        request: RedriveRequest,
    ) -> Result<RedriveDryRun, RedriveError> {
        let handle = self.vhosts.get(vhost).ok_or(RedriveError::NoSuchVhost)?;
        let access = self.access(caller, vhost).ok_or(RedriveError::NoPermissions)?;
        dry_run(&handle, queue, request, &access).await
    }

    /// The running jobs and the last ended ones, newest first.
    pub fn redrives(&self) -> Vec<RedriveJob> {
        self.redrives.all()
    }

    /// A vhost of which this node, or no node, can tell the jobs yet: it has no leader, or this one has just begun to lead.
    pub fn vhost_with_unknown_redrives(&self) -> Option<String> {
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

    /// Cancels a job; moved messages stay moved. False if the job is not running.
    pub async fn cancel_redrive(&self, id: u64) -> Result<bool, RedriveError> {
        self.redrives.cancel(id, self.clock).await
    }

    /// The permissions of an HTTP user in a vhost.
    pub(super) fn access(&self, caller: &Caller, vhost: &str) -> Option<Arc<Access>> {
        if caller.is_local_administrator {
            return full_access().ok();
        }
        self.auth.user(&caller.name)?.access(vhost)
    }
}

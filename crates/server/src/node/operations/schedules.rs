//! Scheduled messages: listed, changed and cancelled for HTTP users.

use std::collections::BTreeMap;
use std::sync::Arc;

use broker::access::Access;
use broker::page::{PageLocation, PageSelection};
use broker::time::Now;
use broker::{
    Message, PageId, ScheduleOperation, ScheduleRequest, ScheduleSelector, ScheduleTarget,
    ScheduledContent, ScheduledCursor, ScheduledMessage, ScheduledPage, Vhost,
};

use crate::limits::{SCHEDULES_CANCELLED_MAX, SCHEDULES_CANCELLED_PER_LOCK};
use crate::node::Node;
use crate::requests::{
    Caller, ScheduleCancelled, ScheduleChanged, ScheduleError, ScheduleQuery, ScheduledBatch,
};
use crate::vhost::{BrowseProblem, VhostHandle};

impl Node {
    /// Up to `count` scheduled messages behind a position, by delivery time, from places that the caller may read.
    ///
    /// # Errors
    /// If the vhost is missing, the caller has no permissions there, or a page of messages cannot be read.
    pub async fn scheduled(
        &self,
        caller: &Caller,
        vhost: &str,
        query: ScheduleQuery,
        behind: Option<ScheduledCursor>,
        count: usize,
    ) -> Result<ScheduledBatch, ScheduleError> {
        let (handle, access) = self.schedules_for(caller, vhost)?;
        // Lets other clients use the vhost between two slices.
        tokio::task::yield_now().await;
        let (page, now) = handle.read_fair(|v, now| {
            (v.scheduled_messages(&query.filter(now), &access, behind, count), now)
        });
        let messages = with_content(&handle, &access, page.messages).await?;
        Ok(ScheduledBatch { page: ScheduledPage { messages, next: page.next }, now })
    }

    /// The scheduled messages of one place that `selector` selects.
    ///
    /// # Errors
    /// If the place is missing, the caller may not read it, or a page of messages cannot be read.
    pub async fn find_scheduled(
        &self,
        caller: &Caller,
        vhost: &str,
        target: ScheduleTarget,
        selector: ScheduleSelector,
    ) -> Result<(Vec<ScheduledMessage>, Now), ScheduleError> {
        let (handle, access) = self.schedules_for(caller, vhost)?;
        let find = |v: &Vhost, now| (v.find_scheduled(&target, &selector, &access), now);
        let (messages, now) = handle.read_fair(find);
        Ok((with_content(&handle, &access, messages?).await?, now))
    }

    /// Changes the scheduled messages of one place that `selector` selects; `operation` is called with the time of
    /// the change. Completes when the change is on disk.
    pub async fn change_scheduled(
        &self,
        caller: &Caller,
        vhost: &str,
        target: ScheduleTarget,
        selector: ScheduleSelector,
        operation: impl FnOnce(Now) -> ScheduleOperation,
    ) -> Result<ScheduleChanged, ScheduleError> {
        let (handle, access) = self.schedules_for(caller, vhost)?;
        handle.caught_up().await;
        let (changed, now) = handle.write(|v, now| {
            let request = ScheduleRequest { target, selector, operation: operation(now) };
            (v.operate_on_schedules(now, &request, &access), now)
        })?;
        let (handles, lsn) = changed?;
        handle.durable_at(lsn).await?;
        Ok(ScheduleChanged { messages: handles.len() as u64, now })
    }

    /// Cancels the scheduled messages that the query selects, a slice at a time. Completes when the cancellations are on
    /// disk; if the future is dropped, the messages of the slices so far are cancelled.
    pub async fn cancel_scheduled(
        &self,
        caller: &Caller,
        vhost: &str,
        query: ScheduleQuery,
    ) -> Result<ScheduleCancelled, ScheduleError> {
        let (handle, access) = self.schedules_for(caller, vhost)?;
        cancel_all(&handle, &access, &query).await
    }

    /// A vhost, and the permissions of an HTTP user in it.
    fn schedules_for(
        &self,
        caller: &Caller,
        vhost: &str,
    ) -> Result<(Arc<VhostHandle>, Arc<Access>), ScheduleError> {
        let handle = self.vhosts.get(vhost).ok_or(ScheduleError::NoSuchVhost)?;
        let access = self.access(caller, vhost).ok_or(ScheduleError::NoPermissions)?;
        Ok((handle, access))
    }
}

/// The messages with their content, read from disk where necessary. Messages that have left meanwhile are left out.
async fn with_content(
    handle: &VhostHandle,
    access: &Access,
    found: Vec<ScheduledMessage<ScheduledContent>>,
) -> Result<Vec<ScheduledMessage>, ScheduleError> {
    let mut read: BTreeMap<(PageId, u64), Message> = BTreeMap::new();
    for (at, wanted) in pages_of(&found) {
        let messages = handle.read_to_browse(at, PageSelection::Listed(wanted)).await;
        let messages = messages.map_err(|problem| match problem {
            BrowseProblem::Disk(reason) => ScheduleError::Unreadable(reason),
            BrowseProblem::NoQueue => unreachable!("a page is read, not a queue"),
        })?;
        let messages = messages.unwrap_or_default().into_iter();
        read.extend(messages.map(|message| ((at.page, message.meta.seq), message.message)));
    }
    let mut messages = Vec::with_capacity(found.len());
    for message in found {
        let content = match &message.message {
            ScheduledContent::Here(content) => Some(content.clone()),
            ScheduledContent::Paged(at) => read
                .remove(&(at.page, message.handle))
                .or_else(|| content_at_hand(handle, access, &message)),
        };
        messages.extend(content.map(|content| message.with(content)));
    }
    Ok(messages)
}

/// The pages of messages, with the numbers of the messages in ascending order.
fn pages_of(messages: &[ScheduledMessage<ScheduledContent>]) -> BTreeMap<PageLocation, Vec<u64>> {
    let mut pages: BTreeMap<PageLocation, Vec<u64>> = BTreeMap::new();
    for message in messages {
        if let ScheduledContent::Paged(at) = message.message {
            pages.entry(at).or_default().push(message.handle);
        }
    }
    pages.values_mut().for_each(|handles| handles.sort_unstable());
    pages
}

/// The content of a message that came back to memory while its page was to be read.
fn content_at_hand(
    handle: &VhostHandle,
    access: &Access,
    message: &ScheduledMessage<ScheduledContent>,
) -> Option<Message> {
    let selector = ScheduleSelector::Handle(message.handle);
    let found = handle.read_fair(|v, _| v.find_scheduled(&message.target, &selector, access));
    match found.ok()?.pop()?.message {
        ScheduledContent::Here(content) => Some(content),
        ScheduledContent::Paged(_) => None,
    }
}

/// Cancels the messages that a query selects, a slice at a time; the vhost is free between two slices.
async fn cancel_all(
    handle: &VhostHandle,
    access: &Access,
    query: &ScheduleQuery,
) -> Result<ScheduleCancelled, ScheduleError> {
    let mut sum = ScheduleCancelled::default();
    let mut behind = None;
    while sum.cancelled + sum.refused < SCHEDULES_CANCELLED_MAX {
        handle.caught_up().await;
        let (slice, next) = handle.write(|v, now| cancel_slice(v, now, access, query, behind))?;
        sum.cancelled += slice.cancelled;
        sum.refused += slice.refused;
        behind = next;
        if behind.is_none() {
            sum.is_complete = true;
            break;
        }
        tokio::task::yield_now().await;
    }
    let lsn = handle.read(|vhost, _| vhost.last_lsn());
    handle.durable_at(lsn).await?;
    Ok(sum)
}

/// Cancels some messages behind a position. Returns the position of the next ones.
fn cancel_slice(
    vhost: &mut Vhost,
    now: Now,
    access: &Access,
    query: &ScheduleQuery,
    behind: Option<ScheduledCursor>,
) -> (ScheduleCancelled, Option<ScheduledCursor>) {
    let filter = query.filter(now);
    let page = vhost.scheduled_messages(&filter, access, behind, SCHEDULES_CANCELLED_PER_LOCK);
    let mut slice = ScheduleCancelled::default();
    for message in page.messages {
        let request = ScheduleRequest {
            target: message.target,
            selector: ScheduleSelector::Handle(message.handle),
            operation: ScheduleOperation::Cancel,
        };
        match vhost.operate_on_schedules(now, &request, access) {
            // The message may have become ready in this call.
            Ok((handles, _)) => slice.cancelled += handles.len() as u64,
            Err(_) => slice.refused += 1,
        }
    }
    (slice, page.next)
}

//! Browsing of the messages of a queue, including those on disk, without changing the queue.
//!
//! Messages in memory are copied under the lock, a slice at a time. A page is read without the lock,
//! concurrently with the pager, which may write it, read it back or remove it meanwhile: its messages count
//! only as far as they are still in the page afterwards. Otherwise browsing starts again at the same
//! position.

use std::sync::Arc;

use broker::page::{PageLocation, PageOwner, PageSelection, PagedMessage};
use broker::time::Now;
use broker::{BrowseCursor, BrowsedMessage, PageId, QueueId};

use super::VhostHandle;
use crate::limits::{BROWSED_PAGES_MAX, BROWSED_PER_LOCK};

/// Consecutive messages of a queue.
#[derive(Debug)]
pub(crate) struct BrowseBatch {
    /// The messages. The list may be empty although more messages follow.
    pub(crate) messages: Vec<BrowsedMessage>,
    /// The position to continue from; none at the end.
    pub(crate) next: Option<BrowseCursor>,
    /// The time of the copy.
    pub(crate) now: Now,
}

/// Reason why messages cannot be browsed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BrowseProblem {
    /// The queue is gone.
    NoQueue,
    /// The disk refuses, with a sentence for the user.
    Disk(String),
}

impl VhostHandle {
    /// Copies messages of a queue from a cursor on, at most `count` and at most [`BROWSED_PER_LOCK`];
    /// continue at [`BrowseBatch::next`]. At most one page of ready messages is read, and at most
    /// [`BROWSED_PAGES_MAX`] of scheduled ones, whose delivery times may overlap.
    ///
    /// # Errors
    /// If the queue is gone or its page cannot be read.
    pub(crate) async fn browse(
        &self,
        queue: QueueId,
        from: BrowseCursor,
        count: usize,
    ) -> Result<BrowseBatch, BrowseProblem> {
        let count = count.clamp(1, BROWSED_PER_LOCK);
        let mut read: Vec<(PageId, Vec<PagedMessage>)> = Vec::new();
        loop {
            let (browsed, now) =
                self.read_fair(|vhost, now| (vhost.browse(queue, from, &read, count), now));
            let browsed = browsed.ok_or(BrowseProblem::NoQueue)?;
            let is_stuck = browsed.messages.is_empty() && browsed.next == Some(from);
            match browsed.page {
                Some(at) if is_stuck || reads_another(at, read.len()) => {
                    if !reads_another(at, read.len()) {
                        read.clear();
                    }
                    let messages = self.read_to_browse(at, PageSelection::Whole).await?;
                    read.extend(messages.map(|messages| (at.page, messages)));
                }
                _ => {
                    let (messages, next) = (browsed.messages, browsed.next);
                    return Ok(BrowseBatch { messages, next, now });
                }
            }
        }
    }

    /// Reads messages of a page. None if its owner does not have it any more.
    pub(crate) async fn read_to_browse(
        &self,
        at: PageLocation,
        wanted: PageSelection,
    ) -> Result<Option<Vec<PagedMessage>>, BrowseProblem> {
        let _permit = self.browse_permits.acquire().await;
        loop {
            let changed = self.disk.changed();
            let is_kept = self.page_files.has(at.page);
            if is_kept {
                let (page_files, wanted) = (Arc::clone(&self.page_files), wanted.clone());
                let read = move || page_files.read_beside(at.page, wanted);
                let read = tokio::task::spawn_blocking(read).await;
                let read = read.map_err(|error| error.to_string());
                match read.and_then(|read| read.map_err(|error| error.to_string())) {
                    Ok(messages) => return Ok(Some(messages)),
                    Err(problem) if self.has_page(at) && self.page_files.has(at.page) => {
                        return Err(BrowseProblem::Disk(problem));
                    }
                    // The page was removed or overwritten meanwhile.
                    Err(_) => {}
                }
            }
            if !self.has_page(at) {
                return Ok(None);
            }
            if !is_kept {
                // The pager is about to write the page, or reads it back.
                changed.await;
            }
        }
    }

    pub(super) fn has_page(&self, at: PageLocation) -> bool {
        self.read(|vhost, _| vhost.has_page(at))
    }
}

/// True if another page is read before the messages found so far are returned.
fn reads_another(at: PageLocation, read: usize) -> bool {
    match at.owner {
        PageOwner::Ready { .. } => false,
        PageOwner::Scheduled(_) | PageOwner::Exchange(_) => read < BROWSED_PAGES_MAX,
    }
}

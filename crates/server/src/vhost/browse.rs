//! Browsing of the messages of a queue, including those on disk, without changing the queue.
//!
//! Messages in memory are copied under the lock, a slice at a time. A page is read without the lock,
//! concurrently with the pager, which may write it, read it back or remove it meanwhile: its messages count
//! only as far as they are still in the page afterwards. Otherwise browsing starts again at the same
//! position.

use std::sync::Arc;

use broker::page::{PageLocation, PagedMessage};
use broker::time::Now;
use broker::{BrowseCursor, BrowsedMessage, PageId, QueueId};

use super::handle::VhostHandle;
use crate::limits::BROWSED_PER_LOCK;

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
    /// continue at [`BrowseBatch::next`]. At most one page is read.
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
        let mut read: Option<(PageId, Vec<PagedMessage>)> = None;
        loop {
            let of_page = read.as_ref().map(|(page, messages)| (*page, messages.as_slice()));
            let (browsed, now) =
                self.read_fair(|vhost, now| (vhost.browse(queue, from, of_page, count), now));
            let browsed = browsed.ok_or(BrowseProblem::NoQueue)?;
            match browsed.page {
                Some(at) if browsed.messages.is_empty() && browsed.next == Some(from) => {
                    read = self.read_to_browse(at).await?.map(|messages| (at.page, messages));
                }
                _ => {
                    let (messages, next) = (browsed.messages, browsed.next);
                    return Ok(BrowseBatch { messages, next, now });
                }
            }
        }
    }

    /// Reads a page. None if the queue does not have it any more.
    async fn read_to_browse(
        &self,
        at: PageLocation,
    ) -> Result<Option<Vec<PagedMessage>>, BrowseProblem> {
        let _permit = self.browse_permits.acquire().await;
        loop {
            let changed = self.disk.changed();
            let is_kept = self.page_files.has(at.page);
            if is_kept {
                let page_files = Arc::clone(&self.page_files);
                let read =
                    tokio::task::spawn_blocking(move || page_files.read_beside(at.page)).await;
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

    fn has_page(&self, at: PageLocation) -> bool {
        self.read(|vhost, _| vhost.has_page(at))
    }
}

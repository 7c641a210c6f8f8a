//! Looking at the messages of a queue, those on disk among them, without anybody noticing.
//!
//! What is at hand is copied under the lock, a slice at a time. A page is read without it, beside the
//! pager, which may write it, read it back or forget it meanwhile: what was read counts only as far as
//! the queue still has it there. Otherwise the look begins again at the same place.

use std::sync::Arc;

use broker::page::{PageAt, PagedMessage};
use broker::time::Now;
use broker::{BrowseCursor, BrowsedMessage, PageId, QueueId, Vhost};

use super::VhostHandle;
use crate::limits::BROWSED_PER_LOCK;

/// Some messages of a queue, one behind the other.
#[derive(Debug)]
pub(crate) struct BrowseBatch {
    /// The messages; there may be none, and still others behind.
    pub(crate) messages: Vec<BrowsedMessage>,
    /// Where to go on; none at the end.
    pub(crate) next: Option<BrowseCursor>,
    /// When they were so.
    pub(crate) now: Now,
}

/// Why messages cannot be looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BrowseProblem {
    /// The queue is gone.
    NoQueue,
    /// The disk refuses: a sentence for whoever asked.
    Disk(String),
}

impl VhostHandle {
    /// Looks at messages of a queue from a cursor on, at most `count` and never more than are looked at
    /// in one go: go on at [`BrowseBatch::next`]. No more than one page of them is read.
    pub(crate) async fn browse(
        self: &Arc<Self>,
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

    /// Looks at the vhost as one of many times: whoever waits for the lock gets it next.
    pub(crate) fn read_fair<T>(&self, look: impl FnOnce(&Vhost, Now) -> T) -> T {
        let state = self.state.lock();
        let now = self.clock.now();
        let result = look(&state.vhost, now);
        state.end_fair();
        result
    }

    /// Reads a page. None if it is not there any more.
    async fn read_to_browse(
        self: &Arc<Self>,
        at: PageAt,
    ) -> Result<Option<Vec<PagedMessage>>, BrowseProblem> {
        let _turn = self.page_looks.acquire().await;
        loop {
            let written = self.written.notified();
            let is_kept = self.page_files.has(at.page);
            if is_kept {
                let page_files = Arc::clone(&self.page_files);
                let read = tokio::task::spawn_blocking(move || page_files.look(at.page)).await;
                match read.map_err(|error| error.to_string()).flatten() {
                    Ok(messages) => return Ok(Some(messages)),
                    Err(problem) if self.has_page(at) && self.page_files.has(at.page) => {
                        return Err(BrowseProblem::Disk(problem));
                    }
                    Err(_) => {}
                }
            }
            if !self.has_page(at) {
                return Ok(None);
            }
            if !is_kept {
                // The pager has it in hand.
                written.await;
            }
        }
    }

    fn has_page(&self, at: PageAt) -> bool {
        self.read(|vhost, _| vhost.has_page(at))
    }
}

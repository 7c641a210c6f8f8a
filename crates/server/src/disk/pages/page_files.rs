//! Pages of one vhost: files beside its log, and pages in memory that the disk had no room for.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use broker::PageId;
use broker::page::{PageRead, PageSelection, PagedMessage, PagedMeta};
use parking_lot::Mutex;
use replica::StoredPages;
use storage::{IoCounters, RealDirectory};

use crate::disk::reserve::Reserve;
use crate::limits::PAGE_BUFFER_BYTES;

/// Reason why a page cannot be read.
#[derive(thiserror::Error, Debug)]
pub(crate) enum PageError {
    #[error(transparent)]
    Page(#[from] replica::PageError),
    #[error("their writer has failed")]
    WriterFailed,
}

/// The pages of a vhost.
#[derive(Debug)]
pub(crate) struct PageFiles {
    stored: StoredPages<RealDirectory>,
    /// The disk reserve, which pages must leave for the log; none if there is no reserve.
    reserve: Option<Arc<Reserve>>,
    /// Pages that could not be written.
    unwritten: Mutex<HashMap<PageId, Vec<PagedMessage>>>,
    /// Bytes of one page. Kept, because fresh memory costs as much as the copy into it.
    buffer: Mutex<Vec<u8>>,
}

impl PageFiles {
    /// Opens the page directory of the vhost whose files are at `path`; existing pages are overwritten.
    /// `life` is a number that no earlier process used for it.
    ///
    /// # Errors
    /// If the directory cannot be created or read.
    pub(crate) fn open(
        path: &Path,
        life: u64,
        reserve: Option<Arc<Reserve>>,
        io: &Arc<IoCounters>,
    ) -> io::Result<Self> {
        let directory = RealDirectory::open(&path.join("pages"))?.with_counters(io);
        Ok(Self {
            stored: StoredPages::open(directory, life)?,
            reserve,
            unwritten: Mutex::default(),
            buffer: Mutex::default(),
        })
    }

    /// Writes a page. If the disk refuses, its messages stay in memory.
    pub(crate) fn write(&self, page: PageId, messages: Vec<PagedMessage>) {
        if self.reserve.as_ref().is_some_and(|reserve| !reserve.leaves_room()) {
            tracing::debug!(page = page.0, "a page stays in memory: the disk is full");
            self.unwritten.lock().insert(page, messages);
            return;
        }
        let mut buffer = self.buffer.lock();
        let (bytes, written) = self.stored.write(page, &messages, std::mem::take(&mut *buffer));
        *buffer = bytes;
        shorten(&mut buffer);
        if let Err(error) = written {
            tracing::warn!(page = page.0, %error, "a page stays in memory");
            self.unwritten.lock().insert(page, messages);
        }
    }

    /// Reads messages of a page.
    ///
    /// # Errors
    /// If the page cannot be read or is damaged.
    pub(crate) fn read(&self, page: PageId, wanted: PageSelection) -> Result<PageRead, PageError> {
        let mut buffer = self.buffer.lock();
        let read = self.read_with(page, wanted, &mut buffer);
        shorten(&mut buffer);
        read
    }

    /// Reads messages of a page concurrently with the pager, which may overwrite it meanwhile.
    ///
    /// # Errors
    /// If the page cannot be read or is damaged. The error is meaningless if the page is gone by then.
    pub(crate) fn read_beside(
        &self,
        page: PageId,
        wanted: PageSelection,
    ) -> Result<Vec<PagedMessage>, PageError> {
        Ok(self.read_with(page, wanted, &mut Vec::new())?.messages)
    }

    /// Number of pages that the disk did not take.
    pub(crate) fn unwritten_count(&self) -> usize {
        self.unwritten.lock().len()
    }

    /// True if a page exists.
    pub(crate) fn has(&self, page: PageId) -> bool {
        self.unwritten.lock().contains_key(&page) || self.stored.has(page)
    }

    fn read_with(
        &self,
        page: PageId,
        wanted: PageSelection,
        buffer: &mut Vec<u8>,
    ) -> Result<PageRead, PageError> {
        if let Some(messages) = self.unwritten.lock().get(&page) {
            let known: Vec<PagedMeta> = messages.iter().map(|message| message.meta).collect();
            let (chosen, next_deadline) = wanted.choose(&known);
            let messages = chosen.into_iter().filter_map(|at| messages.get(at).cloned()).collect();
            return Ok(PageRead { wanted, messages, next_deadline });
        }
        Ok(self.stored.read(page, wanted, buffer)?)
    }

    /// Facts about the messages of a page, read without the bodies.
    ///
    /// # Errors
    /// If the page cannot be read or is damaged.
    pub(crate) fn meta(&self, page: PageId) -> Result<Vec<PagedMeta>, PageError> {
        if let Some(messages) = self.unwritten.lock().get(&page) {
            return Ok(messages.iter().map(|message| message.meta).collect());
        }
        Ok(self.stored.meta(page)?)
    }

    /// Removes files of an earlier process that recovery did not use.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub(crate) fn trim(&self) -> io::Result<()> {
        self.stored.trim()
    }

    /// Removes a page.
    pub(crate) fn remove(&self, page: PageId) {
        if self.unwritten.lock().remove(&page).is_none()
            && let Err(error) = self.stored.remove(page)
        {
            tracing::warn!(page = page.0, %error, "a page cannot be removed before the next start");
        }
    }
}

/// Frees the memory that a page of large messages needed.
fn shorten(buffer: &mut Vec<u8>) {
    buffer.truncate(PAGE_BUFFER_BYTES);
    buffer.shrink_to(PAGE_BUFFER_BYTES);
}

//! The pages of a vhost in the simulation: the files of a store, on a disk of their own, because they do not outlive the
//! process.

use std::sync::Arc;

use broker::PageId;
use broker::page::{PageRead, PageSelection, PagedMessage, PagedMeta, Pages};
use replica::{PageError, ReplayPages, StoredPages};
use simdisk::Disk;

/// The pages of one vhost.
#[derive(Clone, Debug)]
pub(crate) struct SimPages(Arc<StoredPages<Disk>>);

impl SimPages {
    /// No pages, on an empty disk.
    pub(crate) fn new() -> Self {
        let stored = StoredPages::open(Disk::new(), 1).expect("an empty disk has no faults");
        Self(Arc::new(stored))
    }

    pub(crate) fn read_whole(&self, page: PageId) -> Option<Vec<PagedMessage>> {
        if !self.0.has(page) {
            return None;
        }
        let read = self.0.read(page, PageSelection::Whole, &mut Vec::new());
        Some(read.expect("a page that is there can be read").messages)
    }
}

impl Pages for SimPages {
    fn write(&mut self, page: PageId, messages: Vec<PagedMessage>) {
        let (_, written) = self.0.write(page, &messages, Vec::new());
        written.expect("the disk of pages has room");
    }

    fn meta(&mut self, page: PageId) -> Vec<PagedMeta> {
        self.0.meta(page).expect("a page that was written can be read")
    }

    fn read(&mut self, page: PageId, wanted: PageSelection) -> PageRead {
        let read = self.0.read(page, wanted, &mut Vec::new());
        read.expect("a page that was written can be read")
    }

    fn remove(&mut self, page: PageId) {
        self.0.remove(page).expect("the disk of pages has no faults");
    }
}

impl ReplayPages for SimPages {
    type Error = PageError;

    fn finish(self) -> Result<(), PageError> {
        Ok(())
    }
}

/// The page tasks of a run.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct PageCounts {
    /// Pages that were written, read, or dropped together with their messages.
    pub(crate) written: u64,
    pub(crate) read: u64,
    pub(crate) ended: u64,
}

//! The vhost of a node, as the thread that does its page tasks sees it.

use broker::page::{
    PageLocation, PageRead, PageSelection, PageTask, PagedMessage, PagedMeta, Pages,
};
use broker::time::Now;
use broker::{Lsn, PageId};
use replica::{PageError, PagedVhost};
use simdisk::Random;

use crate::cluster::content::pages::{PageCounts, SimPages};
use crate::cluster::content::serving::{BUSY_PERCENT, Serving};
use crate::faults::sabotage::Sabotage;

/// The vhost of a node, as the thread that does its page tasks sees it.
pub(crate) struct Paged<'a> {
    pub(crate) serving: &'a mut Serving,
    pub(crate) pages: SimPages,
    pub(crate) now: Now,
    pub(crate) random: &'a mut Random,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) counts: &'a mut PageCounts,
}

impl Paged<'_> {
    fn is_busy(&mut self) -> bool {
        self.random.percent(BUSY_PERCENT)
    }
}

impl PagedVhost for Paged<'_> {
    type Error = PageError;

    fn take_page_tasks(&mut self) -> Option<Vec<PageTask>> {
        (!self.is_busy()).then(|| self.serving.local.take_page_tasks())
    }

    fn page_read(&mut self, at: PageLocation, read: PageRead) -> Result<(), PageRead> {
        if self.is_busy() {
            return Err(read);
        }
        self.counts.read += 1;
        if self.sabotage != Some(Sabotage::PageReadLost) || self.random.percent(70) {
            self.serving.page_read(self.now, at, read);
        }
        Ok(())
    }

    fn page_ended(&mut self, lsns: &[Lsn]) -> bool {
        if self.is_busy() {
            return false;
        }
        self.counts.ended += 1;
        self.serving.page_ended(self.now, lsns);
        true
    }

    fn write(&mut self, page: PageId, messages: Vec<PagedMessage>) {
        self.counts.written += 1;
        self.pages.write(page, messages);
    }

    fn read(&mut self, page: PageId, wanted: PageSelection) -> Result<PageRead, PageError> {
        Ok(Pages::read(&mut self.pages, page, wanted))
    }

    fn meta(&mut self, page: PageId) -> Result<Vec<PagedMeta>, PageError> {
        Ok(Pages::meta(&mut self.pages, page))
    }

    fn remove(&mut self, page: PageId) {
        Pages::remove(&mut self.pages, page);
    }
}

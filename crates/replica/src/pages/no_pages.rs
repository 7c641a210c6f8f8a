//! The pages of a vhost that keeps all messages in memory.

use std::convert::Infallible;

use broker::PageId;
use broker::page::{PageRead, PageSelection, PagedMessage, PagedMeta, Pages};

use super::ReplayPages;

/// The pages of a vhost that keeps all messages in memory: there are none.
#[derive(Clone, Copy, Debug)]
pub struct NoPages;

impl Pages for NoPages {
    fn write(&mut self, page: PageId, _: Vec<PagedMessage>) {
        panic!("page {page} is written although nothing limits the memory");
    }

    fn meta(&mut self, page: PageId) -> Vec<PagedMeta> {
        panic!("page {page} is read although nothing was written");
    }

    fn read(&mut self, page: PageId, _: PageSelection) -> PageRead {
        panic!("page {page} is read although nothing was written");
    }

    fn remove(&mut self, page: PageId) {
        panic!("page {page} is dropped although nothing was written");
    }
}

impl ReplayPages for NoPages {
    type Error = Infallible;

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

//! Memory of the messages that wait in queues, and the numbers of their pages.

use crate::entry::meter::Meter;
use crate::entry::meter::QueueMemory;
use crate::ids::PageId;
use crate::page::Paging;

/// Options, page numbers and memory that all queues of a vhost share.
#[derive(Debug)]
pub(crate) struct VhostPaging {
    options: Paging,
    last_page: PageId,
    /// Memory of the messages that wait in all queues.
    resident: Meter,
}

impl VhostPaging {
    pub(crate) fn new(options: Paging) -> Self {
        Self { options, last_page: PageId(0), resident: Meter::default() }
    }

    /// The options and the meter that a new queue shares.
    #[inline]
    pub(crate) fn for_queue(&self) -> QueueMemory {
        QueueMemory { paging: self.options, meter: self.resident.clone() }
    }

    #[inline]
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident.bytes()
    }

    /// The id of the next page.
    #[inline]
    pub(crate) fn next_page(&self) -> PageId {
        PageId(self.last_page.0 + 1)
    }

    /// Notes that the page with this id was cut.
    #[inline]
    pub(crate) fn page_cut(&mut self, page: PageId) {
        self.last_page = page;
    }
}

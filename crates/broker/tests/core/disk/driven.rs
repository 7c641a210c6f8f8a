//! A vhost as a node has it, around the disk of the tests: pages that are done at once, and the log as the checks have it.

use std::convert::Infallible;

use broker::page::{
    PageLocation, PageRead, PageSelection, PageTask, PagedMessage, PagedMeta, Pages,
};
use broker::time::Now;
use broker::{Effect, Lsn, PageId, Vhost};
use replica::{ClientEnd, Contents, LocalVhost, PagedVhost, ReplayPages};
use storage::{WriteBatch, Written};

use super::log::{Disk, Replay};
use super::page_store::PageStore;

/// A vhost without clients, of a node alone or, as its options say, of a group.
pub(crate) fn local<C: ClientEnd>(vhost: Vhost) -> LocalVhost<C, PageStore> {
    let (is_replicated, committed) = (vhost.options().delivers_after_commit, vhost.last_lsn());
    let contents = Contents::Leads(Box::new(vhost));
    match is_replicated {
        true => LocalVhost::of_group(contents, committed),
        false => LocalVhost::alone(contents),
    }
}

/// The log takes a batch of what waits, and has it on disk. True if more waits.
pub(crate) fn write_batch<C: ClientEnd>(
    local: &mut LocalVhost<C, PageStore>,
    records: &mut WriteBatch,
) -> bool {
    let has_more = local.take_batch(records);
    let written = Written { durable: records.last(), bytes: 0, records: 0 };
    records.clear();
    local.batch_durable(written);
    has_more
}

/// The log as the checks have it, beside the records that the vhost passes on.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) replay: Replay,
    pub(crate) disk: Disk,
}

impl Log {
    /// Notes what is logged.
    pub(crate) fn note(&mut self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Log { record, .. } = effect {
                self.replay.apply(record);
                self.disk.write(effect);
            }
        }
    }
}

impl ReplayPages for PageStore {
    type Error = Infallible;

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The vhost with its pages, whose tasks are done at once.
pub(crate) struct Paged<'a, C> {
    pub(crate) local: &'a mut LocalVhost<C, PageStore>,
    pub(crate) page_store: &'a mut PageStore,
    pub(crate) log: &'a mut Log,
    pub(crate) now: Now,
}

impl<C: ClientEnd> PagedVhost for Paged<'_, C> {
    type Error = Infallible;

    fn take_page_tasks(&mut self) -> Option<Vec<PageTask>> {
        Some(self.local.take_page_tasks())
    }

    fn page_read(&mut self, at: PageLocation, read: PageRead) -> Result<(), PageRead> {
        self.local.page_read(self.now, at, read);
        Ok(())
    }

    fn page_ended(&mut self, lsns: &[Lsn]) -> bool {
        lsns.iter().for_each(|lsn| self.log.disk.end(*lsn));
        self.local.page_ended(lsns);
        true
    }

    fn write(&mut self, page: PageId, messages: Vec<PagedMessage>) {
        Pages::write(self.page_store, page, messages);
    }

    fn read(&mut self, page: PageId, wanted: PageSelection) -> Result<PageRead, Infallible> {
        Ok(Pages::read(self.page_store, page, wanted))
    }

    fn meta(&mut self, page: PageId) -> Result<Vec<PagedMeta>, Infallible> {
        Ok(Pages::meta(self.page_store, page))
    }

    fn remove(&mut self, page: PageId) {
        Pages::remove(self.page_store, page);
    }
}

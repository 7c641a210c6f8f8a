//! The parts of a node around one vhost, in memory: the ends of its connections, its log and its pages.

use std::cell::{Ref, RefCell, RefMut};
use std::convert::Infallible;
use std::rc::Rc;

use broker::page::{
    PageLocation, PageRead, PageSelection, PageTask, PagedMessage, PagedMeta, Pages,
};
use broker::time::Now;
use broker::{ConnectionId, Effect, Lsn, Outgoing, PageId, Vhost};
use replica::{ClientEnd, LocalVhost, PagedVhost, ReplayPages, Surroundings};
use session::Outbox;

use super::log::{Disk, Replay};
use super::page_store::PageStore;

/// The vhost with its clients.
pub(super) type Local = LocalVhost<End, PageStore>;

/// The bytes that wait for one client.
#[derive(Default, Debug)]
pub(super) struct Wire {
    pub(super) outbox: Outbox,
    /// The core has sent `connection.close`.
    pub(super) is_closing: bool,
    /// The core wants to know when less waits.
    pub(super) is_stalled: bool,
}

/// The bytes that wait for one client, of its session and of the vhost.
#[derive(Clone, Default, Debug)]
pub(super) struct SharedWire(Rc<RefCell<Wire>>);

impl SharedWire {
    pub(super) fn get(&self) -> Ref<'_, Wire> {
        self.0.borrow()
    }

    pub(super) fn get_mut(&self) -> RefMut<'_, Wire> {
        self.0.borrow_mut()
    }
}

/// The end of a client's connection.
#[derive(Debug)]
pub(super) struct End {
    pub(super) wire: SharedWire,
    pub(super) frame_max: u32,
}

impl ClientEnd for End {
    fn frame_max(&self) -> u32 {
        self.frame_max
    }

    fn append<T>(&mut self, append: impl FnOnce(&mut Outbox) -> T) -> T {
        append(&mut self.wire.get_mut().outbox)
    }

    fn set_closing(&mut self) {
        self.wire.get_mut().is_closing = true;
    }

    fn is_closing(&self) -> bool {
        self.wire.get().is_closing
    }

    fn set_stalled(&mut self) {
        self.wire.get_mut().is_stalled = true;
    }

    fn unsent(&self) -> u64 {
        self.wire.get().outbox.len()
    }
}

/// The log as the checks of the core have it, beside the records that the vhost passes on.
#[derive(Default)]
pub(super) struct Log {
    pub(super) replay: Replay,
    pub(super) disk: Disk,
}

/// The surroundings of the vhost.
pub(super) struct Node<'a> {
    pub(super) log: RefCell<&'a mut Log>,
    pub(super) now: Now,
}

impl Surroundings for Node<'_> {
    type Effects<'v> = std::vec::IntoIter<Effect>;

    fn effects<'v>(&self, vhost: &'v mut Vhost) -> Self::Effects<'v> {
        let effects: Vec<Effect> = vhost.drain_effects().collect();
        let mut log = self.log.borrow_mut();
        for effect in &effects {
            if let Effect::Log { record, .. } = effect {
                log.replay.apply(record);
                log.disk.write(effect);
            }
        }
        effects.into_iter()
    }

    /// A client that is gone gets nothing.
    fn send_internal(&mut self, _: ConnectionId, _: Outgoing) {}

    fn page_task(&mut self, _: &PageTask) {}

    fn now(&self) -> Now {
        self.now
    }
}

impl ReplayPages for PageStore {
    type Error = Infallible;

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The vhost with its pages, whose tasks are done at once.
pub(super) struct Paged<'a> {
    pub(super) local: &'a mut Local,
    pub(super) page_store: &'a mut PageStore,
    pub(super) log: &'a mut Log,
    pub(super) now: Now,
}

impl PagedVhost for Paged<'_> {
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

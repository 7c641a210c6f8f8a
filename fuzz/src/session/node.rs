//! The parts of a node around one vhost, in memory: the ends of its connections, and its log.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

use broker::page::PageTask;
use broker::time::Now;
use broker::{ConnectionId, Effect, Outgoing, Vhost};
use replica::{ClientEnd, LocalVhost, Surroundings};
use session::Outbox;

use super::driven::Log;
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

/// The surroundings of the vhost.
pub(super) struct Node<'a> {
    pub(super) log: RefCell<&'a mut Log>,
    pub(super) now: Now,
}

impl Surroundings for Node<'_> {
    type Effects<'v> = std::vec::IntoIter<Effect>;

    fn effects<'v>(&self, vhost: &'v mut Vhost) -> Self::Effects<'v> {
        let effects: Vec<Effect> = vhost.drain_effects().collect();
        self.log.borrow_mut().note(&effects);
        effects.into_iter()
    }

    /// A client that is gone gets nothing.
    fn send_internal(&mut self, _: ConnectionId, _: Outgoing) {}

    fn page_task(&mut self, _: &PageTask) {}

    fn now(&self) -> Now {
        self.now
    }
}

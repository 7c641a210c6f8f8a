//! What happens to a vhost from outside: who gets in, its settings, its users' permissions, its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use broker::access::Access;
use broker::refusal::Refusal;
use broker::{ConnectionId, Vhost};
use management::{VhostLimit, VhostSettings, maximum};
use storage::WriteQueue;

use super::{State, VhostHandle};
use crate::disk::node_file::VhostEntry;
use crate::disk::page_queue::PageQueue;

/// Why no connection can be opened in a vhost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpenRefused {
    /// It is deleted.
    Deleted,
    /// It has as many as it may have.
    Full(u64),
}

impl State {
    pub(super) fn check_room(&self) -> Result<(), OpenRefused> {
        if self.is_retired {
            return Err(OpenRefused::Deleted);
        }
        // The node's own are nobody's.
        let connections = self.links.len() as u64;
        match maximum(&self.settings.limits, VhostLimit::MaxConnections) {
            Some(max) if connections >= max => Err(OpenRefused::Full(max)),
            _ => Ok(()),
        }
    }
}

impl VhostHandle {
    /// Whether a connection could be opened now.
    pub(crate) fn check_room(&self) -> Result<(), OpenRefused> {
        self.state.lock().check_room()
    }

    /// What is kept of it beside what is in it.
    pub(crate) fn settings(&self) -> Arc<VhostSettings> {
        Arc::clone(&self.state.lock().settings)
    }

    /// What there is to write down of it.
    pub(crate) fn entry(&self) -> VhostEntry {
        VhostEntry { name: self.name.to_string(), id: self.id, settings: self.settings() }
    }

    /// Names its directory.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether the vhost is deleted.
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    /// From now on these settings count.
    pub(crate) fn set_settings(&self, settings: Arc<VhostSettings>) {
        let mut state = self.state.lock();
        state.vhost.set_default_queue_type(settings.default_queue_type);
        state.vhost.set_queues_max(maximum(&settings.limits, VhostLimit::MaxQueues));
        state.vhost.set_tracing(settings.tracing);
        state.settings = settings;
    }

    /// While memory is short queues, exchanges and bindings may take so many bytes: from the next command
    /// on, and without a wait for those before it.
    pub(crate) fn set_topology_bytes_max(&self, bytes_max: Option<u64>) {
        self.topology_bytes_max.store(bytes_max.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn topology_bytes_max(&self) -> Option<u64> {
        Some(self.topology_bytes_max.load(Ordering::Relaxed)).filter(|max| *max < u64::MAX)
    }

    /// What a user may do has changed, on all his connections.
    pub(crate) fn set_access(&self, access: &Arc<Access>) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        for connection in connections_of(&state.vhost, &access.user) {
            state.vhost.set_access(now, connection, Arc::clone(access));
        }
        self.finish(state);
    }

    /// Closes all connections of a user.
    pub(crate) fn close_user(&self, user: &str, refusal: &Refusal) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        for connection in connections_of(&state.vhost, user) {
            state.vhost.force_close(now, connection, refusal.clone());
        }
        self.finish(state);
    }

    /// Closes one connection.
    pub(crate) fn force_close(&self, connection: ConnectionId, refusal: Refusal) {
        self.write(|vhost, now| vhost.force_close(now, connection, refusal));
    }

    /// The vhost is deleted: its connections are closed, what is in it is forgotten, and when this
    /// returns nothing touches its files any more.
    pub(crate) fn retire(self: &Arc<Self>, refusal: &Refusal) {
        self.stop(refusal);
        let forgotten = {
            let mut state = self.state.lock();
            state.is_retired = true;
            self.is_retired.store(true, Ordering::Release);
            state.held.clear();
            state.pending = WriteQueue::default();
            state.paging = PageQueue::default();
            let empty = Vhost::new(&self.name, [0; 32], state.vhost.options());
            std::mem::replace(&mut state.vhost, empty)
        };
        // Nobody waits for a log that is not written any more.
        self.durable_lsn.store(u64::MAX, Ordering::Release);
        self.written.notify_waiters();
        self.persister.retire(self);
        self.pager.finish();
        drop(forgotten);
    }
}

fn connections_of(vhost: &Vhost, user: &str) -> Vec<ConnectionId> {
    let his = vhost.connections().filter(|(_, connection)| *connection.access.user == *user);
    his.map(|(id, _)| id).collect()
}

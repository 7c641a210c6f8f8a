//! Administration of a vhost: connection limits, settings, permissions of users, deletion.

use std::sync::Arc;

use broker::access::Access;
use broker::refusal::Refusal;
use broker::{ConnectionId, Vhost};
use replica::Contents;

use super::{OpenRefused, State, VhostHandle};
use crate::disk::json_files::node_file::VhostEntry;
use crate::disk::recovery::pages::PageRecovery;
use crate::requests::{VhostLimit, VhostSettings, maximum};

impl VhostHandle {
    /// Checks that a connection could be opened now.
    ///
    /// # Errors
    /// If the vhost is deleted or full.
    pub(crate) fn check_room(&self) -> Result<(), OpenRefused> {
        self.check_room_in(&self.state.lock())
    }

    pub(super) fn check_room_in(&self, state: &State) -> Result<(), OpenRefused> {
        // The flag changes only under the lock.
        if self.is_deposed() || state.local.is_following() {
            return Err(OpenRefused::NotLeading(self.not_leading()));
        }
        if self.disk.is_retired() {
            return Err(OpenRefused::Deleted);
        }
        // Connections of the node itself do not count.
        let connections = state.local.clients().len() as u64;
        match maximum(&self.settings().limits, VhostLimit::MaxConnections) {
            Some(max) if connections >= max => Err(OpenRefused::Full(max)),
            _ => Ok(()),
        }
    }

    /// The description, limits and other settings.
    pub(crate) fn settings(&self) -> Arc<VhostSettings> {
        self.definition.settings()
    }

    /// The entry of the vhost in `node.json`.
    pub(crate) fn entry(&self) -> VhostEntry {
        self.definition.entry()
    }

    /// Lets changed settings take effect, if this node leads the vhost.
    pub(in crate::vhost) fn settings_changed(&self) {
        let mut state = self.state.lock();
        if let Some(vhost) = state.local.leading_mut() {
            apply_settings(vhost, &self.settings());
        }
    }

    /// Replaces the permissions of a user on all their connections.
    pub(crate) fn set_access(&self, access: &Arc<Access>) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let Some(vhost) = state.local.leading_mut() else { return };
        for connection in connections_of(vhost, &access.user) {
            vhost.set_access(now, connection, Arc::clone(access));
        }
        self.finish(state);
    }

    /// Closes all connections of a user.
    pub(crate) fn close_user(&self, user: &str, refusal: &Refusal) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        let Some(vhost) = state.local.leading_mut() else { return };
        for connection in connections_of(vhost, user) {
            vhost.force_close(now, connection, refusal.clone());
        }
        self.finish(state);
    }

    /// Closes one connection.
    pub(crate) fn force_close(&self, connection: ConnectionId, refusal: Refusal) {
        // A node that does not lead the vhost has closed the connection.
        let _ = self.write(|vhost, now| vhost.force_close(now, connection, refusal));
    }

    /// Deletes the vhost: closes its connections and drops its contents. After the call, no thread touches
    /// its files.
    pub(crate) fn retire(&self, refusal: &Refusal) {
        if let Some(place) = &self.place {
            // Before the contents are given up: entries of a leader are applied to a replica.
            place.replicator.retire(self.id);
        }
        let contents = self.abandon(refusal);
        self.disk.release_waiters();
        self.threads.persister.retire(self.id);
        self.threads.timer.remove(self.id);
        self.threads.pager.remove(self.id);
        // Outside of the lock, because a long queue takes long to drop.
        drop(contents);
    }

    /// Closes all connections and takes the contents away: nothing of the vhost is answered or written any more.
    pub(in crate::vhost) fn abandon(&self, refusal: &Refusal) -> Contents<PageRecovery> {
        self.stop(refusal);
        let mut state = self.state.lock();
        self.disk.set_retired();
        let (contents, touched) = state.local.give_up(refusal);
        for connection in touched {
            if let Some(link) = state.local.clients().get(connection) {
                link.end.socket.writer.wake_writer();
            }
        }
        contents
    }
}

/// Lets the settings take effect in the core.
pub(in crate::vhost) fn apply_settings(vhost: &mut Vhost, settings: &VhostSettings) {
    vhost.set_default_queue_type(settings.default_queue_type);
    vhost.set_queues_max(maximum(&settings.limits, VhostLimit::MaxQueues));
    vhost.set_tracing(settings.tracing);
}

fn connections_of(vhost: &Vhost, user: &str) -> Vec<ConnectionId> {
    let of_user = vhost.connections().filter(|(_, connection)| *connection.access.user == *user);
    of_user.map(|(id, _)| id).collect()
}

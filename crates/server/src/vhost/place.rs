//! The place of a vhost in a cluster, as this node knows it.

use std::sync::Arc;

use broker::RestoredDeath;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::replicas::Replicator;

/// The place of a vhost in a cluster.
#[derive(Debug)]
pub(crate) struct Place {
    /// Name of the node that leads the vhost, as far as this node knows.
    leader: watch::Sender<Option<Arc<str>>>,
    pub(super) replicator: Arc<Replicator>,
    pub(super) presence: Presence,
    /// The history of dead letters that this node has on disk, for its promotion.
    deaths: Mutex<Vec<RestoredDeath>>,
    /// True while another node is to lead: commands of clients and due work wait. Changes under the vhost's lock.
    frozen: watch::Sender<bool>,
}

/// The state of the replica of this node when the vhost was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Presence {
    /// The replica takes part in its group.
    Here,
    /// The node has no usable replica: it must be rebuilt from the files of the leader.
    Lost,
    /// Other nodes have the vhost.
    Elsewhere,
}

impl Place {
    /// A replica of which another node leads the vhost, if `leader` is one: that is known from before it was opened anew.
    pub(super) fn new(
        replicator: Arc<Replicator>,
        presence: Presence,
        deaths: Vec<RestoredDeath>,
        leader: Option<Arc<str>>,
    ) -> Self {
        let (leader, frozen) = (watch::Sender::new(leader), watch::Sender::new(false));
        Self { leader, replicator, presence, deaths: Mutex::new(deaths), frozen }
    }

    /// Name of the node that leads the vhost, if this node knows one.
    pub(crate) fn leader(&self) -> Option<Arc<str>> {
        self.leader.borrow().clone()
    }

    /// The node that leads the vhost, as it changes.
    pub(super) fn leaders(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.leader.subscribe()
    }

    /// Notes the node that leads the vhost.
    pub(super) fn set_leader(&self, leader: Option<Arc<str>>) {
        self.leader.send_if_modified(|known| {
            let is_new = *known != leader;
            *known = leader;
            is_new
        });
    }

    /// True while commands wait because another node is to lead.
    pub(super) fn is_frozen(&self) -> bool {
        *self.frozen.borrow()
    }

    /// Lets commands wait, or go on.
    pub(super) fn set_frozen(&self, is_frozen: bool) {
        self.frozen.send_replace(is_frozen);
    }

    /// Waits until commands go on.
    pub(super) async fn thawed(&self) {
        if self.is_frozen() {
            // An error means that the vhost is gone.
            let _ = self.frozen.subscribe().wait_for(|is_frozen| !is_frozen).await;
        }
    }

    /// The history of dead letters on disk, once.
    pub(super) fn take_deaths(&self) -> Vec<RestoredDeath> {
        std::mem::take(&mut *self.deaths.lock())
    }
}

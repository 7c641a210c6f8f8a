//! The place of a vhost in a cluster, as this node knows it.

use std::sync::Arc;

use broker::RestoredDeath;
use parking_lot::Mutex;

use crate::replicas::Replicator;

/// The place of a vhost in a cluster.
#[derive(Debug)]
pub(crate) struct Replica {
    /// Names of the nodes that have the log of the vhost.
    pub(crate) members: Vec<Arc<str>>,
    /// Name of the node that leads the vhost, as far as this node knows.
    leader: Mutex<Option<Arc<str>>>,
    pub(super) replicator: Arc<Replicator>,
    /// The history of dead letters that this node has on disk, for its promotion.
    deaths: Mutex<Vec<RestoredDeath>>,
}

impl Replica {
    /// A replica without a known leader.
    pub(super) fn new(
        members: Vec<Arc<str>>,
        replicator: Arc<Replicator>,
        deaths: Vec<RestoredDeath>,
    ) -> Self {
        Self { members, leader: Mutex::default(), replicator, deaths: Mutex::new(deaths) }
    }

    /// Name of the node that leads the vhost, if this node knows one.
    pub(crate) fn leader(&self) -> Option<Arc<str>> {
        self.leader.lock().clone()
    }

    /// Notes the node that leads the vhost.
    pub(super) fn set_leader(&self, leader: Option<Arc<str>>) {
        *self.leader.lock() = leader;
    }

    /// The history of dead letters on disk, once.
    pub(super) fn take_deaths(&self) -> Vec<RestoredDeath> {
        std::mem::take(&mut *self.deaths.lock())
    }
}

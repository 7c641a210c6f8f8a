//! The place of a vhost in a cluster, as this node knows it.

use std::sync::Arc;

use parking_lot::Mutex;

/// The place of a vhost in a cluster.
#[derive(Debug)]
pub(crate) struct Replica {
    /// Names of the nodes that have the log of the vhost.
    pub(crate) members: Vec<Arc<str>>,
    /// Name of the node that leads the vhost, as far as this node knows.
    leader: Mutex<Option<Arc<str>>>,
}

impl Replica {
    /// A replica without a known leader.
    pub(super) fn new(members: Vec<Arc<str>>) -> Self {
        Self { members, leader: Mutex::default() }
    }

    /// Name of the node that leads the vhost, if this node knows one.
    pub(crate) fn leader(&self) -> Option<Arc<str>> {
        self.leader.lock().clone()
    }

    /// Notes the node that leads the vhost.
    pub(super) fn set_leader(&self, leader: Option<Arc<str>>) {
        *self.leader.lock() = leader;
    }
}

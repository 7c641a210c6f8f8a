//! Vhosts, each as a whole.

use std::collections::BTreeMap;

use broker::QueueType;

use super::{Change, Unchanged, VhostLimit};
use crate::VhostTotals;

/// What is kept of a vhost beside what is in it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VhostSettings {
    /// What it is for.
    pub description: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// The type of queues that say none.
    pub default_queue_type: QueueType,
    /// It cannot be deleted; none if that was never said.
    pub protected_from_deletion: Option<bool>,
    /// What passes through it is copied to `amq.rabbitmq.trace`.
    pub tracing: bool,
    /// What it may have at most.
    pub limits: BTreeMap<VhostLimit, i64>,
}

/// The change of a vhost.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VhostChange {
    /// Description, tags and default queue type, all of them or none.
    pub metadata: Option<VhostMetadata>,
    /// [`VhostSettings::protected_from_deletion`].
    pub protected_from_deletion: Option<bool>,
    /// [`VhostSettings::tracing`].
    pub tracing: Option<bool>,
}

/// What says what a vhost is for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VhostMetadata {
    /// [`VhostSettings::description`].
    pub description: String,
    /// [`VhostSettings::tags`].
    pub tags: Vec<String>,
    /// [`VhostSettings::default_queue_type`].
    pub default_queue_type: QueueType,
}

impl VhostSettings {
    /// Applies a change.
    pub fn change(&mut self, change: VhostChange) {
        let VhostChange { metadata, protected_from_deletion, tracing } = change;
        if let Some(VhostMetadata { description, tags, default_queue_type }) = metadata {
            (self.description, self.tags) = (description, tags);
            self.default_queue_type = default_queue_type;
        }
        self.protected_from_deletion = protected_from_deletion.or(self.protected_from_deletion);
        self.tracing = tracing.unwrap_or(self.tracing);
    }
}

/// The vhosts of the node.
pub trait Vhosts {
    /// The names of all vhosts, in order.
    fn vhost_names(&self) -> Vec<String>;

    /// The sums of a vhost, if there is one of that name; with a user, of connections and channels
    /// only his.
    fn vhost_totals(&self, name: &str, user: Option<&str>) -> Option<VhostTotals>;

    /// What is kept of a vhost, if there is one of that name.
    fn vhost_settings(&self, name: &str) -> Option<VhostSettings>;

    /// Makes a vhost, in which `user` may do everything, or changes the one of that name: whether it is
    /// new.
    fn put_vhost(
        &self,
        name: &str,
        change: VhostChange,
        user: &str,
    ) -> Change<'_, Result<bool, Unchanged>>;

    /// Changes a vhost that is there.
    fn change_vhost(&self, name: &str, change: VhostChange) -> Change<'_, Result<(), Unchanged>>;

    /// Removes a vhost with all that is in it, and closes its connections.
    fn delete_vhost(&self, name: &str) -> Change<'_, Result<(), Unchanged>>;
}

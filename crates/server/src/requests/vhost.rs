//! Settings of a vhost.

use std::collections::BTreeMap;

use broker::QueueType;

use crate::requests::limits::VhostLimit;

/// Settings of a vhost.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VhostSettings {
    /// Description for operators.
    pub description: String,
    /// Tags of the vhost.
    pub tags: Vec<String>,
    /// Type of queues that are declared without one.
    pub default_queue_type: QueueType,
    /// True if the vhost cannot be deleted; none if never set.
    pub protected_from_deletion: Option<bool>,
    /// True if published and delivered messages are copied to `amq.rabbitmq.trace`.
    pub tracing: bool,
    /// Number of nodes of a cluster that have the vhost, 1 to 7; none for all.
    pub replicas: Option<u8>,
    /// Limits of the vhost.
    pub limits: BTreeMap<VhostLimit, i64>,
}

/// A change of a vhost's settings; none keeps the current value.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VhostChange {
    /// Description, tags and default queue type, which change together.
    pub metadata: Option<VhostMetadata>,
    /// New value of [`VhostSettings::protected_from_deletion`].
    pub protected_from_deletion: Option<bool>,
    /// New value of [`VhostSettings::tracing`].
    pub tracing: Option<bool>,
    /// New value of [`VhostSettings::replicas`].
    pub replicas: Option<Option<u8>>,
}

/// Descriptive settings of a vhost.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VhostMetadata {
    /// See [`VhostSettings::description`].
    pub description: String,
    /// See [`VhostSettings::tags`].
    pub tags: Vec<String>,
    /// See [`VhostSettings::default_queue_type`].
    pub default_queue_type: QueueType,
}

impl VhostSettings {
    /// Applies a change.
    pub fn change(&mut self, change: VhostChange) {
        let VhostChange { metadata, protected_from_deletion, tracing, replicas } = change;
        if let Some(VhostMetadata { description, tags, default_queue_type }) = metadata {
            (self.description, self.tags) = (description, tags);
            self.default_queue_type = default_queue_type;
        }
        self.protected_from_deletion = protected_from_deletion.or(self.protected_from_deletion);
        self.tracing = tracing.unwrap_or(self.tracing);
        self.replicas = replicas.unwrap_or(self.replicas);
    }
}

//! Permissions of users in vhosts.

/// The permissions of a user in a vhost, as patterns of names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PermissionDetails {
    /// Name of the user.
    pub user: String,
    /// Name of the vhost.
    pub vhost: String,
    /// Queues and exchanges that the user may declare and delete.
    pub configure: String,
    /// Exchanges that the user may publish to, and queues and exchanges that the user may bind.
    pub write: String,
    /// Queues that the user may consume from, and exchanges that the user may bind from.
    pub read: String,
}

/// The routing keys that a user may use with a topic exchange, as patterns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicPermissionDetails {
    /// Name of the user.
    pub user: String,
    /// Name of the vhost.
    pub vhost: String,
    /// Name of the exchange.
    pub exchange: String,
    /// Keys for publishing.
    pub write: String,
    /// Keys for binding.
    pub read: String,
}

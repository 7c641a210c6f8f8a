//! What users may do in vhosts.

use super::{Change, Unchanged};

/// What a user may do in a vhost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PermissionDetails {
    /// His name.
    pub user: String,
    /// The vhost.
    pub vhost: String,
    /// What he may declare and delete, as a pattern.
    pub configure: String,
    /// What he may publish and bind to, as a pattern.
    pub write: String,
    /// What he may consume and bind from, as a pattern.
    pub read: String,
}

/// Which routing keys a user may use with a topic exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicPermissionDetails {
    /// His name.
    pub user: String,
    /// The vhost.
    pub vhost: String,
    /// The exchange.
    pub exchange: String,
    /// Keys he may publish with, as a pattern.
    pub write: String,
    /// Keys he may bind with, as a pattern.
    pub read: String,
}

/// The permissions of the users, which are shown with them. A change counts for open connections, too,
/// from their next operation on.
pub trait Permissions {
    /// Sets what a user may do in a vhost: whether he had no permissions there.
    fn set_permissions(&self, to: PermissionDetails) -> Change<'_, Result<bool, Unchanged>>;

    /// Takes from a user all that he may do in a vhost; false if there was nothing.
    fn clear_permissions(&self, vhost: &str, user: &str) -> Change<'_, Result<bool, Unchanged>>;

    /// Sets which keys a user may use with an exchange: whether he had no topic permissions in that
    /// vhost.
    fn set_topic_permissions(
        &self,
        to: TopicPermissionDetails,
    ) -> Change<'_, Result<bool, Unchanged>>;

    /// Lets a user use all keys with an exchange, or with every exchange of a vhost; false if he had no
    /// topic permissions in that vhost.
    fn clear_topic_permissions(
        &self,
        vhost: &str,
        user: &str,
        exchange: Option<&str>,
    ) -> Change<'_, Result<bool, Unchanged>>;
}

//! Policies of both kinds.

use std::sync::Arc;

use broker::{Policy, PolicyKind};

use super::{Change, Unchanged};

/// The policies of the vhosts.
pub trait Policies {
    /// The policies of a vhost, by name, if there is one of that name.
    fn policies(&self, vhost: &str, kind: PolicyKind) -> Option<Vec<Arc<Policy>>>;

    /// Adds or replaces a policy: whether it is new. It is in force for everything then.
    fn set_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        policy: Policy,
    ) -> Change<'_, Result<bool, Unchanged>>;

    /// Removes a policy; false if there is none.
    fn clear_policy(&self, vhost: &str, kind: PolicyKind, name: &str) -> Change<'_, bool>;
}

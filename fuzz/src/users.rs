//! Users of a vhost that is driven without a server.

use std::sync::Arc;

use broker::access::{Access, PermissionPattern, Permissions};

/// A user who may do everything to what `pattern` matches.
pub(crate) fn access(user: &str, pattern: &str) -> Arc<Access> {
    let pattern = PermissionPattern::new(pattern).expect("a pattern");
    Arc::new(Access {
        user: user.into(),
        impersonator: false,
        permissions: Permissions {
            configure: pattern.clone(),
            write: pattern.clone(),
            read: pattern,
        },
        topic_permissions: Vec::new(),
    })
}

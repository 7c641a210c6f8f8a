//! Users of a vhost that is driven without a server.

use std::sync::Arc;

use broker::access::Access;

/// A user who may do everything to what `pattern` matches.
pub(crate) fn access(user: &str, pattern: &str) -> Arc<Access> {
    Arc::new(Access::matching(user.into(), pattern).expect("a pattern"))
}

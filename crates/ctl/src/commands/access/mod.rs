//! Commands about users, vhosts and what they may do.

pub(super) mod limits;
pub(super) mod parameters;
pub(super) mod permissions;
pub(super) mod topic_permissions;
pub(super) mod users;
pub(super) mod vhosts;

//! The log of a member.

use storage::{RealDirectory, ReplicatedLog};

/// The log of a replicated vhost, or of the metadata.
pub(crate) type MemberLog = ReplicatedLog<RealDirectory>;

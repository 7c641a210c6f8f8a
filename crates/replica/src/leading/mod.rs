//! The work of a leader for other nodes: barriers, files for their members, and planned changes of the leader.

pub(crate) mod barrier;
pub(crate) mod preparation;
pub(crate) mod transfer;

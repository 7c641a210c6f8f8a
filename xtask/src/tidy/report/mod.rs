//! Findings, and how they are held against limits and lists.

pub(super) mod ceilings;
pub(super) mod finding;
pub(super) mod ratchet;

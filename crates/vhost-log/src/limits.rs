//! Limits, with their units and reasons.

/// Shortest body that is not copied on the way to the log, in bytes: writing such a body separately costs
/// less than the copy, during which the vhost waits.
pub(crate) const UNCOPIED_LOG_BODY_BYTES_MIN: usize = 64 * 1024;

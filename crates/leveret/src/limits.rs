//! Limits of the program, each with its unit and its reason.

use std::time::Duration;

/// Interval at which unused memory is returned to the operating system.
pub(crate) const GIVE_BACK_INTERVAL: Duration = Duration::from_millis(500);

/// Bytes allocated and freed to make the allocator return memory: more than the allocator serves from a
/// shared page.
pub(crate) const GIVE_BACK_BYTES: usize = 1024 * 1024;

//! Limits of a replica. `docs/reference/limits.md` lists them.

use std::time::Duration;

/// Ticks of 50 ms for which a batch of a leader waits, while nothing is committed, until that is told: 5 s.
pub const STANDSTILL_TOLD_TICKS: u32 = 100;

/// Ticks after which the node gives up the lead, so that another one, or the same one anew, goes on: 30 s.
pub const STANDSTILL_ENDS_TICKS: u32 = 600;

/// Interval at which a log without room on the disk tries again.
pub const FULL_DISK_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Milliseconds after which a vhost whose lock was held for long is tried again.
pub const LOCK_RETRY_MS: u64 = 2;

/// Time between two offers of files to a member.
pub const OFFER_INTERVAL: Duration = Duration::from_secs(1);

/// Shortest body that is not copied on the way to the log, in bytes: writing such a body separately costs
/// less than the copy, during which the vhost waits.
pub(crate) const UNCOPIED_LOG_BODY_BYTES_MIN: usize = 64 * 1024;

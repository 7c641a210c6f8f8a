//! Limits of a replica. `docs/reference/limits.md` lists them.

use std::time::Duration;

/// Ticks of 50 ms for which a batch of a leader waits, while nothing is committed, until that is told: 5 s.
pub const STANDSTILL_TOLD_TICKS: u32 = 100;

/// Ticks after which the node gives up the lead, so that another one, or the same one anew, goes on: 30 s.
pub const STANDSTILL_ENDS_TICKS: u32 = 600;

/// Interval at which a log without room on the disk tries again.
pub const FULL_DISK_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Milliseconds after which the timer, the log writer and the pager return to a vhost whose lock they did not get.
pub const LOCK_RETRY_MS: u64 = 2;

/// Time between two offers of files to a member.
pub const OFFER_INTERVAL: Duration = Duration::from_secs(1);

/// Shortest body that is not copied on the way to the log, in bytes: writing such a body separately costs
/// less than the copy, during which the vhost waits.
pub(crate) const UNCOPIED_LOG_BODY_BYTES_MIN: usize = 64 * 1024;

/// Octets that a relay reads at once.
pub const RELAY_READ_BYTES: usize = 64 * 1024;

/// Time for the leader of a relayed client to close it before the entry node does, once there is another leader; only a
/// leader that is connected can.
pub const RELAY_LEADER_GRACE: Duration = Duration::from_secs(1);

/// Time without any leader after which a node closes the clients whose leader it does not hear: a few elections.
pub const RELAY_LEADERLESS: Duration = Duration::from_secs(8);

/// Time for the rest of a frame, and for the client's answer, when a relay closes a client.
pub const RELAY_CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for which a client that opens a vhost waits for its leader, while this node hears a majority that may elect one: an
/// election takes 1 to 3 seconds, and clients wait 10 seconds for an answer.
pub const LEADER_WAIT: Duration = Duration::from_secs(8);

/// Time after which a client that waits for a leader looks again, because the vhost was opened anew meanwhile.
pub const LEADER_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Time without a byte of a node after which it counts as away, and the clients that it passes on, or that are passed on to
/// it, as gone: the silence after which a link is lost, and twice the longest pause between two attempts to open a link.
pub const PEER_AWAY: Duration = Duration::from_secs(3);

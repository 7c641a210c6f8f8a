//! Limits of replication, each with its unit and its reason.

/// Duration of a tick, in microseconds: the driver counts ticks from real time.
pub const TICK_US: u64 = 50_000;

/// Ticks between two heartbeats of a leader: 300 ms, three in the shortest election time.
pub const HEARTBEAT_TICKS: usize = 6;

/// Shortest time without a leader after which a member campaigns, in ticks: 1 s. Several heartbeats may be lost
/// before.
pub const ELECTION_TICKS_MIN: usize = 20;

/// Longest such time, in ticks: 2 s. Members draw from the range, so that they rarely campaign together.
pub const ELECTION_TICKS_MAX: usize = 40;

/// Factor of the election time of a member that should lead only if no other can.
pub const RELUCTANT_FACTOR: usize = 4;

/// Ticks within which a leader must have heard from a majority to report positions as durable: half the
/// shortest election time, so that a leader that is cut off confirms nothing.
pub const HEARD_TICKS: u64 = 10;

/// Ticks without a turn after which a member has one: 600 ms, longer than from one heartbeat to the next, which have one
/// each.
pub const IDLE_TURN_TICKS: u64 = 2 * HEARTBEAT_TICKS as u64;

/// Ticks between the campaigns of two followers that have lost the same leader: the first is elected before the
/// second begins.
pub const RANK_TICKS: u32 = 1;

/// Ticks after which a leader goes on although another was to lead: 1 s. A planned change takes a few round trips and
/// syncs.
pub const HAND_OVER_TICKS: u64 = 20;

/// Ticks after which the other member is asked again to campaign, because the frame may be lost: 200 ms.
pub const TRANSFER_TICKS: u64 = 4;

/// Messages with entries that a follower may have unanswered.
pub const IN_FLIGHT_MAX: usize = 256;

/// Bytes of entries in one message, unless a single entry is larger.
pub const APPEND_BYTES_MAX: u64 = 1024 * 1024;

/// Bytes of proposed entries that are not committed: the back-pressure of the vhost begins far below. One entry is
/// accepted whatever its size.
pub const UNCOMMITTED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of committed entries that are passed on in one turn, unless a single entry is larger.
pub const COMMITTED_BYTES_PER_TURN: usize = 16 * 1024 * 1024;

/// Committed entries that the engine reports at once.
pub const COMMITTED_PER_READY: u64 = 1024;

/// Entries after which the hard state is saved with a newer commit, so that a restart reads few entries again.
pub const COMMIT_HINT_ENTRIES: u64 = 4096;

/// Ticks after which the hard state is saved with a newer commit: 1 s.
pub const COMMIT_HINT_TICKS: u64 = 20;

/// Bytes of a frame with its header: a heartbeat waits for no more than this.
pub const FRAME_BYTES_MAX: usize = 256 * 1024;

/// Bytes of an entry that are sent without a copy; smaller ones are gathered.
pub const GATHERED_BYTES_MAX: usize = 16 * 1024;

/// Entries in one message.
pub const ENTRIES_PER_MESSAGE_MAX: usize = 65_536;

/// Bytes of a message of several frames: the largest entry, whose length has 32 bits, and small ones beside it.
pub const MESSAGE_BYTES_MAX: usize = u32::MAX as usize;

/// Bytes of a change of the members.
pub const MEMBERSHIP_BYTES_MAX: usize = 64;

/// Largest index, term and time in a frame: sums of such numbers do not overflow.
pub const NUMBER_MAX: u64 = 1 << 62;

/// Entries that a learner may lack when it becomes a voter: it has them within a few messages.
pub const LEVEL_ENTRIES: u64 = 1000;

/// Voting members of a group: with more, an election asks too many.
pub const VOTERS_MAX: usize = 7;

/// Voting and learning members of a group.
pub const MEMBERS_MAX: usize = 32;

/// Groups in one notice of leads: 16 KiB.
pub const LEADS_PER_NOTICE_MAX: usize = 1024;

/// Nodes whose clocks are observed.
pub const CLOCKS_MAX: usize = 128;

/// Largest difference in the rate of two nodes' clocks, in millionths: 200 each, and some more.
pub const DRIFT_PPM: u64 = 500;

/// Ticks after which a member that is not heard does not hold back compactions any more: 30 minutes. It gets files when
/// it comes back.
pub const GONE_TICKS: u64 = 36_000;

/// Terms whose leaders' clocks are kept, if the log has no entries of any of them.
pub const LEADER_CLOCKS_MAX: usize = 8;

/// Ticks for which an axis counts that a voter has told: 5 s.
pub const TOLD_TICKS: u64 = 100;

/// Most that the clock of a voter drifts until its answer is used, in microseconds: [`DRIFT_PPM`] of 10 s.
pub const TOLD_MARGIN_US: i64 = 5_000;

/// Most that the wall clock may be away from the axis that was saved beside it, in microseconds: then it was set, or has
/// drifted for minutes, and both are saved again.
pub const SAVED_CLOCK_ERROR_US: u64 = 20_000;

/// Campaigns after the loss of a leader before the election time counts again: the first may come before the others
/// have noticed the loss.
pub const CAMPAIGNS_MAX: u32 = 4;

/// Latest time of an axis with which a leader begins, in microseconds since 1970: in some 70,000 years, and far below
/// [`NUMBER_MAX`].
pub const AXIS_US_MAX: u64 = 1 << 61;

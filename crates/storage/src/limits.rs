//! Limits of the log, each with its unit and its reason.

/// Size of the first segments of a log, in bytes: an idle vhost must cost little.
pub const SEGMENT_BYTES_MIN: u64 = 1024 * 1024;

/// Size of a segment when the disk has no room for a larger one, in bytes: many vhosts can start on a
/// full disk, and each has room for a thousand acknowledgements before it needs the next one.
pub const SEGMENT_BYTES_ON_FULL_DISK: u64 = 64 * 1024;

/// Size of the segments of a busy log, in bytes: zeroing one takes tens of milliseconds in the
/// background, rewriting one hardly more.
pub const SEGMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Share of live records below which a sealed file is rewritten, in percent:
/// below it, rewriting frees more than it writes.
pub const LIVE_PERCENT_MIN: u64 = 50;

/// Sealed files smaller than this are merged with their neighbours, in bytes.
pub const SMALL_SEGMENT_BYTES: u64 = 256 * 1024;

/// Largest number of files in a manifest; at 64 MiB each that is 4 TiB.
pub const SEGMENTS_MAX: usize = 65_536;

/// Size of the buffer that an idle batch keeps, in bytes.
pub const IDLE_BATCH_BYTES: usize = 1024 * 1024;

/// Bytes of records after which a batch is full and the next record begins another one: large enough
/// that a sync costs little beside the write, small enough that another vhost waits for one only
/// shortly, and far below the 4 GiB that the format has room for.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of a single record: more than the largest message with all its headers takes. With
/// [`BATCH_BYTES_MAX`] in front of it, it fits into the 32 bits of a length.
pub const RECORD_BYTES_MAX: usize = 2 * 1024 * 1024 * 1024;

/// Bytes of records that must stand in the same batch: beyond it they are cut all the same, because
/// the length of a batch has 32 bits.
pub const JOINED_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Bytes of records in one batch of a rewritten file: small enough that damage to a
/// batch's header loses little, large enough that headers cost nothing.
pub const REWRITTEN_BATCH_BYTES: usize = 256 * 1024;

/// Bytes of dropped records that a batch may hold until it is written.
pub const DROPPED_BYTES_MAX: usize = 1024 * 1024;

/// Number of small neighbours from which on they are merged.
pub const SMALL_SEGMENTS_MAX: usize = 8;

/// Number of free page files that are kept for reuse.
pub const FREE_PAGE_FILES_MAX: usize = 64;

/// Largest free page file that is kept, in bytes: the file of one large message must not hold room.
pub const FREE_PAGE_FILE_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Records that a compaction examines before it releases the lock for the writer.
pub const RECORDS_PER_LOCK: usize = 1024;

/// Largest id of a file and largest position: a log never reaches it, and sums of such numbers do not
/// overflow.
pub const NUMBER_MAX: u64 = 1 << 62;

/// Largest size of a file, in bytes: no file is so large, and the sum of all sizes does not overflow.
pub const FILE_BYTES_MAX: u64 = 1 << 44;

/// Zero words between two records of a file from which on only words with a bit set are kept: a megabyte.
pub const EMPTY_WORDS_MAX: usize = 128 * 1024;

/// Bytes of the active segment that a backup copies and syncs at once: the syncs of the log wait for the disk no
/// longer than for a megabyte.
pub const SNAPSHOT_COPY_BYTES: usize = 1024 * 1024;

/// Bytes of entries between two places that a replicated log remembers: a read behind one of them skips no more.
pub const ENTRY_MARK_BYTES: u64 = 64 * 1024;

/// Bytes of the newest entries that a replicated log keeps in memory: what a follower lacks that is a moment behind.
pub const ENTRY_TAIL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of the records of an entry: as many as the 32 bits of a length have room for.
pub const ENTRY_BYTES_MAX: usize = u32::MAX as usize;

/// Bytes of a change of the members in an entry: a few hundred ids.
pub const MEMBERSHIP_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the reason in the mark of a quarantined member; the rest is left out.
pub const QUARANTINE_REASON_BYTES_MAX: usize = 4096;

/// Bytes of headers and records that are gathered for one write; longer records are written without a copy.
pub const GATHERED_BYTES_MAX: usize = 64 * 1024;

/// Members in a hard state, voters and learners: a slot has room for so many.
pub const MEMBERS_MAX: usize = 48;

/// Bytes of entries in sealed files that are kept for members that still need them, unless an option says
/// otherwise: a restart of a node ships no files.
pub const RETENTION_BYTES: u64 = 1024 * 1024 * 1024;

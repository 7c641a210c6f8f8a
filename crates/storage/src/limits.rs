//! Every limit of the log, with its unit and its reason.

/// Size of the first files of a log, in bytes: a vhost that does nothing must cost little.
pub const SEGMENT_BYTES_MIN: u64 = 1024 * 1024;

/// Size of a file of a log when the disk has no room for more, in bytes: many vhosts can start on a
/// full disk, and each has room for a thousand acknowledgements before it needs the next one.
pub const SEGMENT_BYTES_ON_FULL_DISK: u64 = 64 * 1024;

/// Size of the files of a busy log, in bytes: zeroing one takes tens of milliseconds in the background,
/// rewriting one hardly more.
pub const SEGMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Share of a sealed file's records that must still be alive for it to be left alone, in percent:
/// below it, rewriting frees more than it writes.
pub const LIVE_PERCENT_MIN: u64 = 50;

/// Sealed files smaller than this are merged with their neighbours, in bytes.
pub const SMALL_SEGMENT_BYTES: u64 = 256 * 1024;

/// Files of which the manifest may tell; at 64 MiB each that is 4 TiB.
pub const SEGMENTS_MAX: usize = 65_536;

/// Buffer that an idle batch keeps, in bytes.
pub const IDLE_BATCH_BYTES: usize = 1024 * 1024;

/// Octets of records after which a batch is full and the next record begins another one: large enough
/// that a sync costs little beside the write, small enough that another vhost waits for one only
/// shortly, and far below the 4 GiB that the format has room for.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Octets of a single record: more than the largest message with all its headers takes. With
/// [`BATCH_BYTES_MAX`] in front of it, it fits into the 32 bits of a length.
pub const RECORD_BYTES_MAX: usize = 2 * 1024 * 1024 * 1024;

/// Octets of records that must stand in the same batch: beyond it they are cut all the same, because
/// the length of a batch has 32 bits.
pub const JOINED_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Octets of records in one batch of a file that is written anew: small enough that damage to a
/// batch's header loses little, large enough that headers cost nothing.
pub const REWRITTEN_BATCH_BYTES: usize = 256 * 1024;

/// Octets that records which ended while they waited may keep until their batch is written.
pub const DROPPED_BYTES_MAX: usize = 1024 * 1024;

/// Small neighbours from which on they are merged.
pub const SMALL_SEGMENTS_MAX: usize = 8;

/// Files of pages that are kept for later use when nothing in them is needed.
pub const FREE_PAGE_FILES_MAX: usize = 64;

/// Largest of these, in bytes: a page of one large message must not hold so much.
pub const FREE_PAGE_FILE_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Records of a file about which is decided before the writer may go on.
pub const RECORDS_PER_LOCK: usize = 1024;

/// Largest number of a file or a record: none was ever given, and what is counted from it cannot overflow.
pub const NUMBER_MAX: u64 = 1 << 62;

/// Largest size of a file, in bytes: none was ever so large, and those of all files can be added up.
pub const FILE_BYTES_MAX: u64 = 1 << 44;

/// Words of bits that may be left out between two records of a file before only those are kept that
/// hold any: a megabyte.
pub const EMPTY_WORDS_MAX: usize = 128 * 1024;

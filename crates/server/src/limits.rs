//! Every limit of the shell, with its unit and its reason.

use std::time::Duration;

/// Bytes one read may bring: large enough that system calls do not matter at full speed.
pub(crate) const READ_BYTES: usize = 128 * 1024;

/// Bytes that one read may bring at least, however long what follows from them takes.
pub(crate) const READ_BYTES_MIN: usize = 4 * 1024;

/// How long what one read brings should take: that long a client has to wait for another who never
/// stops. Shorter turns cost system calls.
pub(crate) const TURN: Duration = Duration::from_micros(200);

/// Bytes that a connection may keep of what is not understood yet while it waits for more without a
/// read buffer: all that a client can make it keep before it is tuned.
pub(crate) const PARKED_BYTES_MAX: usize = 16 * 1024;

/// Read buffers each worker thread keeps for its next connection.
pub(crate) const POOLED_BUFFERS_MAX: usize = 16;

/// Commands applied before the vhost's lock is given back.
pub(crate) const COMMANDS_PER_LOCK: usize = 256;

/// How long a thread that serves several vhosts waits for the lock of one: longer than almost every turn
/// of a lock takes, short enough that all other vhosts can wait for it.
pub(crate) const LOCK_WAIT: Duration = Duration::from_millis(1);

/// A turn of a vhost's lock that takes longer is a long one: nobody begins to wait for its end on a thread
/// that serves other vhosts, too.
pub(crate) const LONG_HOLD: Duration = Duration::from_millis(2);

/// How soon the timer, the writer of logs and the pager come back to a vhost whose lock they did not get,
/// in milliseconds.
pub(crate) const LOCK_RETRY_MS: u64 = 2;

/// Bytes that may wait for a client before the broker stops reading from it: what it causes has to
/// go somewhere.
pub(crate) const UNSENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Bytes still waiting at which a connection that was held back goes on.
pub(crate) const UNSENT_BYTES_LOW: u64 = 256 * 1024;

/// Buffer that an idle outbox keeps, in bytes: enough for heartbeats, and every connection has two.
pub(crate) const IDLE_OUTBOX_BYTES: usize = 64;

/// How long an outbox has nothing to write before it counts as idle.
pub(crate) const IDLE_OUTBOX_AFTER: Duration = Duration::from_secs(1);

/// Bytes that the writer of a connection sends before others have their turn: as long as a reader's,
/// about.
pub(crate) const WRITE_TURN_BYTES: u64 = 256 * 1024;

/// Parts of one vectored write.
pub(crate) const WRITE_PARTS: usize = 64;

/// How long the timer rests after a turn in which it has done all that was due, in microseconds: with a
/// hundred thousand deadlines a second it wakes clients for fifty messages instead of for one. Messages
/// are so much later at most.
pub(crate) const TIMER_REST_US: u64 = 500;

/// How long it rests after a turn that was too short for all that was due, in microseconds. A thread
/// that never sleeps is interrupted by the system wherever it is, mostly with the lock of a vhost in its
/// hand, and whoever needs that waits until it goes on; one that sleeps in time is not.
pub(crate) const TIMER_PAUSE_US: u64 = 50;

/// How long the timer does what is due in one vhost before it looks at the others.
pub(crate) const TIMER_TURN: Duration = Duration::from_millis(1);

/// Threads that answer HTTP: a short answer need not wait for a long one.
pub(crate) const HTTP_THREADS: usize = 2;

/// How long requests over HTTP have to be answered when the node stops.
pub(crate) const HTTP_STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a client that is done has to take what is left for it and to leave.
pub(crate) const LINGER_TIMEOUT: Duration = Duration::from_secs(3);

/// Clients that may wait to be accepted; the system may allow fewer.
pub(crate) const LISTEN_BACKLOG: u32 = 4096;

/// Octets that may wait for the disk before whoever adds to them is not read any more. Large batches sync
/// no faster than this, and whoever waits for a confirm waits for two of them.
pub(crate) const PENDING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bodies at least this long are not copied on their way to the log, in bytes: a write of its own for
/// the body costs less than the copy, which is made while the vhost waits.
pub(crate) const UNCOPIED_LOG_BODY_BYTES_MIN: usize = 64 * 1024;

/// Room on the disk that is kept for what makes room again, in bytes, if the disk is large: a start with
/// some hundred vhosts, or some hundred thousand acknowledgements and a file that is written anew.
pub(crate) const RESERVE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Share of a small disk that is kept for that.
pub(crate) const RESERVE_DISK_SHARE: u64 = 16;

/// Bytes free on the disk at a start from which on pages of an earlier life are written over and not
/// removed first, which is quicker.
pub(crate) const REUSED_PAGES_FREE_BYTES_MIN: u64 = 1024 * 1024 * 1024;

/// How often a log that has found no room on the disk looks for it again.
pub(crate) const FULL_DISK_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// How often the logs are looked at for space to get back while the disk is nearly full.
pub(crate) const SHORT_DISK_COMPACTION_INTERVAL: Duration = Duration::from_millis(500);

/// How often the process looks whether its data directory is still where it was.
pub(crate) const DATA_DIR_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Bytes of a batch from which on a thread of its own writes it: a disk needs some milliseconds for so much,
/// for which the batches of other vhosts do not wait.
pub(crate) const LARGE_BATCH_BYTES: usize = 1024 * 1024;

/// Exit code of a broker whose disk failed.
pub(crate) const EXIT_DISK: i32 = 74;

/// Octets of messages that may wait to be put aside before whoever adds to them is not read any more.
pub(crate) const PAGING_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Pages that may wait to be written while a vhost comes back from its log.
pub(crate) const RESTORE_PAGES_MAX: usize = 64;

/// Buffer that is kept for the octets of pages, in bytes.
pub(crate) const PAGE_BUFFER_BYTES: usize = 2 * 1024 * 1024;

/// Messages of a queue that are looked at before the vhost's lock is given back: as many as a page holds,
/// so that none is read twice.
pub(crate) const BROWSED_PER_LOCK: usize = 2048;

/// Pages of a vhost that are read at once for whoever looks at messages: each is in memory meanwhile.
pub(crate) const PAGE_LOOKS_MAX: usize = 2;

/// Memory that the waiting messages of a vhost take at most before long queues are put aside, in
/// bytes, if the memory watermark allows so much.
pub(crate) const RESIDENT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Share of the memory watermark that they may take: several vhosts, deliveries on their way and what
/// the allocator keeps have to go into it, too.
pub(crate) const RESIDENT_SHARE: u64 = 8;

/// Share of the memory watermark that queues without their messages, exchanges and bindings of a vhost may
/// take while the memory alarm is on: beyond it none are added.
pub(crate) const TOPOLOGY_SHARE: u64 = 4;

/// What they may take then wherever the watermark is, in bytes: some ten thousand queues, so that consumers
/// come back that make room.
pub(crate) const TOPOLOGY_BYTES_MIN: u64 = 32 * 1024 * 1024;

/// Share of the memory watermark that deliveries of a vhost may take that are not acknowledged; without a
/// watermark there is no bound.
pub(crate) const UNACKED_SHARE: u64 = 4;

/// How long a start waits for the disk to take what a vhost has to write before it goes on: a disk that is
/// full takes nothing before somebody connects and makes room.
pub(crate) const CATCH_UP_STALL_MAX: Duration = Duration::from_secs(2);

/// How long it waits before it looks again.
pub(crate) const CATCH_UP_PAUSE: Duration = Duration::from_millis(1);

/// Batches after which the log is looked at for space to get back.
pub(crate) const COMPACTION_CHECK_BATCHES: u32 = 64;

/// Time between two lines of the log that tell how far a vhost is restored.
pub(crate) const RESTORE_REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// Pause of a listener that cannot accept, because the process has no file descriptors left.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The same after a connection was closed to make room, which takes a moment.
pub(crate) const EVICTION_PAUSE: Duration = Duration::from_millis(5);

/// File descriptors that clients do not get, at most a quarter of all: a log that cannot open its next
/// file ends the broker.
pub(crate) const RESERVED_DESCRIPTORS: u64 = 64;

/// Time between two warnings that a listener cannot accept.
pub(crate) const ACCEPT_WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// HTTP connections of one listener at the same time, at most an eighth of the file descriptors: browsers
/// and scrapers keep a few open each. One more takes the place of the connection with the least claim.
pub(crate) const HTTP_CONNECTIONS_MAX: usize = 128;

/// Share of the file descriptors that AMQP leaves to HTTP at most, as a divisor.
pub(crate) const HTTP_DESCRIPTORS_SHARE: u64 = 8;

/// AMQP connections that have not opened a vhost yet, at most a quarter of the file descriptors: a
/// stranger costs up to 20 kB, and after a restart all clients come at once. One more takes the place of
/// the connection with the least claim.
pub(crate) const AMQP_HANDSHAKES_MAX: usize = 8192;

/// Share of the file descriptors that AMQP connections without a vhost take at most, as a divisor.
pub(crate) const AMQP_HANDSHAKES_SHARE: u64 = 4;

/// How long an HTTP client may go without taking a byte: that is its time to ask, to read and to be
/// idle, however slowly it sends.
pub(crate) const HTTP_TIMEOUT: Duration = Duration::from_secs(30);

/// Octets of `identity.product` and of `identity.version`: clients show them, and the frame that tells them
/// has 4096.
pub(crate) const IDENTITY_BYTES_MAX: usize = 64;

/// Octets of a TLS connection read at once.
pub(crate) const TLS_READ_BYTES: usize = 32 * 1024;

/// How often the files of certificates are looked at.
pub(crate) const TLS_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How long clients have to agree when the broker stops.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Time between two samples for statistics if the configuration does not say; RabbitMQ's.
pub(crate) const STATISTICS_INTERVAL: Duration = Duration::from_secs(5);

/// Shortest time between two samples that may be configured, in milliseconds.
pub(crate) const STATISTICS_INTERVAL_MIN_MS: u64 = 100;

/// Queues that statistics are copied of before the vhost's lock is given back.
pub(crate) const SAMPLED_PER_LOCK: usize = 512;

/// Queues that a dead-letter map copies before the vhost's lock is given back: less than a millisecond.
pub(crate) const MAPPED_PER_LOCK: usize = 256;

/// How often the process looks at its memory and its disk.
pub(crate) const ALARM_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// How often memory that is due is given back to the system.
pub(crate) const GIVE_BACK_INTERVAL: Duration = Duration::from_millis(500);

/// Bytes that are allocated and freed for that: more than the allocator cuts from a page of many.
pub(crate) const GIVE_BACK_BYTES: usize = 1024 * 1024;

/// Bytes above the limit of the disk from which on it is looked at more often: no disk takes more
/// between two looks.
pub(crate) const DISK_NEAR_BYTES: u64 = 1024 * 1024 * 1024;

/// How often the process looks at them when so little is left on the disk: publishers must be blocked
/// before a fast one is full.
pub(crate) const DISK_NEAR_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Users whose right password is recognised without a hash, some 200 bytes each.
pub(crate) const RIGHT_PASSWORDS_MAX: usize = 16_384;

/// Wrong passwords that are recognised, the newest, some 150 bytes each.
pub(crate) const WRONG_PASSWORDS_MAX: usize = 8192;

/// Password hashes computed at the same time: each costs 19 MiB and tens of milliseconds.
pub(crate) const HASHING_MAX: usize = 2;

/// Logins over AMQP that wait to be checked: as many as hashes fit into the time of a handshake, a few times. One more makes the largest crowd smaller; whoever has logged in before does not wait.
pub(crate) const LOGINS_WAITING_MAX: usize = 2048;

/// The same over HTTP: half the connections of a listener, so that others always have places.
pub(crate) const LOGINS_WAITING_HTTP_MAX: usize = HTTP_CONNECTIONS_MAX / 2;

/// Sources, and accounts of sources, whose failures are remembered, some 200 bytes each.
pub(crate) const LOGIN_HISTORY_MAX: usize = 8192;

/// After this time a wrong password counts half.
pub(crate) const LOGIN_FAILURES_HALF_LIFE: Duration = Duration::from_secs(60);

/// Wrong passwords of an account that are answered at once, whoever waits: a person's typing errors.
pub(crate) const LOGIN_FAILURES_FREE: u32 = 8;

/// Logins that wait before wrong passwords are answered late: a second of hashing.
pub(crate) const LOGIN_CROWD: usize = 16;

/// How long the answer to a wrong password is held back then: a crowd of a thousand guesses no faster
/// than passwords are hashed.
pub(crate) const LOGIN_PENALTY: Duration = Duration::from_secs(20);

/// Topic permissions of one user in one vhost: both patterns of each are compiled for every connection.
pub(crate) const TOPIC_PERMISSIONS_MAX: usize = 256;

/// Niceness of the threads that do it: while others have something to do, they get a tenth of a
/// processor.
pub(crate) const HASHING_NICENESS: i32 = 10;

/// Answers of metrics that are made at once: one of ten thousand queues takes a processor for a while, and
/// nobody has to log in for it.
pub(crate) const METRICS_AT_ONCE: usize = 1;

/// Messages that are redriven before the vhost's lock is given back.
pub(crate) const REDRIVEN_PER_LOCK: usize = 256;

/// Redrives that run at the same time: each takes its turns of the vhosts' locks and of the log.
pub(crate) const REDRIVES_RUNNING_MAX: usize = 16;

/// Redrives that have ended of which somebody may still want to know how.
pub(crate) const REDRIVES_REMEMBERED_MAX: usize = 256;

/// Messages that a dry run of a redrive looks at, while somebody waits for its answer.
pub(crate) const REDRIVE_DRY_RUN_MAX: u64 = 100_000;

/// Messages of which a dry run shows what they are.
pub(crate) const REDRIVE_SAMPLE_MAX: usize = 10;

/// Queues that a dry run names; messages that go elsewhere are counted all the same.
pub(crate) const REDRIVE_TARGETS_MAX: usize = 1000;

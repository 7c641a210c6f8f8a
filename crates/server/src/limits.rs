//! Limits of the shell, each with its unit and its reason. One file, for the reason that `docs/reference/limits.md` is
//! compared with it, and that a limit is chosen beside those that it has to fit.

use std::ops::RangeInclusive;
use std::time::Duration;

pub(crate) use replica::limits::{
    FULL_DISK_RETRY_INTERVAL, LEADER_CHECK_INTERVAL, LEADER_WAIT, LOCK_RETRY_MS, PEER_AWAY,
};

/// Bytes of one read: large enough that system calls do not matter at full speed.
pub(crate) const READ_BYTES: usize = 128 * 1024;

/// Smallest read size, in bytes, even if processing takes longer than a turn.
pub(crate) const READ_BYTES_MIN: usize = 4 * 1024;

/// Target duration for processing one read: a client waits no longer than this for another one that sends
/// without a pause. Shorter turns cost system calls.
pub(crate) const TURN: Duration = Duration::from_micros(200);

/// Bytes of incomplete input that a waiting connection may keep without a read buffer: the most that a client
/// can send before its connection is tuned.
pub(crate) const PARKED_BYTES_MAX: usize = 16 * 1024;

/// Read buffers that each worker thread keeps for its next connection.
pub(crate) const POOLED_BUFFERS_MAX: usize = 16;

/// Commands applied before the vhost's lock is released.
pub(crate) const COMMANDS_PER_LOCK: usize = 256;

/// Work of commands after which the vhost's lock is released before the next command: some milliseconds, with that of
/// the last command, so that a few commands with much work do not add up.
pub(crate) const WORK_PER_LOCK: u64 = 4096;

/// Time that a thread that serves several vhosts waits for the lock of one: longer than the lock is usually
/// held, short enough for all other vhosts to wait.
pub(crate) const LOCK_WAIT: Duration = Duration::from_millis(1);

/// Time after which a lock counts as held for long: a thread that serves several vhosts does not begin to
/// wait for it.
pub(crate) const LONG_HOLD: Duration = Duration::from_millis(2);

/// Interval of looks for a hold of a lock that keeps the runtime from serving other clients: they wait for two looks at the
/// most.
pub(crate) const HOLD_LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Looks in a row without a hold after which they end until the next one: 100 ms.
pub(crate) const HOLD_LOOKS_IDLE: u32 = 20;

/// Bytes waiting for a client above which the broker stops reading from it, because the answers to its
/// commands need a place.
pub(crate) const UNSENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Bytes still waiting at which the broker resumes reading from a client.
pub(crate) const UNSENT_BYTES_LOW: u64 = 256 * 1024;

/// Buffer capacity that an idle outbox keeps, in bytes: enough for heartbeats. Every connection has two.
pub(crate) const IDLE_OUTBOX_BYTES: usize = 64;

/// Time without output after which an outbox counts as idle.
pub(crate) const IDLE_OUTBOX_AFTER: Duration = Duration::from_secs(1);

/// Bytes that the writer of a connection sends per turn: about as long as a turn of a reader.
pub(crate) const WRITE_TURN_BYTES: u64 = 256 * 1024;

/// Slices of one vectored write.
pub(crate) const WRITE_PARTS: usize = 64;

/// Rest of the timer after a turn that did all due work, in microseconds. With a hundred thousand deadlines
/// per second, clients wake up for fifty messages at a time instead of for one. Messages expire later by at
/// most this time.
pub(crate) const TIMER_REST_US: u64 = 500;

/// Rest of the timer after a turn that did not finish all due work, in microseconds. A thread that never
/// sleeps is preempted anywhere, usually while it holds the lock of a vhost, and all others then wait for
/// that lock. A thread that sleeps in time is not preempted.
pub(crate) const TIMER_PAUSE_US: u64 = 50;

/// Time that the timer works for one vhost before it serves the others.
pub(crate) const TIMER_TURN: Duration = Duration::from_millis(1);

/// Threads for HTTP: a short answer need not wait for a long one.
pub(crate) const HTTP_THREADS: usize = 2;

/// Microseconds by which a reading of the wall clock may differ from what the broker's time says, until the difference is
/// taken for a correction of the wall clock.
pub(crate) const CLOCKS_AGREE_US: u64 = 1000;

/// Readings of which the least tells the distance between the wall clock and the broker's time, when it is not known.
pub(crate) const DISTANCE_READINGS: usize = 16;

/// Time for pending HTTP requests when the node stops.
pub(crate) const HTTP_STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for which bytes may wait for a client that reads nothing of them; the client is gone then, even if it sends
/// heartbeats.
pub(crate) const UNREAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for a disconnecting client to read its remaining data and close.
pub(crate) const LINGER_TIMEOUT: Duration = Duration::from_secs(3);

/// Clients that may wait to be accepted; the operating system may allow fewer.
pub(crate) const LISTEN_BACKLOG: u32 = 4096;

/// Bytes that may wait for the disk before the broker stops reading from connections that add to them. Larger
/// batches do not sync faster, and a publisher waits for up to two batches.
pub(crate) const PENDING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Disk space reserved for operations that free space, in bytes, on a large disk: enough for a start with
/// some hundred vhosts, or for some hundred thousand acknowledgements and one file that is rewritten.
pub(crate) const RESERVE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Divisor for the reserved share of a small disk.
pub(crate) const RESERVE_DISK_SHARE: u64 = 16;

/// Free disk space at the start above which pages of the previous run are overwritten instead of removed
/// first, in bytes; overwriting is quicker.
pub(crate) const REUSED_PAGES_FREE_BYTES_MIN: u64 = 1024 * 1024 * 1024;

/// Interval at which logs are compacted while the disk is nearly full.
pub(crate) const SHORT_DISK_COMPACTION_INTERVAL: Duration = Duration::from_millis(500);

/// Interval at which the process checks that its data directory is still in place.
pub(crate) const DATA_DIR_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Bytes of a batch above which a separate thread writes it: a disk takes some milliseconds for so many
/// bytes, and the batches of other vhosts must not wait.
pub(crate) const LARGE_BATCH_BYTES: usize = 1024 * 1024;

/// Time for which the slowest write to a log is remembered, and half as long again on average.
pub(crate) const WRITE_TIMES_WINDOW: Duration = Duration::from_secs(60);

/// Time for which refused logins and connections are remembered for findings, and half as long again on average.
pub(crate) const REFUSALS_WINDOW: Duration = Duration::from_secs(120);

/// Sources with users, and reasons, of refusals that are counted per window; others are not.
pub(crate) const REFUSALS_MAX: usize = 256;

/// Milliseconds of a step of the system's clock between two looks that is reported; drift is far smaller.
pub(crate) const CLOCK_STEP_MS_MIN: u64 = 1000;

/// Time that a step of the start may take before the service manager gives up, such as restoring one file of a
/// log: far longer than on a slow disk.
pub(crate) const START_STEP_TIME_MAX: Duration = Duration::from_mins(5);

/// Smallest interval of reports to the service manager's watchdog.
pub(crate) const WATCHDOG_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Time after which the lock of a vhost counts as stuck: a hundred times the longest work under it, and longer
/// than a busy machine keeps a thread from running.
pub(crate) const STUCK_HOLD: Duration = Duration::from_secs(10);

/// Interval at which the process looks whether it runs.
pub(crate) const OWN_LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Time between two looks that counts as time that the process has run; the rest of it is a standstill, for which nobody else
/// is to blame.
pub(crate) const OWN_STANDSTILL_MIN: Duration = Duration::from_millis(250);

/// Shortest standstill of the process that is logged.
pub(crate) const OWN_STANDSTILL_TOLD: Duration = Duration::from_secs(1);

/// Exit code of a broker that cannot start before its configuration, or a file that it names, is changed.
pub const EXIT_CONFIG: u8 = 78;

/// Exit code of a broker whose disk failed.
pub(crate) const EXIT_DISK: i32 = 74;

/// Bytes of messages that may wait to be written to pages before the broker stops reading from connections
/// that add to them.
pub(crate) const PAGING_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Pages that may wait to be written during recovery of a vhost.
pub(crate) const RESTORE_PAGES_MAX: usize = 64;

/// Records of a log that are passed on together from the thread that reads the log to the one that applies them: enough
/// that a wake-up costs little, few enough that they stay in the processor's caches. Shorter logs need no second thread.
pub(crate) const RESTORE_BATCH_RECORDS: usize = 256;

/// Batches of records that may wait to be applied during recovery of a vhost.
pub(crate) const RESTORE_BATCHES_MAX: usize = 16;

/// Buffer capacity kept for encoded pages, in bytes.
pub(crate) const PAGE_BUFFER_BYTES: usize = 2 * 1024 * 1024;

/// Messages of a queue that are browsed before the vhost's lock is released: as many as a page holds, so that
/// no page is read twice.
pub(crate) const BROWSED_PER_LOCK: usize = 2048;

/// Pages of scheduled messages that are in memory at once while messages are browsed: each takes half a mebibyte.
pub(crate) const BROWSED_PAGES_MAX: usize = 32;

/// Deaths of the history of dead letters that are copied before the vhost's lock is released: a fraction of a
/// millisecond.
pub(crate) const DEATHS_PER_LOCK: usize = 2048;

/// Time between two writes of the history of dead letters: a crash may lose the deaths in between.
pub(crate) const DEATH_WRITE_INTERVAL: Duration = Duration::from_secs(2);

/// Slices of the history of dead letters of a vhost that are written before other vhosts have their turn.
pub(crate) const DEATH_SLICES_WRITTEN_MAX: usize = 64;

/// Bytes of a death in the files of the history, as a line of JSON; longer lines are damaged.
pub(crate) const DEATH_LINE_BYTES_MAX: u64 = 64 * 1024;

/// Pages of a vhost that are read at the same time for browsing; each is in memory meanwhile.
pub(crate) const PAGE_LOOKS_MAX: usize = 2;

/// Memory of a vhost's waiting messages above which long queues are written to pages, in bytes, if the memory
/// watermark allows as much.
pub(crate) const RESIDENT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Divisor of the memory watermark for the waiting messages of one vhost: several vhosts, deliveries in
/// flight and memory kept by the allocator must also fit.
pub(crate) const RESIDENT_SHARE: u64 = 8;

/// Divisor of the memory watermark for queues (without messages), exchanges and bindings of a vhost while the
/// memory alarm is in effect; above it no more are added.
pub(crate) const TOPOLOGY_SHARE: u64 = 4;

/// Memory of queues, exchanges and bindings that is always allowed, in bytes: some ten thousand queues, so
/// that consumers can return and make room.
pub(crate) const TOPOLOGY_BYTES_MIN: u64 = 32 * 1024 * 1024;

/// Divisor of the memory watermark for unacknowledged deliveries of a vhost; without a watermark there is no
/// bound.
pub(crate) const UNACKED_SHARE: u64 = 4;

/// Time that a start waits for a disk that makes no progress: a full disk makes none before a client connects
/// and makes room.
pub(crate) const CATCH_UP_STALL_MAX: Duration = Duration::from_secs(2);

/// Interval between two checks of that progress.
pub(crate) const CATCH_UP_PAUSE: Duration = Duration::from_millis(1);

/// Batches after which the log is checked for space to reclaim.
pub(crate) const COMPACTION_CHECK_BATCHES: u32 = 64;

/// Interval between two log lines about the progress of a recovery.
pub(crate) const RESTORE_REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// Pause of a listener that cannot accept, because the process has no free file descriptors.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Pause of a listener after a connection was closed to make room, which takes a moment.
pub(crate) const EVICTION_PAUSE: Duration = Duration::from_millis(5);

/// File descriptors that clients do not get, at most a quarter of all: a log that cannot open its next file
/// ends the broker.
pub(crate) const RESERVED_DESCRIPTORS: u64 = 64;

/// Interval between two warnings that a listener cannot accept.
pub(crate) const ACCEPT_WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// HTTP connections of one listener, at most an eighth of the file descriptors: browsers and scrapers keep a
/// few open each. A further connection replaces the one with the least claim.
pub(crate) const HTTP_CONNECTIONS_MAX: usize = 128;

/// Divisor of the file descriptors that AMQP leaves to HTTP.
pub(crate) const HTTP_DESCRIPTORS_SHARE: u64 = 8;

/// AMQP connections without an open vhost, at most a quarter of the file descriptors: each costs up to 20 kB,
/// and after a restart all clients connect at once. A further connection replaces the one with the least
/// claim.
pub(crate) const AMQP_HANDSHAKES_MAX: usize = 8192;

/// Divisor of the file descriptors for AMQP connections without an open vhost.
pub(crate) const AMQP_HANDSHAKES_SHARE: u64 = 4;

/// Time that an HTTP client may go without taking a byte: the time to send a request, to read the answer and
/// to be idle, however slowly the client sends. Not while it waits for the answer to a whole request.
pub(crate) const HTTP_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest `identity.product` and `identity.version`, in bytes: clients show both, and the frame that carries
/// them has 4096 bytes.
pub(crate) const IDENTITY_BYTES_MAX: usize = 64;

/// Bytes of a hello: two names and some numbers.
pub(crate) const HELLO_BYTES_MAX: usize = 1024;

/// Bytes that are read from a peer before it has proved that it knows the secret of the cluster.
pub(crate) const HANDSHAKE_BYTES_MAX: usize = 4096;

/// Time for the handshake of a link, TLS included.
pub(crate) const LINK_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections for links that have proved nothing: a cluster has few nodes. A further one replaces the one that has
/// waited longest.
pub(crate) const LINK_HANDSHAKES_MAX: usize = 64;

/// Time for a node to accept a connection.
pub(crate) const LINK_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Shortest and longest pause between two attempts to open a link: a restarted node is back at once, and one that is
/// away costs nothing.
pub(crate) const LINK_RETRY_MIN: Duration = Duration::from_millis(50);
pub(crate) const LINK_RETRY_MAX: Duration = Duration::from_secs(1);

/// Shortest time between two pings on a link, for those that leave with other frames.
pub(crate) const LINK_PING_INTERVAL: Duration = Duration::from_millis(100);

/// Longest time between two pings on a link, a little more than between heartbeats: one leaves alone if there are no
/// other frames.
pub(crate) const LINK_PING_ALONE_INTERVAL: Duration = Duration::from_millis(330);

/// Time without a byte after which a link counts as lost: three pings, or more.
pub(crate) const LINK_SILENCE: Duration = Duration::from_secs(1);

/// Time without a byte after which the operating system asks the other end of a stream of a client whether it is there, the
/// interval at which it asks again, and the questions without an answer after which the stream is closed: the other node
/// may have ended the client while octets were lost.
pub(crate) const STREAM_PROBE_AFTER: Duration = Duration::from_secs(15);
pub(crate) const STREAM_PROBE_INTERVAL: Duration = Duration::from_secs(5);
pub(crate) const STREAM_PROBES_MAX: u32 = 3;

/// Time without progress of a write after which a link counts as lost: its peer lives, but reads nothing.
pub(crate) const LINK_STALL: Duration = Duration::from_secs(5);

/// Time for the last frames of a link that closes.
pub(crate) const LINK_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Streams that a node dials to one peer at once: all peers together stay below [`LINK_HANDSHAKES_MAX`].
pub(crate) const STREAM_DIALS_MAX: usize = 8;

/// Time to open a stream: a turn, the connection, the handshake.
pub(crate) const STREAM_DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Streams of a node with all its peers, in both directions; each takes a file descriptor.
pub(crate) const STREAMS_MAX: usize = 100_000;

/// Streams that one node opens to another, by purpose: clients as many as a node may have that connect all at once;
/// requests over HTTP as many as two nodes pass on at once; files a few vhosts at once.
pub(crate) const CLIENT_STREAMS_MAX: usize = 65_536;
pub(crate) const HTTP_STREAMS_MAX: usize = 256;
pub(crate) const SHIPMENT_STREAMS_MAX: usize = 16;
pub(crate) const JOIN_STREAMS_MAX: usize = 4;

/// Nodes of a cluster. Each votes for each vhost.
pub(crate) const CLUSTER_NODES_MAX: usize = replication::limits::VOTERS_MAX;

/// Bytes of a question or an answer about joining: the list of the nodes, with all names that were forgotten.
pub(crate) const JOIN_MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Time for the answer to a node that asks to join: longer than [`METADATA_WAIT`].
pub(crate) const JOIN_ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// Time after which a node asks again to join a cluster in which nobody can decide now.
pub(crate) const JOIN_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two questions of a running node that has not met all others, whether they belong to a cluster already.
pub(crate) const JOIN_SEEK_INTERVAL: Duration = Duration::from_secs(5);

/// Names in the list of nodes, those of forgotten ones included.
pub(crate) const FORGOTTEN_NODES_MAX: usize = 1000;

/// Octets of an `Adopt` and of its answer: a client's properties, of which a frame before the tuning holds 8192, and a
/// few texts.
pub(crate) const ADOPT_BYTES_MAX: usize = 64 * 1024;

/// Octets of a text in an `Adopt`; longer names in a client's certificate are cut.
pub(crate) const ADOPT_TEXT_BYTES_MAX: usize = 4096;

/// Time for an `Adopt` to arrive.
pub(crate) const ADOPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Threads for links; one encrypts a gigabyte a second.
pub(crate) const LINK_THREADS: usize = 1;

/// Bytes of a chunk of a link: a short frame waits for one chunk, half a millisecond at a gigabit.
pub(crate) const CHUNK_BYTES_MAX: usize = 64 * 1024;

/// Bytes that a link writes at once.
pub(crate) const LINK_WRITE_BYTES: usize = 128 * 1024;

/// Bytes in the queue of a link that whoever flushes it writes; the thread of the links writes longer ones, so that a
/// write to the disk need not wait for them.
pub(crate) const LINK_FLUSH_BYTES_MAX: usize = 64 * 1024;

/// Room for one read from a link, in bytes.
pub(crate) const LINK_READ_BYTES: usize = 128 * 1024;

/// Bytes of a frame of a link: a batch with the largest body that may be configured, and its other records.
pub(crate) const LINK_FRAME_BYTES_MAX: usize = 640 * 1024 * 1024;

/// Bytes of a frame of the link itself: an introduction with some ten thousand vhosts.
pub(crate) const CONTROL_FRAME_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of frames of one kind that wait for a link; further frames are dropped, and sent again by the replication. As
/// much as may be proposed and not committed.
pub(crate) const LINK_QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Frames of one kind that wait for a link: a few for each of some thousand vhosts.
pub(crate) const LINK_QUEUE_FRAMES_MAX: usize = 16 * 1024;

/// Interval at which the same problem with a link is logged again.
pub(crate) const LINK_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Interval between two problems of one peer or stranger that are logged, when they are different ones.
pub(crate) const LINK_LOG_INTERVAL_MIN: Duration = Duration::from_secs(5);

/// Time without a link after which a node asks a peer that dials it for the reason, the first time; later at that interval.
pub(crate) const LINK_QUESTION_AFTER: Duration = Duration::from_secs(5);

/// Times at which a link may take the place of an open one of the same peer within an interval: with more, two processes
/// have the name of the peer.
pub(crate) const LINKS_REPLACED_MAX: usize = 10;
pub(crate) const LINKS_REPLACED_INTERVAL: Duration = Duration::from_secs(60);

/// Time for which a request to forget a node waits for the new leaders of vhosts that the node has led, and the interval
/// at which it looks.
pub(crate) const FORGET_SETTLE: Duration = Duration::from_secs(3);
pub(crate) const FORGET_SETTLE_INTERVAL: Duration = Duration::from_millis(50);

/// Time within which another node answers a node that leaves the cluster by a reset.
pub(crate) const FORGET_TIMEOUT: Duration = Duration::from_secs(15);

/// Peers and strangers whose problems are logged within that interval.
pub(crate) const LINK_PROBLEMS_MAX: usize = 64;

/// Addresses whose names are looked up to find the nodes of a cluster: two for each node, of IPv4 and of IPv6.
pub(crate) const DNS_ADDRESSES_MAX: usize = 128;

/// Bytes of the host name of all nodes: what DNS allows.
pub(crate) const HOST_NAME_BYTES_MAX: usize = 253;

/// Pause between two looks at DNS for the nodes of a cluster.
pub(crate) const DNS_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which the reason to wait for DNS is logged again, and between two lines with different reasons.
pub(crate) const DNS_LOG_INTERVAL: Duration = Duration::from_secs(60);
pub(crate) const DNS_LOG_INTERVAL_MIN: Duration = Duration::from_secs(5);

/// Shortest time between two frames with which a node tells the others how many clients users with limits have.
pub(crate) const USERS_TOLD_INTERVAL: Duration = Duration::from_millis(50);

/// Users with limits and connections to one node that the node tells the others about; the clients of more are counted
/// for each node.
pub(crate) const USERS_TOLD_MAX: usize = 4096;

/// Bytes of the name of a user: those of certificates are longer than other names. All that are told at once fit in a frame.
pub(crate) const USER_NAME_BYTES_MAX: usize = 1000;

/// Interval at which a node looks whether it is connected to a majority.
pub(crate) const MAJORITY_LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which nodes tell each other facts to show.
pub(crate) const FACTS_INTERVAL: Duration = Duration::from_secs(5);

/// Pings from which the distance of a peer's wall clock is taken: those of five seconds.
pub(crate) const CLOCK_SKEW_PINGS: usize = 50;

/// Longest name of a node, in bytes.
pub(crate) const NODE_NAME_BYTES_MAX: usize = 255;

/// Bytes of the secret of a cluster. Whoever has seen a handshake can try shorter ones.
pub(crate) const CLUSTER_SECRET_BYTES: RangeInclusive<usize> = 8..=1024;

/// Bytes of a secret below which the start warns: RabbitMQ generates as many letters.
pub(crate) const CLUSTER_SECRET_BYTES_GOOD: usize = 20;

/// Bytes of one read from a TLS connection.
pub(crate) const TLS_READ_BYTES: usize = 32 * 1024;

/// Interval at which certificate files are checked for changes.
pub(crate) const TLS_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Time for clients to close their connections when the broker stops.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Default interval of statistics samples, as in RabbitMQ.
pub(crate) const STATISTICS_INTERVAL: Duration = Duration::from_secs(5);

/// Shortest interval of statistics samples that may be configured, in milliseconds.
pub(crate) const STATISTICS_INTERVAL_MIN_MS: u64 = 100;

/// Queues sampled before the vhost's lock is released.
pub(crate) const SAMPLED_PER_LOCK: usize = 512;

/// Queues that a dead-letter map copies before the vhost's lock is released: less than a millisecond.
pub(crate) const MAPPED_PER_LOCK: usize = 256;

/// Interval at which the process checks memory and disk.
pub(crate) const ALARM_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Time for which memory, or disk space, must be within its limit until the alarm ends: two compactions of a short disk,
/// each of which may make room for a moment.
pub(crate) const ALARM_WELL_TIME: Duration = Duration::from_secs(1);

/// Time for which the alarm of another node blocks publishers, while a majority of the nodes is well: one full disk must
/// not stop the vhosts for good, and an operator, or consumers, have a minute to make room.
pub(crate) const VOTER_ALARM_TIME_MAX: Duration = Duration::from_secs(60);

/// Time without the alarm after which another node may block publishers for [`VOTER_ALARM_TIME_MAX`] again: if moments
/// without it were enough, a disk that is short for good would block them for good.
pub(crate) const VOTER_WELL_TIME: Duration = Duration::from_secs(60);

/// Distance to the disk limit below which free space is checked more often, in bytes: no disk writes more
/// between two checks.
pub(crate) const DISK_NEAR_BYTES: u64 = 1024 * 1024 * 1024;

/// Interval of these more frequent checks: publishers must be blocked before a fast disk is full.
pub(crate) const DISK_NEAR_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Growth of the memory that checks of the memory reckon with, in bytes a millisecond: the next check comes before the
/// watermark is reached at this rate.
pub(crate) const MEMORY_GROWTH_BYTES_PER_MS: u64 = 1_000_000;

/// Shortest interval of checks of the memory.
pub(crate) const MEMORY_NEAR_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Users whose right password is recognised without hashing; some 200 bytes each.
pub(crate) const RIGHT_PASSWORDS_MAX: usize = 16_384;

/// Recent wrong passwords that are recognised without hashing; some 150 bytes each.
pub(crate) const WRONG_PASSWORDS_MAX: usize = 8192;

/// Passwords hashed at the same time: each hash takes 19 MiB and tens of milliseconds.
pub(crate) const HASHING_MAX: usize = 2;

/// Waiting logins over AMQP: a few times as many as can be hashed within the time of a handshake. A further
/// login sheds one of the largest crowd. Clients that have logged in before do not wait.
pub(crate) const LOGINS_WAITING_MAX: usize = 2048;

/// Waiting logins over HTTP: half the connections of a listener, so that others always have places.
pub(crate) const LOGINS_WAITING_HTTP_MAX: usize = HTTP_CONNECTIONS_MAX / 2;

/// Sources, and accounts of sources, whose failures are remembered; some 200 bytes each.
pub(crate) const LOGIN_HISTORY_MAX: usize = 8192;

/// Half-life of a wrong password in the history of failures.
pub(crate) const LOGIN_FAILURES_HALF_LIFE: Duration = Duration::from_secs(60);

/// Wrong passwords of an account that are answered at once, however many logins wait: typing errors.
pub(crate) const LOGIN_FAILURES_FREE: u32 = 8;

/// Waiting logins above which wrong passwords are answered late: about a second of hashing.
pub(crate) const LOGIN_CROWD: usize = 16;

/// Delay of the answer to a wrong password: with it, a thousand clients guess no faster than passwords are
/// hashed.
pub(crate) const LOGIN_PENALTY: Duration = Duration::from_secs(20);

/// Topic permissions of one user in one vhost: both patterns of each are compiled for every connection.
pub(crate) const TOPIC_PERMISSIONS_MAX: usize = 256;

/// Niceness of the hashing threads: while other threads have work, they get a tenth of a processor.
pub(crate) const HASHING_NICENESS: i32 = 10;

/// Metrics answers computed at the same time: an answer for ten thousand queues occupies a processor for a
/// while, and needs no login.
pub(crate) const METRICS_AT_ONCE: usize = 1;

/// Messages redriven before the vhost's lock is released.
pub(crate) const REDRIVEN_PER_LOCK: usize = 256;

/// Redrives that run at the same time: each takes turns of the vhosts' locks and of the log.
pub(crate) const REDRIVES_RUNNING_MAX: usize = 16;

/// Bytes of the request of a redrive as the disk keeps it, most of which may be ids of messages.
pub(crate) const REDRIVE_REQUEST_BYTES_MAX: usize = 1024 * 1024;

/// The shortest time between two writes of the progress of a redrive.
pub(crate) const REDRIVE_PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Times that a node tries a redrive that it is hindered to go on with, such as by its disk, without a message that is moved,
/// and the pause between two of them: a minute.
pub(crate) const REDRIVE_TRIES_MAX: u32 = 60;
pub(crate) const REDRIVE_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Time within which a node that begins to lead a vhost looks for the redrives in its log.
pub(crate) const REDRIVE_LEADS_INTERVAL: Duration = Duration::from_millis(200);

/// Messages that a redrive with a limit may move before its progress is on the disk: so many may count as
/// moved after a kill although they have not been.
pub(crate) const REDRIVE_UNWRITTEN_MAX: u64 = 1024;

/// Times that a redrive of kept dead letters goes through all of them at the most: each round of vain offers puts
/// dead letters behind the position of the redrive.
pub(crate) const REDRIVE_OFFERS_MAX: u64 = 8;

/// Bytes of the file of a redrive: its request, and names and numbers.
pub(crate) const REDRIVE_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Files of redrives that a start reads, the newest; there are more only if something else wrote them.
pub(crate) const REDRIVES_READ_MAX: usize = 2 * (REDRIVES_REMEMBERED_MAX + REDRIVES_RUNNING_MAX);

/// Time that a stopping node gives its redrives to write their progress.
pub(crate) const REDRIVE_STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Finished redrives that are remembered, for clients that ask for the result.
pub(crate) const REDRIVES_REMEMBERED_MAX: usize = 256;

/// Messages that a dry run of a redrive browses while its client waits.
pub(crate) const REDRIVE_DRY_RUN_MAX: u64 = 100_000;

/// Sample messages that a dry run shows.
pub(crate) const REDRIVE_SAMPLE_MAX: usize = 10;

/// Items of each kind of change that the dry run of an import names in a family; all are counted.
pub(crate) const PREVIEWED_ITEMS_MAX: u64 = 20;

/// Items that the answer to an import names because it refuses or leaves them out; all are counted.
pub(crate) const IMPORT_ITEMS_NAMED_MAX: usize = 50;

/// Differences of one item that the dry run of an import names.
pub(crate) const PREVIEWED_DIFFERENCES_MAX: usize = 16;

/// Bytes of a value that the dry run of an import shows.
pub(crate) const PREVIEWED_VALUE_BYTES_MAX: usize = 256;

/// Queues that a dry run names; messages to other queues are only counted.
pub(crate) const REDRIVE_TARGETS_MAX: usize = 1000;

/// Scheduled messages that one request cancels before the vhost's lock is released.
pub(crate) const SCHEDULES_CANCELLED_PER_LOCK: usize = 256;

/// Scheduled messages that one request cancels; its answer says that more may match.
pub(crate) const SCHEDULES_CANCELLED_MAX: u64 = 100_000;

/// Pause of a backup after each megabyte that it copies: 50 MB/s at most, so that the disk keeps serving the logs.
pub(crate) const BACKUP_COPY_PAUSE: Duration = Duration::from_millis(20);

/// Bytes of the path of a backup, the longest path that Linux takes.
pub(crate) const BACKUP_PATH_BYTES_MAX: usize = 4096;

/// Bytes of the newest entries of a replicated vhost that stay in memory: members that are a little behind get them
/// without a read.
pub(crate) const ENTRY_TAIL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of committed entries that wait for their application; a follower with more takes no entries until it has
/// caught up.
pub(crate) const UNAPPLIED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of frames of other nodes that wait for the replicator; more are dropped, and sent again by their senders.
pub(crate) const FRAMES_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Bytes of a file that are shipped at once: a receiver writes as much, and a cut costs no more.
pub(crate) const SHIPMENT_CHUNK_BYTES: usize = 256 * 1024;

/// Bytes of a message between two nodes about a shipment: the plan of a log with the most files.
pub(crate) const SHIPMENT_MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Time within which the other node of a shipment sends or takes something.
pub(crate) const SHIPMENT_IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Time within which the members of a group are changed for a shipment, and within which what has arrived is checked.
pub(crate) const SHIPMENT_PREPARE_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for which the files of a shipment that was cut off are kept, so that the receiver goes on where it was.
pub(crate) const SHIPMENT_KEPT_TIME: Duration = Duration::from_secs(600);

/// Time within which a replica gets what its leader has confirmed, for a backup.
pub(crate) const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(60);

/// Time within which a leader answers a node that makes a backup.
pub(crate) const BARRIER_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for which a backup waits for vhosts that have no leader, all together.
pub(crate) const LEADERS_WAIT: Duration = Duration::from_secs(10);

/// Time after which a replica that could not be rebuilt is tried again.
pub(crate) const SHIPMENT_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes of files that a node ships in a second, if the configuration does not say otherwise: clients still get the larger
/// part of a usual disk.
pub(crate) const SHIPMENT_BANDWIDTH_BYTES: u64 = 64 * 1024 * 1024;

/// Damaged replicas of a vhost that are kept for the operator.
pub(crate) const DAMAGED_REPLICAS_KEPT: usize = 2;

/// Longest time for which a node that stops or is drained waits for others to lead its vhosts: several times that of one
/// transfer, because the vhosts of a node share a disk.
pub(crate) const LEADS_TRANSFER_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval at which an import looks for the leader of a vhost.
pub(crate) const IMPORT_LEADER_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Time for the import of definitions by another node: hashing of the passwords of many users, and writing.
pub(crate) const PEER_IMPORT_TIMEOUT: Duration = Duration::from_secs(300);

/// Connections for requests that a node keeps to another node without a request.
pub(crate) const IDLE_PEER_CONNECTIONS_MAX: usize = 8;

/// Time for which a change of users, vhosts or parameters of a cluster waits for a majority of the nodes.
pub(crate) const METADATA_WAIT: Duration = Duration::from_secs(10);

/// Bytes of a change of users, vhosts or parameters from which on the rest goes into another entry.
pub(crate) const METADATA_ENTRY_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of old entries that the metadata keep for members that are away.
pub(crate) const METADATA_RETENTION_BYTES: u64 = 64 * 1024 * 1024;

/// Time for which a change of users, vhosts or parameters waits until it has taken effect on all connected nodes.
pub(crate) const METADATA_FOLLOWED_WAIT: Duration = Duration::from_secs(1);

/// Time after which a node that could not follow a change of the metadata tries again.
pub(crate) const METADATA_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes of old entries that a vhost keeps for members that are away, if the configuration does not say otherwise: a node
/// that was restarted needs no files of others.
pub(crate) const LOG_RETENTION_BYTES: u64 = 1024 * 1024 * 1024;

/// Entries of a replicated vhost from one digest of its state to the next: a replica that differs is found soon, at a
/// cost that no entry notices.
pub(crate) const ENTRIES_PER_DIGEST: u32 = 1000;

/// Largest `management.login_session_timeout`: a year, in minutes.
pub(crate) const LOGIN_SESSION_MINUTES_MAX: u32 = 366 * 24 * 60;

/// Bytes of the body of a request, as in RabbitMQ, unless `management.http.max_body_size` says otherwise; 400.
pub const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Bytes of the body of a request of the machine's own tools, which import files, and the largest value of
/// `management.http.max_body_size`: half of [`HTTP_BUDGET_BYTES_MAX`] is for bodies; 400.
pub const LOCAL_BODY_BYTES_MAX: usize = 200 * 1024 * 1024;

/// Lists and objects inside each other in the JSON of a request, or in a value of definitions; 400. What is stored lies inside a few
/// more of them, and has to be read again at the next start by a reader that ends at 127.
pub const JSON_DEPTH_MAX: usize = 100;

/// Tags of a user, as in RabbitMQ; 400.
pub const USER_TAGS_MAX: usize = 32;

/// Bytes of the description and the tags of a vhost, or of the tags of a user; 400.
pub(crate) const LABELS_BYTES_MAX: usize = 16 * 1024;

/// Milliseconds between the wall clocks of two nodes that a finding and the log report.
pub const CLOCKS_DIFFER_MS: u64 = 500;

/// Bytes of a global parameter, its name and its value as JSON: many times what tools store there; 400.
pub(crate) const GLOBAL_PARAMETER_BYTES_MAX: usize = 256 * 1024;

/// Bytes of all global parameters. Each change of one writes the file of all, in a few milliseconds; 400.
pub(crate) const GLOBAL_PARAMETERS_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of an answer of another node of the cluster that is read as a whole for its own sake.
pub(crate) const PEER_ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Part of the memory watermark that HTTP may take.
pub(crate) const HTTP_BUDGET_SHARE: u64 = 8;

/// Bytes that HTTP may always take: room for two bodies of [`BODY_BYTES_MAX`].
pub(crate) const HTTP_BUDGET_BYTES_MIN: usize = 64 * 1024 * 1024;

/// Bytes that HTTP never takes more of: room for definitions with a million values.
pub(crate) const HTTP_BUDGET_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Answers made as a whole at the same time: definitions and maps of dead letters.
pub(crate) const HTTP_LONG_ANSWERS_AT_ONCE: usize = 1;

/// Interval at which requests that wait look for transfers that are too slow.
pub(crate) const HTTP_ROOM_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Time that a request waits for memory; 503 after it.
pub(crate) const HTTP_ROOM_TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes of the samples of queues, exchanges, connections and channels whose numbers have changed in the last
/// hour, beyond the two samples that every object has: ten minutes of history for two thousand busy queues.
pub(crate) const HISTORY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Maximum number of samples per object and tier: ten minutes at one per second.
pub(crate) const HISTORY_SAMPLES_MAX: usize = 602;

/// Minimum number of samples per object and tier: a rate needs two.
pub(crate) const HISTORY_SAMPLES_MIN: usize = 2;

/// Replicas that a vhost can have.
pub(crate) const REPLICAS_MAX: u8 = 7;

/// Damaged files that a node remembers.
pub(crate) const DAMAGED_FILES_KEPT: usize = 100;

/// Damaged places that are named of each damaged file.
pub(crate) const DAMAGES_TOLD: usize = 10;

/// Longest pause of a check of files before it looks whether the broker stops.
pub(crate) const FILE_CHECK_PAUSE_MAX: Duration = Duration::from_millis(100);

/// Default time from one check of files to the next.
pub(crate) const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(7 * 24 * 3600);

/// Default of the bytes that a check of files reads in a second.
pub(crate) const FILE_CHECK_BYTES_PER_SECOND: u64 = 8 * 1024 * 1024;

/// Bytes of a body in which a filter looks for places of JSON; a longer one does not match.
pub(crate) const FILTERED_JSON_BYTES_MAX: usize = 1024 * 1024;

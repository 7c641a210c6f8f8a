//! Limits of the core, each with its unit and its reason.

/// Longest message TTL and queue TTL that an argument or `expiration` may set, in milliseconds: ten years of
/// 365 days, as in RabbitMQ. Policies are not capped.
pub const TTL_MS_MAX: u64 = 315_360_000_000;

/// Delivery limit of a quorum queue that sets none (RabbitMQ 4.x).
pub const DELIVERY_LIMIT_DEFAULT: u32 = 20;

/// Time for which a leader that is cut off from the others may go on delivering from classic queues after another leads,
/// in milliseconds: the longest time without an election, and half as much again. Messages that become due within
/// it may be delivered by both.
pub const CUT_OFF_LEADER_MS: u64 = 3_000;

/// Highest priority level of a quorum queue; higher priorities count as this one, as in RabbitMQ.
pub const QUORUM_PRIORITY_MAX: u8 = 31;

/// Level of a message without priority in a quorum queue, as in RabbitMQ.
pub const QUORUM_PRIORITY_DEFAULT: u8 = 4;

/// Default acknowledgement timeout of a quorum queue's consumers, in milliseconds: 30 minutes, as in
/// RabbitMQ.
pub const CONSUMER_TIMEOUT_MS_DEFAULT: u64 = 1_800_000;

/// Messages that one call of `tick` expires before it returns the vhost to live traffic, so that a million
/// simultaneous deadlines stall a publisher for no longer than about a millisecond.
pub const EXPIRY_SLICE: usize = 512;

/// Messages above a limit of a queue that one call evicts before it leaves the rest to the timer: a few milliseconds. A
/// limit that was lowered may be exceeded by a million.
pub const EVICTION_SLICE: usize = 4096;

/// Deadlines of removed messages that one call drops while it looks for the first live deadline.
pub const GONE_DEADLINES_SLICE: usize = 4096;

/// Messages that one call dead-letters before it leaves the rest to the timer. A client that rejects a
/// million deliveries, or dead-letter exchanges that multiply every message, must not stall other clients.
pub const DEATHS_PER_CALL_MAX: usize = 2048;

/// Bytes of dead letters that one call produces before it returns the vhost. Every dead letter is copied into
/// the log; copying this many bytes takes a millisecond or two.
pub const DEATH_BYTES_PER_BATCH_MAX: u64 = 4 * 1024 * 1024;

/// Bytes of dead messages that wait for the end of an alarm. They occupy memory, which may be what is short.
/// Above this bound, queues with a dead-letter exchange expire, evict and deliver nothing.
pub const DEATHS_WAITING_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bytes of `x-death` in the headers of a message: enough for a hundred deaths in queues with short names,
/// and a quarter of the frame that holds the headers. The core keeps the whole history.
pub const X_DEATH_BYTES_MAX: usize = 32 * 1024;

/// The largest frame that RabbitMQ's clients accept by default, in bytes. Headers that the broker extends
/// must fit into one frame.
pub const FRAME_MAX_DEFAULT: usize = 131_072;

/// Bytes of firehose headers above which the headers of the traced message are left out, so that all headers
/// fit into one frame.
pub const TRACE_HEADERS_BYTES_MAX: usize = 120 * 1024;

/// Bytes of routing keys and of queue names that the firehose reports for one message.
pub const TRACE_KEYS_BYTES_MAX: usize = 24 * 1024;

/// Bytes that a queue adds to the headers of a redelivered dead letter: two counts.
pub const QUEUE_HEADERS_BYTES: usize = 64;

/// Stale entries that a deadline index may hold beyond the live ones before a rebuild.
pub const DEADLINE_STALE_MIN: usize = 1024;

/// Queues that one record of a message names; a message that enters more queues takes several records.
pub const ENTRIES_PER_RECORD_MAX: usize = 65_535;

/// Bytes that may wait for a connection's socket before the core stops dispatching to its consumers: enough
/// to keep a fast reader busy, too few to matter when the reader stops.
pub const OUTBOX_BYTES_MAX: u64 = 1024 * 1024;

/// Bytes that may wait for a connection's socket before its direct replies are dropped, because direct
/// replies have no queue to wait in: as many as the largest message that the broker accepts by default.
pub const REPLY_BACKLOG_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bytes that one delivery adds to the outbox beside properties and body: method, header and frame overhead
/// with a short consumer tag, exchange and routing key.
pub const DELIVERY_OVERHEAD_BYTES: u64 = 96;

/// `CC` and `BCC` keys of one message; more are refused, because each key is routed separately.
pub const SENDER_SELECTED_KEYS_MAX: usize = 1024;

/// Arguments of one headers-exchange binding; matching walks them for every message.
pub const HEADERS_BINDING_ARGUMENTS_MAX: usize = 256;

/// `#` wildcards in one topic binding key, as in RabbitMQ 4.3.5 and later.
pub const TOPIC_HASH_WILDCARDS_MAX: usize = 2;

/// Weight of one consistent-hash binding (RabbitMQ 4.3.6).
pub const CONSISTENT_HASH_WEIGHT_MAX: u32 = 10_000;

/// Bytes of messages and routes that one transaction may hold; more are refused with 506 `RESOURCE_ERROR`.
pub const TRANSACTION_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Operations that one transaction may hold; more are refused with 506 `RESOURCE_ERROR`.
pub const TRANSACTION_OPERATIONS_MAX: usize = 1_000_000;

/// Queues and delayed exchanges that all publishes of one transaction may enter; more are refused with 406. A commit
/// enters all of them in one step, about a second of work and a hundred megabytes for as many.
pub const TRANSACTION_TARGETS_MAX: usize = 1_000_000;

/// Tags of timed-out deliveries that one channel remembers, so that late settlements are ignored; beyond this
/// number, the oldest become unknown tags.
pub const TIMED_OUT_TAGS_MAX: usize = 65_536;

/// Longest policy or permission pattern, in bytes, as in RabbitMQ.
pub const PATTERN_BYTES_MAX: usize = 1024;

/// Backtracking steps of one pattern match; a pattern that needs more does not match. RabbitMQ allows 50,000
/// cheaper steps. This many take at most a few milliseconds for a name of 255 bytes.
pub const PATTERN_STEPS_MAX: usize = 5_000;

/// Compiled size of one pattern, in bytes: enough for `[a-z0-9._-]{1,255}`, or for a hundred names as
/// alternatives. PCRE has the same bound for its compiled form, which is shorter.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 64 * 1024;

/// Instructions of the backtracking engine that one pattern may compile to.
pub const PATTERN_INSTRUCTIONS_MAX: usize = 4_096;

/// Policies of one kind in a vhost: each is matched against the name of every declared queue and exchange.
pub const POLICIES_MAX: usize = 2_048;

/// Policies of one kind whose patterns may backtrack, which in the worst case takes a thousand times as long.
pub const BACKTRACKING_POLICIES_MAX: usize = 64;

/// Bytes of the texts of one policy: its name, its pattern and the texts of its definition. All policies of a vhost
/// together take 16 MiB then.
pub const POLICY_BYTES_MAX: usize = 8 * 1024;

/// Pattern matches per slice of a policy change, before the rest is left to the next slice; a backtracking
/// match counts as 128. A slice takes about a millisecond.
pub const POLICY_MATCHES_PER_SLICE: usize = 512;

/// Backtracking steps of a filter pattern: one request matches it against every name in a list.
pub const FILTER_STEPS_MAX: usize = 1_000;

/// Divisor of the vhost's bound on unacknowledged bytes. Once all channels together reach the bound, one
/// channel may hold the quotient, so that many channels continue beside one that never acknowledges.
pub const UNACKED_CHANNEL_SHARE: u64 = 16;

/// Unacknowledged bytes that every channel may hold, independent of other channels: enough for a client that
/// acknowledges its deliveries.
pub const UNACKED_BYTES_PER_CHANNEL_MIN: u64 = 256 * 1024;

/// Arguments of one declaration, binding or consumer, in bytes; they are kept as long as it exists. RabbitMQ
/// is limited by the frame only.
pub const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;

/// Arguments of a consumer that are accepted while memory is short, in bytes.
pub const CONSUMER_ARGUMENTS_BYTES_FREE: usize = 1024;

/// Approximate memory of an empty queue beside its name and arguments, in bytes.
pub const QUEUE_MEMORY_BYTES: u64 = 2048;

/// Approximate memory of an exchange beside its name and arguments, in bytes.
pub const EXCHANGE_MEMORY_BYTES: u64 = 1024;

/// Approximate memory of a binding at both ends and in the list of records, beside its key and arguments, in
/// bytes.
pub const BINDING_MEMORY_BYTES: u64 = 512;

/// Shortest body that dead letters and deliveries share instead of copying, in bytes: for shorter bodies a
/// copy is cheaper than another reference count and another iovec.
pub const SHARED_BODY_BYTES_MIN: usize = 4096;

/// Capacity kept between calls for effects and for messages that die in one call; a larger buffer is shrunk
/// after the call.
pub const EFFECTS_KEPT_MAX: usize = 16_384;

/// Cycle warnings remembered per vhost, so that each distinct cycle is logged once.
pub const CYCLES_REMEMBERED_MAX: usize = 1024;

/// Dead letters that an at-least-once queue retries per slice after a change of topology.
pub const DEAD_LETTER_RETRY_SLICE: usize = 512;

/// Redrives listed in the headers of a message; more would hardly help anyone.
pub const REDRIVES_KEPT_MAX: usize = 8;

/// Bytes of the redrive list in the headers, which must fit into one frame.
pub const REDRIVES_BYTES_MAX: usize = 16 * 1024;

/// Bytes of messages that one call redrives, because each message is written to the log.
pub const REDRIVE_BYTES_PER_CALL_MAX: u64 = 16 * 1024 * 1024;

/// Memory of the messages in one page of a long queue, in bytes: large enough that reading a page costs
/// little more than its bytes, small enough that a queue may keep a few pages at either end.
pub const PAGE_BYTES: u64 = 512 * 1024;

/// Lower bound of `PAGE_BYTES` where memory is scarce.
pub const PAGE_BYTES_MIN: u64 = 16 * 1024;

/// Places in the queue that one page covers, including gaps between its messages.
pub const PAGE_SEQS_MAX: u64 = 65_536;

/// Pages that a queue keeps in memory at its head.
pub const HEAD_PAGES: usize = 2;

/// Pages that a queue keeps in memory at its tail once it has pages on disk, independent of the vhost's
/// bound: before the tail is delivered, the queue has to wait for the disk anyway. This bounds the memory of
/// the longest queue.
pub const TAIL_PAGES: usize = 8;

/// Pages of scheduled messages that stay in memory once others are on disk, independent of the vhost's memory: maps of
/// that size stay in the processor's caches.
pub const SCHEDULED_HEAD_PAGES: usize = 8;

/// Delay in milliseconds from which scheduled messages beyond `SCHEDULED_HEAD_PAGES` go to disk although the vhost has
/// room in memory: they would take it for long, and leave holes between those that are ready sooner.
pub const SCHEDULED_LONG_MS: u64 = 10 * 60 * 1000;

/// Divisor of the vhost's bound of memory, above which messages with such delays go to disk.
pub const SCHEDULED_LONG_SHARE: u64 = 32;

/// Arrivals per check of `TAIL_PAGES`; the check is not urgent.
pub const TAIL_PAGE_ARRIVALS: u64 = 64;

/// Bytes of memory that a waiting message takes beside properties and body: its entry, a share of its
/// envelope, and rounding by the allocator.
pub const MESSAGE_MEMORY_BYTES: u64 = 160;

/// Pages that one arrival writes out, so that the arrival is not delayed by a queue that has just become
/// long.
pub const PAGES_PER_ARRIVAL: usize = 2;

/// Bytes of messages with late delivery times that are written to pages, where much is in memory, for each byte of the
/// messages that begin to wait.
pub const PAGED_PER_ARRIVED: u64 = 2;

/// Lead time for reading back a paged message before its own deadline, in milliseconds: longer than a disk
/// read takes, so that the message is in memory when it expires.
pub const PAGED_DUE_AHEAD_MS: u64 = 500;

/// Messages with the next deadlines that are read back together, if these deadlines are near.
pub const PAGED_DUE_MIN: usize = 64;

/// Upper bound of messages with the next deadlines that are read back together.
pub const PAGED_DUE_MAX: usize = 4096;

/// Destinations of exchanges that one dead-letter map visits: room for ten thousand queues that each lead to
/// a hundred others; about a tenth of a second of work.
pub const MAP_STEPS_MAX: usize = 1_000_000;

/// Approximate number of destinations that one slice of a dead-letter map visits before it returns the vhost
/// to live traffic.
pub const MAP_STEPS_PER_SLICE: usize = 10_000;

/// Routing keys from bindings that a dead-letter map routes individually for the messages of one queue; a
/// queue with more keys counts as having unknown keys.
pub const MAP_OWN_KEYS_MAX: usize = 16;

/// Names that a warning of a dead-letter map lists; the others are only counted.
pub const MAP_NAMES_TOLD_MAX: usize = 6;

/// Longest delay of a message until its delivery time, in milliseconds: ten years.
pub const DELIVERY_DELAY_MS_MAX: u64 = 315_360_000_000;

/// Longest schedule id, in bytes.
pub const SCHEDULE_ID_BYTES_MAX: usize = 255;

/// Messages with the same schedule id at one target. One operation changes all of them, in one call.
pub const SCHEDULES_PER_ID_MAX: usize = 1000;

/// Work of a change of one scheduled message, where that of a message which enters a queue is one.
pub const SCHEDULE_CHANGE_WORK: u64 = 8;

/// Scheduled messages that one call lists.
pub const SCHEDULED_LISTED_MAX: usize = 1000;

/// Headers that one publish to `amq.settle` adds to a message.
pub const ANNOTATION_HEADERS_MAX: usize = 32;

/// Size of the headers that one publish to `amq.settle` adds to a message, encoded, in bytes.
pub const ANNOTATION_BYTES_MAX: usize = 4 * 1024;

/// Size of the annotations of a channel whose deliveries are not settled yet, in bytes: enough for the longest
/// annotations of 250 deliveries, or for short ones of ten thousand.
pub const CHANNEL_ANNOTATIONS_BYTES_MAX: usize = 1024 * 1024;

/// Memory of an annotation besides its headers, in bytes.
pub const ANNOTATION_MEMORY_BYTES: usize = 96;

/// Different reasons of deaths, given by consumers, that a vhost counts apart: each is a series of metrics.
pub const GIVEN_REASONS_MAX: usize = 32;

/// Size of a reason that a vhost counts apart, in bytes; longer ones are cut.
pub const GIVEN_REASON_BYTES_MAX: usize = 64;

/// Delays of a retry schedule.
pub const RETRY_SCHEDULE_ENTRIES_MAX: usize = 64;

/// Deaths that the history of dead letters of a vhost keeps, unless configured: an hour of five deaths per second.
pub const DEATHS_KEPT_MAX: u64 = 20_000;

/// Upper bound of the configured number of deaths in the history, which a search reads to the end.
pub const DEATHS_KEPT_LIMIT_MAX: u64 = 1_000_000;

/// Memory of the deaths in the history of dead letters of a vhost, unless configured, in bytes: room for twenty
/// thousand short messages.
pub const DEATHS_KEPT_BYTES: u64 = 16 * 1024 * 1024;

/// Time after which a death is forgotten, unless configured, in milliseconds: a week.
pub const DEATHS_KEPT_AGE_MS: u64 = 7 * 24 * 3600 * 1000;

/// Longest configured time after which a death is forgotten, in milliseconds: a year.
pub const DEATHS_KEPT_AGE_MS_MAX: u64 = 365 * 24 * 3600 * 1000;

/// Memory of the circumstances of a death besides names and keys, in bytes.
pub const DEATH_CIRCUMSTANCES_BYTES: u64 = 320;

/// Properties that the history of dead letters keeps whole, in bytes; of longer ones it keeps some headers. A few
/// deaths of messages with huge headers then do not push out all others.
pub const DEATH_PROPERTIES_BYTES_MAX: usize = 16 * 1024;

/// Headers that the history of dead letters keeps of properties above that limit, in bytes.
pub const DEATH_HEADERS_BYTES_MAX: usize = 4 * 1024;

/// Headers of such properties that are examined: the time of a death has a bound, too.
pub const DEATH_HEADERS_EXAMINED_MAX: usize = 256;

/// Memory of a dropped message that the history of dead letters keeps with its body, in bytes: to copy the properties
/// of a short message costs more.
pub const DEATH_MESSAGE_BYTES_MAX: u64 = 1024;

/// Target queues of a dead letter that its history names; the others are only counted.
pub const DEATH_TARGETS_KEPT_MAX: usize = 8;

/// Queues that one record of a digest lists; a digest of more has several records.
pub const QUEUES_PER_DIGEST_MAX: usize = 4096;

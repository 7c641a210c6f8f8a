//! Every limit of the core, with its unit and its reason. Unbounded is a bug.

/// Longest message TTL and queue TTL that an argument or `expiration` may ask for, in milliseconds:
/// ten years of 365 days (spec 1.1). Policies are not capped.
pub const TTL_MS_MAX: u64 = 315_360_000_000;

/// Delivery limit of a quorum queue that sets none (RabbitMQ 4.x).
pub const DELIVERY_LIMIT_DEFAULT: u32 = 20;

/// Priority levels of a quorum queue; higher priorities count as the last (spec 8.2).
pub const QUORUM_PRIORITY_MAX: u8 = 31;

/// Level of a message without priority in a quorum queue (spec 8.2).
pub const QUORUM_PRIORITY_DEFAULT: u8 = 4;

/// Default and largest sensible acknowledgement timeout of a quorum queue's consumers, milliseconds.
pub const CONSUMER_TIMEOUT_MS_DEFAULT: u64 = 1_800_000;

/// Messages that one call of `tick` removes before it gives the vhost back to live traffic, so that a
/// million simultaneous deadlines never stall a publisher for longer than about a millisecond.
pub const EXPIRY_SLICE: usize = 512;

/// Deadlines of messages that are gone which are dropped at a time to find the first that is left, when
/// somebody wants to know.
pub const GONE_DEADLINES_SLICE: usize = 4096;

/// Messages that one call moves to where dead letters go, before it leaves the rest to the timer: a
/// client that rejects a million deliveries, or dead-letter exchanges that multiply every message,
/// hold nobody else up.
pub const DEATHS_PER_CALL_MAX: usize = 2048;

/// Bytes of dead letters that are made before the vhost is given back, whatever asks for them, because
/// each of them goes into the log: a copy of so much takes a millisecond or two.
pub const DEATH_BYTES_PER_BATCH_MAX: u64 = 4 * 1024 * 1024;

/// Bytes of messages that died and wait for the end of an alarm: they are in memory, which may be what is
/// short. Beyond it the queues with dead-letter exchanges expire, evict and deliver nothing.
pub const DEATHS_WAITING_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Octets of `x-death` in the headers of a message: a hundred deaths in queues with short names, and a
/// quarter of the frame that the headers go into. The core knows the others.
pub const X_DEATH_BYTES_MAX: usize = 32 * 1024;

/// The largest frame that RabbitMQ's clients agree to by default, in octets: headers that the broker
/// makes longer fit into one.
pub const FRAME_MAX_DEFAULT: usize = 131_072;

/// Octets of the headers by which the firehose tells of a message before those of the message itself are
/// left out: all must fit into one frame.
pub const TRACE_HEADERS_BYTES_MAX: usize = 120 * 1024;

/// Octets of routing keys, and of names of queues, that the firehose tells of one message.
pub const TRACE_KEYS_BYTES_MAX: usize = 24 * 1024;

/// Octets that a queue adds to the headers of a dead letter when it hands it out again: two counts.
pub const QUEUE_HEADERS_BYTES: usize = 64;

/// Stale entries a deadline index may hold beyond the live ones before it is rebuilt.
pub const DEADLINE_STALE_MIN: usize = 1024;

/// Queues that one record of a message names; it is one record for each so many.
pub const ENTRIES_PER_RECORD_MAX: usize = 65_535;

/// Bytes that may wait for a connection's socket before the core stops dispatching to its consumers:
/// enough to keep a fast reader busy, too little to matter when it stops reading.
pub const OUTBOX_BYTES_MAX: u64 = 1024 * 1024;

/// Bytes that may wait for a connection's socket before it loses direct replies, which have no queue
/// to wait in: as much as the largest message that a broker takes by default.
pub const REPLY_BACKLOG_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What one delivery costs in the outbox beside properties and body: method, header and frame
/// overhead with a short consumer tag, exchange and routing key.
pub const DELIVERY_OVERHEAD_BYTES: u64 = 96;

/// `CC` and `BCC` keys of one message; more is refused, because each is routed for itself.
pub const SENDER_SELECTED_KEYS_MAX: usize = 1024;

/// Arguments of one headers-exchange binding; matching walks them for every message.
pub const HEADERS_BINDING_ARGUMENTS_MAX: usize = 256;

/// `#` wildcards in one topic binding key, as in RabbitMQ 4.3.5 and later.
pub const TOPIC_HASH_WILDCARDS_MAX: usize = 2;

/// Weight of one consistent-hash binding (RabbitMQ 4.3.6).
pub const CONSISTENT_HASH_WEIGHT_MAX: u32 = 10_000;

/// Bytes of messages and of their routes one transaction may hold before it is refused with 506 `RESOURCE_ERROR`.
pub const TRANSACTION_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Operations one transaction may hold before it is refused with 506 `RESOURCE_ERROR`.
pub const TRANSACTION_OPERATIONS_MAX: usize = 1_000_000;

/// Tags of timed-out deliveries that one channel remembers, so that settling them late is ignored;
/// beyond that the oldest are unknown tags.
pub const TIMED_OUT_TAGS_MAX: usize = 65_536;

/// Longest policy or permission pattern, in bytes (spec 5.1).
pub const PATTERN_BYTES_MAX: usize = 1024;

/// Backtracking steps of one pattern match; a pattern that needs more does not match. RabbitMQ allows
/// 50,000 cheaper ones (spec 5.1): so many take at most some milliseconds with a name of 255 octets.
pub const PATTERN_STEPS_MAX: usize = 5_000;

/// Compiled size of one pattern, in bytes: room for `[a-z0-9._-]{1,255}`, or for a hundred names as
/// alternatives. PCRE has the same bound for its own form, which is shorter.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 64 * 1024;

/// Instructions of the backtracking engine that one pattern may compile to.
pub const PATTERN_INSTRUCTIONS_MAX: usize = 4_096;

/// Policies of one kind in a vhost: each is tried on the name of everything that is declared.
pub const POLICIES_MAX: usize = 2_048;

/// Those of them whose patterns may need backtracking, which takes a thousand times as long at worst.
pub const BACKTRACKING_POLICIES_MAX: usize = 64;

/// Matches of patterns that one call does because a policy has changed, before it leaves the rest to the
/// next; one that backtracks counts 128. That is about a millisecond.
pub const POLICY_MATCHES_PER_SLICE: usize = 512;

/// Backtracking steps of a pattern that looks for names in a list: one request tries it on every name there.
pub const FILTER_STEPS_MAX: usize = 1_000;

/// Share of what may be unacknowledged in a vhost that one channel may have once all channels together have
/// that much: many channels go on beside one that never acknowledges.
pub const UNACKED_CHANNEL_SHARE: u64 = 16;

/// What a channel may have unacknowledged whatever others have, in bytes: enough for a client that
/// acknowledges what it gets.
pub const UNACKED_BYTES_PER_CHANNEL_MIN: u64 = 256 * 1024;

/// Arguments of one declaration, binding or consumer, in bytes: what is kept for as long as that is there.
/// RabbitMQ has no limit but the frame.
pub const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;

/// Arguments of a consumer that are taken while memory is short, in bytes.
pub const CONSUMER_ARGUMENTS_BYTES_FREE: usize = 1024;

/// Memory that an empty queue takes beside its name and arguments, about, in bytes.
pub const QUEUE_MEMORY_BYTES: u64 = 2048;

/// Memory that an exchange takes beside its name and arguments, about, in bytes.
pub const EXCHANGE_MEMORY_BYTES: u64 = 1024;

/// Memory that a binding takes at both ends and in the list of records beside its key and arguments, about,
/// in bytes.
pub const BINDING_MEMORY_BYTES: u64 = 512;

/// Bodies at least this long are shared with a dead letter and a delivery instead of copied, in bytes:
/// below it a copy is cheaper than another reference count and another iovec.
pub const SHARED_BODY_BYTES_MIN: usize = 4096;

/// Effects, and messages that die in one call, for which room is kept from call to call; what one
/// large call needed beyond that is given back.
pub const EFFECTS_KEPT_MAX: usize = 16_384;

/// Cycle warnings remembered per vhost, so that each distinct cycle is logged once.
pub const CYCLES_REMEMBERED_MAX: usize = 1024;

/// Dead letters that an at-least-once queue offers again in one go after the topology changed.
pub const DEAD_LETTER_RETRY_SLICE: usize = 512;

/// Redrives of which a message tells in its headers: who sends it back for the ninth time knows enough.
pub const REDRIVES_KEPT_MAX: usize = 8;

/// Octets that these take in its headers, which must fit into one frame.
pub const REDRIVES_BYTES_MAX: usize = 16 * 1024;

/// Bytes of messages that one call redrives, because each of them goes into the log.
pub const REDRIVE_BYTES_PER_CALL_MAX: u64 = 16 * 1024 * 1024;

/// Memory of the messages in one page of a long queue, in bytes: large enough that a page costs hardly
/// more to read than its octets, small enough that a queue may keep a few at either end.
pub const PAGE_BYTES: u64 = 512 * 1024;

/// The same where little memory may be used.
pub const PAGE_BYTES_MIN: u64 = 16 * 1024;

/// Places in the queue that one page covers at most, whatever is missing between its messages.
pub const PAGE_SEQS_MAX: u64 = 65_536;

/// Pages that a queue keeps in memory at its head.
pub const HEAD_PAGES: usize = 2;

/// Pages that a queue keeps in memory at its tail once it has some on disk, whatever the vhost may keep: in
/// front of its tail it waits for the disk anyway, and the longest queue takes no more than this.
pub const TAIL_PAGES: usize = 8;

/// Arrivals of which one puts pages aside for that reason: there is no hurry.
pub const TAIL_PAGE_ARRIVALS: u64 = 64;

/// What a waiting message costs in memory beside properties and body, in bytes: its entry, its
/// envelope's share, what the allocator rounds up.
pub const MESSAGE_MEMORY_BYTES: u64 = 160;

/// Pages that one arrival puts aside, so that it is not held up by a queue that has just become long.
pub const PAGES_PER_ARRIVAL: usize = 2;

/// How long before its own deadline a message in a page is read back, in milliseconds: longer than a
/// disk takes, so that it is there when it expires.
pub const PAGED_DUE_AHEAD_MS: u64 = 500;

/// Messages that are read back together because their deadlines come next, if they come soon.
pub const PAGED_DUE_MIN: usize = 64;

/// Messages that are read back together because their deadlines come next, at most.
pub const PAGED_DUE_MAX: usize = 4096;

/// Destinations of exchanges that one dead-letter map looks at: ten thousand queues that lead to a hundred
/// others each fit in, and it is a tenth of a second.
pub const MAP_STEPS_MAX: usize = 1_000_000;

/// Those that it looks at before it gives the vhost back to live traffic, about.
pub const MAP_STEPS_PER_SLICE: usize = 10_000;

/// Keys that bindings give the messages of one queue and that a dead-letter map routes each for itself;
/// beyond that they count as not known.
pub const MAP_OWN_KEYS_MAX: usize = 16;

/// Names that a warning of a dead-letter map lists before it says how many more there are.
pub const MAP_NAMES_TOLD_MAX: usize = 6;

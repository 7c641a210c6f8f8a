//! Limits of a connection's protocol state, each with its unit and its reason.

use amqp::limits::FRAME_MIN_SIZE;

/// Largest frame payload before the tuning, in bytes, as in RabbitMQ 4.3: an unknown client gets no more.
pub const HANDSHAKE_PAYLOAD_MAX: u32 = FRAME_MIN_SIZE;

/// Time from the accepted socket to `connection.open`, in milliseconds; RabbitMQ's `handshake_timeout`.
pub const HANDSHAKE_TIMEOUT_MS: u64 = 10_000;

/// Time from the broker's `connection.close` to the client's answer, in milliseconds.
pub const CLOSE_TIMEOUT_MS: u64 = 10_000;

/// Delay before the socket is closed after a refused login, for a client without the capability
/// `authentication_failure_close`, in milliseconds. As in RabbitMQ: it slows guessing of passwords.
pub const REFUSED_LOGIN_DELAY_MS: u64 = 3_000;

/// Bytes of incomplete bodies on one connection, of all channels together, unless a single message may
/// be larger. Larger than the largest message by default, far smaller than what
/// 2047 channels could announce.
pub const ASSEMBLY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes that wait, on one connection of a replicated vhost, for a majority of nodes to have the log on disk, above which
/// the connection gets no more deliveries. They do not count against the bytes that wait for the socket; eight times as
/// many cover a round of commits at full speed.
pub const HELD_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Held bytes up to which they are copied behind those that are released before them, in bytes: a copy is cheaper than
/// another part of a vectored write.
pub const RELEASED_COPY_BYTES_MAX: usize = 4 * 1024;

/// Number of body frames without payload within one message: each costs work and carries no bytes.
pub const EMPTY_BODY_FRAMES_MAX: u16 = 64;

/// Length from which a body is written from its message instead of being copied into the outbox, in
/// bytes: below it a copy is cheaper than another part of a vectored write.
pub const UNCOPIED_BODY_BYTES_MIN: usize = 8 * 1024;

/// Silent heartbeat intervals, in halves, after which a client counts as dead.
pub const HEARTBEAT_MISSED_HALVES: u64 = 5;

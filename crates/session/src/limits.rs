//! Every limit of a connection's protocol state, with its unit and its reason.

use amqp::limits::FRAME_MIN_SIZE;

/// Largest frame payload before the tuning, in bytes (RabbitMQ 4.3): a stranger gets no more.
pub const HANDSHAKE_PAYLOAD_MAX: u32 = FRAME_MIN_SIZE;

/// From the accepted socket to `connection.open`, in milliseconds; RabbitMQ's `handshake_timeout`.
pub const HANDSHAKE_TIMEOUT_MS: u64 = 10_000;

/// From the broker's `connection.close` to the client's answer, in milliseconds.
pub const CLOSE_TIMEOUT_MS: u64 = 10_000;

/// How long a client that cannot be told that its login was refused waits for the end of its socket,
/// in milliseconds, as in RabbitMQ: guessing is slow.
pub const REFUSED_LOGIN_DELAY_MS: u64 = 3_000;

/// Bytes of bodies that may be half received on one connection, all its channels together, unless a
/// single message may be larger. Larger than the largest message by default, far smaller than what
/// 2047 channels could announce.
pub const ASSEMBLY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Body frames without payload within one message: each costs work and brings nothing.
pub const EMPTY_BODY_FRAMES_MAX: u16 = 64;

/// Bodies at least this long go to the socket from where they are instead of being copied into the
/// outbox, in bytes: below it a copy is cheaper than another part of a vectored write.
pub const UNCOPIED_BODY_BYTES_MIN: usize = 8 * 1024;

/// Silent heartbeat intervals, in halves, after which a peer counts as dead.
pub const HEARTBEAT_MISSED_HALVES: u64 = 5;

//! Every limit of the shell, with its unit and its reason.

use std::time::Duration;

/// Bytes one read may bring: large enough that system calls do not matter at full speed.
pub(crate) const READ_BYTES: usize = 128 * 1024;

/// Read buffers each worker thread keeps for its next connection.
pub(crate) const POOLED_BUFFERS_MAX: usize = 16;

/// Commands applied before the vhost's lock is given back.
pub(crate) const COMMANDS_PER_LOCK: usize = 256;

/// Bytes that may wait for a client before the broker stops reading from it: what it causes has to
/// go somewhere.
pub(crate) const UNSENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Bytes still waiting at which a connection that was held back goes on.
pub(crate) const UNSENT_BYTES_LOW: u64 = 256 * 1024;

/// Buffer that an idle outbox keeps, in bytes.
pub(crate) const IDLE_OUTBOX_BYTES: usize = 4 * 1024;

/// Parts of one vectored write.
pub(crate) const WRITE_PARTS: usize = 64;

/// Slices of due work a vhost does before the timer looks at the others.
pub(crate) const TICKS_PER_TURN: usize = 8;

/// How long a client whose login was refused waits for the end of its socket, as in RabbitMQ: guessing
/// is slow.
pub(crate) const REFUSED_LOGIN_DELAY: Duration = Duration::from_secs(3);

/// Pause of a listener that cannot accept, because the process has no file descriptors left.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long clients have to agree when the broker stops.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the process looks at its memory.
pub(crate) const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// How long a password that was verified need not be hashed again.
pub(crate) const VERIFIED_FOR: Duration = Duration::from_secs(60);

/// Verified passwords remembered.
pub(crate) const VERIFIED_MAX: usize = 1024;

/// Password hashes computed at the same time: each costs 19 MiB and tens of milliseconds.
pub(crate) const HASHING_MAX: usize = 2;

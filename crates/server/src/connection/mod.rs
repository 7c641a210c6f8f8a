//! AMQP connections: listeners, admission, and the two halves of each connection.
//!
//! The reading half (`task`, `process`, `login`) reads its socket, runs the session and enters the vhost. The
//! writing half (`socket_writer`) sends what anybody has appended to the outbox. The two share nothing else.

pub(crate) mod admission;
mod alarm;
pub(crate) mod counters;
pub(crate) mod listener;
mod login;
mod process;
pub(crate) mod read_buffer;
pub(crate) mod read_scheduler;
pub(crate) mod registry;
pub(crate) mod slots;
pub(crate) mod socket;
pub(crate) mod socket_writer;
mod task;

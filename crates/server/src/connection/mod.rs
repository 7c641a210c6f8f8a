//! AMQP connections: listeners, admission, and the two halves of each connection.
//!
//! The reading half (`task`, `process`, `login`) reads the socket, runs the session and opens the vhost. The
//! writing half (`socket_writer`) sends the contents of the outbox, to which any thread may append. The
//! halves share nothing else. In a cluster `relay` passes on the octets of clients whose vhost another node leads, and
//! takes such clients of other nodes.

pub(crate) mod admission;
mod alarm;
pub(crate) mod counters;
pub(crate) mod descriptors;
pub(crate) mod listener;
mod login;
mod process;
pub(crate) mod read_buffer;
pub(crate) mod read_scheduler;
pub(crate) mod registry;
pub(crate) mod relay;
pub(crate) mod slots;
pub(crate) mod socket;
pub(crate) mod socket_writer;
mod task;

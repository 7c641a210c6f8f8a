//! AMQP connections: the two halves of each connection.
//!
//! The reading half (`task`, `process`, `login`) reads the socket, runs the session and opens the vhost. The
//! writing half ([`socket_writer`](crate::sockets::socket_writer)) sends the contents of the outbox, to which any thread
//! may append. The halves share nothing else. In a cluster `relay` passes on the octets of clients whose vhost another node leads, and
//! takes such clients of other nodes.

pub(crate) mod accept;
mod alarm;
mod login;
mod process;
pub(crate) mod read_buffer;
pub(crate) mod relay;
mod task;

//! The shares of the process's file descriptors.

use std::os::fd::AsRawFd;

use rustix::process::{Resource, getrlimit};
use tokio::net::TcpStream;

use crate::limits::{
    AMQP_HANDSHAKES_MAX, AMQP_HANDSHAKES_SHARE, HTTP_CONNECTIONS_MAX, HTTP_DESCRIPTORS_SHARE,
    RESERVED_DESCRIPTORS,
};

/// The limit on file descriptors of the process.
pub(crate) fn all() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The file descriptors that the log leaves.
pub(super) fn for_clients() -> u64 {
    let all = all();
    all - RESERVED_DESCRIPTORS.min(all / 4)
}

/// True if a socket that was just opened leaves enough file descriptors for the log and for HTTP. The operating system
/// assigns the lowest free descriptor.
pub(crate) fn leaves_room(socket: &TcpStream) -> bool {
    let for_clients = for_clients() - http_connections_max() as u64;
    u64::try_from(socket.as_raw_fd()).is_ok_and(|fd| fd < for_clients)
}

/// The limit on HTTP connections of one listener.
pub(crate) fn http_connections_max() -> usize {
    at_most(HTTP_CONNECTIONS_MAX, HTTP_DESCRIPTORS_SHARE)
}

/// The limit on AMQP connections without an open vhost.
pub(crate) fn amqp_handshakes_max() -> usize {
    at_most(AMQP_HANDSHAKES_MAX, AMQP_HANDSHAKES_SHARE)
}

fn at_most(max: usize, share: u64) -> usize {
    usize::try_from(all() / share).unwrap_or(max).clamp(1, max)
}

//! Clients, their octets, and the queues that they use.

pub(crate) mod client;
pub(crate) mod draw;
pub(crate) mod handshake;
pub(crate) mod topology;

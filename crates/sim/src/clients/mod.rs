//! Clients, their octets, and the queues that they use.

pub(crate) mod client;
mod confirms;
pub(crate) mod draw;
pub(crate) mod handshake;
pub(crate) mod operations;
mod schedules;
pub(crate) mod topology;
mod traffic;

//! Clients, their octets, and the queues that they use; operators, who change metadata.

mod asking;
pub(crate) mod client;
mod confirms;
mod declaring;
pub(crate) mod draw;
pub(crate) mod handshake;
mod http;
pub(crate) mod operations;
pub(crate) mod operator;
mod schedules;
pub(crate) mod topology;
mod traffic;

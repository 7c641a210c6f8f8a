//! Clients: their connections, channels and consumers.

pub(crate) mod channels;
mod client_filter;
pub(crate) mod connections;
pub(crate) mod consumers;

//! Commands about clients, exchanges and bindings.

pub(super) mod connections;
pub(super) mod topology;
pub(super) mod tracing;

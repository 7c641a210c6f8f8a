//! Permits for activities that are limited in number.

use tokio::sync::Semaphore;

use crate::connection::read_scheduler::ReadPermits;
use crate::connection::slots::ConnectionSlots;
use crate::limits::METRICS_AT_ONCE;

/// Permits of the node.
#[derive(Debug)]
pub(crate) struct Permits {
    /// Permits to read from connections with more input than one read takes.
    pub(crate) reads: ReadPermits,
    /// Permits to compute metrics.
    pub(crate) metrics: Semaphore,
    /// Slots for connections; none for unlimited.
    pub(crate) connections: Option<ConnectionSlots>,
}

impl Permits {
    pub(super) fn new(workers: usize, connections_max: Option<u64>) -> Self {
        Self {
            reads: ReadPermits::new(workers),
            metrics: Semaphore::new(METRICS_AT_ONCE),
            connections: connections_max.map(ConnectionSlots::new),
        }
    }
}

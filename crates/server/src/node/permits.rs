//! Permits for what only so many may do at once.

use tokio::sync::Semaphore;

use crate::connection::read_scheduler::ReadPermits;
use crate::connection::slots::ConnectionSlots;
use crate::limits::METRICS_AT_ONCE;

/// Permits of the node.
#[derive(Debug)]
pub(crate) struct Permits {
    /// To read from connections that always have more to send.
    pub(crate) reads: ReadPermits,
    /// To make metrics.
    pub(crate) metrics: Semaphore,
    /// To be connected; none for any number of connections.
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

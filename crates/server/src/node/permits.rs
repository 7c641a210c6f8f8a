//! Permits for activities that are limited in number, and the memory of HTTP.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::config::Config;
use crate::http_budget::HttpBudget;
use crate::limits::METRICS_AT_ONCE;
use crate::node::alarms::limits::AlarmLimits;
use crate::sockets::read_scheduler::ReadPermits;
use crate::sockets::slots::ConnectionSlots;

/// Permits of the node.
#[derive(Debug)]
pub(crate) struct Permits {
    /// Permits to read from connections with more input than one read takes.
    pub(crate) reads: ReadPermits,
    /// Permits to compute metrics.
    pub(crate) metrics: Arc<Semaphore>,
    /// The memory that HTTP may take.
    pub(crate) http: Arc<HttpBudget>,
    /// Slots for connections; none for unlimited.
    pub(crate) connections: Option<ConnectionSlots>,
}

impl Permits {
    pub(crate) fn new(workers: usize, config: &Config, limits: &AlarmLimits) -> Self {
        let (watermark_bytes, body_bytes_max) =
            (limits.memory_watermark_bytes(), config.http_body_bytes_max);
        Self {
            reads: ReadPermits::new(workers),
            metrics: Arc::new(Semaphore::new(METRICS_AT_ONCE)),
            http: Arc::new(HttpBudget::new(watermark_bytes, body_bytes_max)),
            connections: config.connections_max.map(ConnectionSlots::new),
        }
    }
}

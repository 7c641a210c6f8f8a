//! Figures of shipments, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Octets of files that were shipped since the start, and shipments that are under way.
#[derive(Default, Debug)]
pub(crate) struct ShipmentCounts {
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) sending: AtomicU64,
    pub(crate) receiving: AtomicU64,
}

/// A shipment that is under way, counted until it is dropped.
#[derive(Debug)]
pub(super) struct UnderWay<'a>(&'a AtomicU64);

impl<'a> UnderWay<'a> {
    pub(super) fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

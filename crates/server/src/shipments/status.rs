//! Figures of shipments, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::disk::vhost_files::VhostId;
use crate::snapshot::replication::RebuildSnapshot;

/// Octets of files that were shipped since the start, and shipments that are under way.
#[derive(Default, Debug)]
pub(crate) struct ShipmentCounts {
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) sending: AtomicU64,
    pub(crate) receiving: AtomicU64,
    /// The replica whose files come: the node rebuilds one at a time.
    rebuild: Mutex<Option<(VhostId, RebuildSnapshot)>>,
}

impl ShipmentCounts {
    /// The files of a replica, while they come.
    pub(super) fn rebuild_of(&self, vhost: VhostId) -> Option<RebuildSnapshot> {
        let rebuild = *self.rebuild.lock();
        rebuild.filter(|(of, _)| *of == vhost).map(|(_, rebuild)| rebuild)
    }

    /// Counts octets of files that have come.
    pub(super) fn receive(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some((_, rebuild)) = &mut *self.rebuild.lock() {
            rebuild.received_bytes += bytes;
        }
    }
}

/// The files of a replica that come, until it is dropped.
#[derive(Debug)]
pub(super) struct Rebuild<'a>(&'a ShipmentCounts);

impl<'a> Rebuild<'a> {
    pub(super) fn begin(
        counts: &'a ShipmentCounts,
        vhost: VhostId,
        files: RebuildSnapshot,
    ) -> Self {
        *counts.rebuild.lock() = Some((vhost, files));
        Self(counts)
    }
}

impl Drop for Rebuild<'_> {
    fn drop(&mut self) {
        *self.0.rebuild.lock() = None;
    }
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

//! Shortage of memory or disk, readable by a vhost without its lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The alarm, and the bound of the topology while memory is short.
#[derive(Debug)]
pub(super) struct MemoryPressure {
    /// True while an alarm is on; shared by all vhosts.
    alarm: Arc<AtomicBool>,
    /// Bytes that the topology may take while memory is short; `u64::MAX` otherwise.
    topology_bytes_max: AtomicU64,
}

impl MemoryPressure {
    pub(super) fn new(alarm: Arc<AtomicBool>) -> Self {
        Self { alarm, topology_bytes_max: AtomicU64::new(u64::MAX) }
    }

    /// Bytes that queues, exchanges and bindings may take; none for unlimited.
    pub(super) fn topology_bytes_max(&self) -> Option<u64> {
        Some(self.topology_bytes_max.load(Ordering::Relaxed)).filter(|max| *max < u64::MAX)
    }

    /// Bounds the topology from the next command on; none for unlimited.
    pub(super) fn set_topology_bytes_max(&self, bytes_max: Option<u64>) {
        self.topology_bytes_max.store(bytes_max.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// True while an alarm is on.
    pub(super) fn has_alarm(&self) -> bool {
        self.alarm.load(Ordering::SeqCst)
    }
}

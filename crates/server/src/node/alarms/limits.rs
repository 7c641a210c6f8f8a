//! Limits of memory and free disk space at which publishers are blocked: from the configuration, or as set at
//! runtime.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::requests::DiskFreeLimit;
use crate::snapshot::node::MemoryWatermark;

/// Stands for no watermark, because no memory use is larger.
const NONE: u64 = u64::MAX;

/// The limits in bytes, readable without a lock.
#[derive(Debug)]
pub(crate) struct AlarmLimits {
    /// The memory that fractions and multiples refer to; none if unknown.
    memory_bytes: Option<u64>,
    /// The setting that `watermark_bytes` follows from.
    watermark: Mutex<MemoryWatermark>,
    watermark_bytes: AtomicU64,
    disk_free_bytes: AtomicU64,
    looking: Mutex<()>,
}

impl AlarmLimits {
    /// Creates limits for a machine with `memory_bytes` of memory.
    pub(crate) fn new(
        memory_bytes: Option<u64>,
        watermark: MemoryWatermark,
        disk_free: DiskFreeLimit,
    ) -> Self {
        let limits = Self {
            memory_bytes,
            watermark: Mutex::new(watermark),
            watermark_bytes: AtomicU64::new(NONE),
            disk_free_bytes: AtomicU64::new(0),
            looking: Mutex::new(()),
        };
        limits.set_memory_watermark(watermark);
        limits.set_disk_free_limit(disk_free);
        limits
    }

    /// Bytes of memory that the process may use; none for unlimited.
    pub(crate) fn memory_watermark_bytes(&self) -> Option<u64> {
        let bytes = self.watermark_bytes.load(Ordering::Relaxed);
        (bytes != NONE).then_some(bytes)
    }

    /// The setting of the memory watermark.
    pub(crate) fn memory_watermark(&self) -> MemoryWatermark {
        *self.watermark.lock()
    }

    /// Bytes that must be free on the disk.
    pub(crate) fn disk_free_limit_bytes(&self) -> u64 {
        self.disk_free_bytes.load(Ordering::Relaxed)
    }

    /// Locks the comparison with the limits, so that no task acts on outdated limits.
    pub(crate) fn one_at_a_time(&self) -> MutexGuard<'_, ()> {
        self.looking.lock()
    }

    pub(crate) fn set_memory_watermark(&self, watermark: MemoryWatermark) {
        let bytes = match watermark {
            MemoryWatermark::Absolute(bytes) => bytes,
            MemoryWatermark::Relative(fraction) => {
                self.memory_bytes.map_or(NONE, |total| share(total, fraction))
            }
        };
        *self.watermark.lock() = watermark;
        self.watermark_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn set_disk_free_limit(&self, limit: DiskFreeLimit) {
        let bytes = match limit {
            DiskFreeLimit::Absolute(bytes) => bytes,
            DiskFreeLimit::Relative(multiple) => {
                self.memory_bytes.map_or(0, |total| share(total, multiple))
            }
        };
        self.disk_free_bytes.store(bytes, Ordering::Relaxed);
    }
}

/// The given fraction of a total, rounded down.
pub(crate) fn share(total: u64, fraction: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a limit needs no exact bytes, and the factor is not negative"
    )]
    let bytes = (total as f64 * fraction) as u64;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_limits_are_shares_of_the_memory() {
        let (half, twice) = (MemoryWatermark::Relative(0.5), DiskFreeLimit::Relative(2.0));
        let limits = AlarmLimits::new(Some(1000), half, twice);
        assert_eq!(limits.memory_watermark_bytes(), Some(500));
        assert_eq!(limits.disk_free_limit_bytes(), 2000);
        limits.set_memory_watermark(MemoryWatermark::Absolute(7));
        limits.set_disk_free_limit(DiskFreeLimit::Absolute(8));
        assert_eq!(limits.memory_watermark_bytes(), Some(7));
        assert_eq!(limits.disk_free_limit_bytes(), 8);
        let unknown = AlarmLimits::new(None, half, twice);
        assert_eq!((unknown.memory_watermark_bytes(), unknown.disk_free_limit_bytes()), (None, 0));
    }
}

//! Memory of the waiting messages of a vhost, summed over its queues as they change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::page::Paging;

/// The limits and the count of the memory that the waiting messages of a vhost take.
#[derive(Clone, Debug)]
pub(crate) struct QueueMemory {
    pub(crate) paging: Paging,
    pub(crate) meter: Meter,
}

/// The sum for one vhost; every queue has a handle. Only calls of the vhost change the sum, so relaxed loads
/// and stores are enough.
#[derive(Clone, Default, Debug)]
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.0.store(self.bytes() + bytes, Ordering::Relaxed);
    }

    /// Adds `bytes` until the returned share is dropped.
    pub(crate) fn share(&self, bytes: u64) -> MeterShare {
        self.add(bytes);
        MeterShare { meter: self.clone(), bytes }
    }

    pub(crate) fn subtract(&self, bytes: u64) {
        self.0.store(self.bytes() - bytes, Ordering::Relaxed);
    }
}

/// A share of the sum, subtracted when dropped.
#[derive(Default, Debug)]
pub(crate) struct MeterShare {
    meter: Meter,
    bytes: u64,
}

impl MeterShare {
    pub(crate) fn grow(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.meter.add(bytes);
    }

    pub(crate) fn shrink(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.meter.subtract(bytes);
    }
}

impl Drop for MeterShare {
    fn drop(&mut self) {
        self.meter.subtract(self.bytes);
    }
}

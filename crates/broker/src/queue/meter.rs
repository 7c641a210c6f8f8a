//! How much memory the waiting messages of a vhost take, summed up over its queues as they change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The sum for one vhost; every queue has a handle. Only the vhost's own calls change it, so that
/// plain loads and stores do.
#[derive(Clone, Default, Debug)]
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.0.store(self.bytes() + bytes, Ordering::Relaxed);
    }

    /// Adds what one thing takes, for as long as it is there.
    pub(crate) fn share(&self, bytes: u64) -> MeterShare {
        self.add(bytes);
        MeterShare { meter: self.clone(), bytes }
    }

    pub(crate) fn subtract(&self, bytes: u64) {
        self.0.store(self.bytes().saturating_sub(bytes), Ordering::Relaxed);
    }
}

/// What one thing takes of the sum; it takes nothing any more when it is dropped.
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

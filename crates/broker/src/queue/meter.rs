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

    pub(crate) fn subtract(&self, bytes: u64) {
        self.0.store(self.bytes().saturating_sub(bytes), Ordering::Relaxed);
    }
}

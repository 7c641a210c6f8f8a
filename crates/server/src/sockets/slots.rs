//! `connection_max`: the limit on AMQP connections of the node.

use std::sync::Arc;

use broker::refusal::Refusal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The connection slots of the node.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    max: u64,
    free: Arc<Semaphore>,
}

/// A slot, released when dropped.
pub(crate) type ConnectionSlot = OwnedSemaphorePermit;

impl ConnectionSlots {
    /// Creates `max` slots.
    pub(crate) fn new(max: u64) -> Self {
        let count = usize::try_from(max).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self { max, free: Arc::new(Semaphore::new(count)) }
    }

    /// Takes a slot.
    ///
    /// # Errors
    /// If no slot is free.
    pub(crate) fn take(&self) -> Result<ConnectionSlot, Refusal> {
        Arc::clone(&self.free).try_acquire_owned().map_err(|_| {
            let max = self.max;
            let text = format!("connection refused: node connection limit ({max}) is reached");
            Refusal::not_allowed(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_slot_is_free_again_when_dropped() {
        let slots = ConnectionSlots::new(1);
        let first = slots.take().unwrap();
        assert_eq!(
            slots.take().unwrap_err().explanation.as_str(),
            "connection refused: node connection limit (1) is reached"
        );
        drop(first);
        assert!(slots.take().is_ok());
    }
}

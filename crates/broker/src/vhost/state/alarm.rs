//! The alarm of memory or disk, and the deaths that wait for its end.

use std::collections::BTreeSet;

use super::pending_death::PendingDeath;
use crate::ids::QueueId;
use crate::limits::DEATHS_WAITING_BYTES_MAX;

/// The alarm state, and the deaths that wait for the end of an alarm.
#[derive(Default, Debug)]
pub(crate) struct Alarm {
    is_on: bool,
    /// Waiting deaths, in order of death.
    waiting: Vec<PendingDeath>,
    waiting_bytes: u64,
    /// Queues with due work that has to wait.
    stalled: BTreeSet<QueueId>,
}

impl Alarm {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Turns the alarm on or off; false if it already is.
    #[inline]
    pub(crate) fn set(&mut self, is_on: bool) -> bool {
        std::mem::replace(&mut self.is_on, is_on) != is_on
    }

    /// Waiting deaths, in order of death.
    #[inline]
    pub(crate) fn waiting(&self) -> &[PendingDeath] {
        &self.waiting
    }

    /// Keeps a death until the end of the alarm.
    #[inline]
    pub(crate) fn push(&mut self, death: PendingDeath) {
        self.waiting_bytes += death.message().delivery_bytes();
        self.waiting.push(death);
    }

    /// Takes all waiting deaths.
    #[inline]
    pub(crate) fn take_all(&mut self) -> Vec<PendingDeath> {
        self.waiting_bytes = 0;
        std::mem::take(&mut self.waiting)
    }

    /// Takes the waiting deaths in `queue` that `wants` selects, in order.
    pub(crate) fn take_of(
        &mut self,
        queue: QueueId,
        wants: impl Fn(&PendingDeath) -> bool,
    ) -> Vec<PendingDeath> {
        let is_taken = |death: &mut PendingDeath| death.queue == queue && wants(death);
        let taken: Vec<PendingDeath> = self.waiting.extract_if(.., is_taken).collect();
        let bytes: u64 = taken.iter().map(|death| death.message().delivery_bytes()).sum();
        assert!(bytes <= self.waiting_bytes, "a waiting death was counted with other bytes");
        self.waiting_bytes -= bytes;
        taken
    }

    // ---- queues that wait ----

    /// True if the waiting deaths reach their limit, so that nothing more may die in queues whose deaths
    /// wait.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.waiting_bytes >= DEATHS_WAITING_BYTES_MAX
    }

    /// Lists a queue that continues when there is room.
    #[inline]
    pub(crate) fn stall(&mut self, queue: QueueId) {
        self.stalled.insert(queue);
    }

    /// True if the queue is listed.
    #[inline]
    pub(crate) fn has_stalled(&self, queue: QueueId) -> bool {
        self.stalled.contains(&queue)
    }

    /// Takes the listed queues.
    #[inline]
    pub(crate) fn take_stalled(&mut self) -> BTreeSet<QueueId> {
        std::mem::take(&mut self.stalled)
    }
}

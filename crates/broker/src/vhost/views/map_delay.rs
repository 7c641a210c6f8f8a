//! A delay of a dead-letter map under construction.

use std::collections::BTreeMap;

use crate::dead_letter_map::{DelayPlace, MapDelay};
use crate::ids::QueueId;
use crate::message::Name;
use crate::queue::DelayedMessages;

/// A delay whose queues are not yet numbered.
#[derive(Debug)]
pub(super) struct Delay {
    pub(super) from: DelayedFrom,
    pub(super) to: Vec<QueueId>,
    pub(super) is_certain: bool,
    pub(super) is_anywhere: bool,
    pub(super) messages: DelayedMessages,
}

/// The place of a delay.
#[derive(Debug)]
pub(super) enum DelayedFrom {
    Exchange(Name),
    Retry(QueueId),
    Schedule(QueueId),
}

impl Delay {
    pub(super) fn in_queue(from: DelayedFrom, queue: QueueId, messages: DelayedMessages) -> Self {
        Self { from, to: vec![queue], is_certain: true, is_anywhere: false, messages }
    }

    /// The delay with the indices of its queues; none if its queue was deleted.
    pub(super) fn placed(self, places: &BTreeMap<QueueId, usize>) -> Option<MapDelay> {
        let at = match self.from {
            DelayedFrom::Exchange(name) => DelayPlace::Exchange(name),
            DelayedFrom::Retry(queue) => DelayPlace::Retry(*places.get(&queue)?),
            DelayedFrom::Schedule(queue) => DelayPlace::Schedule(*places.get(&queue)?),
        };
        let mut to: Vec<usize> = self.to.iter().filter_map(|id| places.get(id)).copied().collect();
        to.sort_unstable();
        Some(MapDelay {
            at,
            to,
            is_certain: self.is_certain,
            is_anywhere: self.is_anywhere,
            messages: self.messages.count,
            next_at: self.messages.next_at,
        })
    }
}

//! The messages that wait for their delivery time in the committed log.

use std::collections::BTreeMap;

use broker::time::Time;
use broker::{QueueNumber, Record, ScheduleTarget};

use crate::checks::message_id::id_of;

/// The beginning of the millisecond of a delivery time: the log has the millisecond, of which it means the end.
pub(crate) fn millisecond_of(ready_at: Time) -> Time {
    Time::from_micros(ready_at.as_micros() / 1000 * 1000)
}

/// A message that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) id: u64,
    /// The millisecond of its delivery time.
    pub(crate) ready_at: Time,
    /// Index of the entry from which it has this delivery time.
    pub(crate) since: u64,
}

/// A change of a message that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitEvent {
    /// The beginning of the wait.
    Entered,
    /// Another delivery time.
    Moved,
    /// The end of the wait: the delivery time has come.
    Released,
    /// The end of the message, which is never delivered.
    Removed,
}

/// The messages that wait, by their place.
#[derive(Default, Debug)]
pub(crate) struct Waits {
    waiting: BTreeMap<(QueueNumber, u64), Wait>,
    places: BTreeMap<u64, (QueueNumber, u64)>,
    targets: BTreeMap<QueueNumber, ScheduleTarget>,
    /// Time of the newest entry.
    axis: Time,
    events: Vec<(u64, WaitEvent)>,
    faults: Vec<String>,
}

impl Waits {
    /// Follows a record of an entry with this index and time.
    pub(super) fn follow(&mut self, record: &Record, index: u64, axis: Time) {
        self.axis = self.axis.max(axis);
        match record {
            Record::DeclareQueue(declared) => {
                let target = ScheduleTarget::Queue(declared.name.clone());
                self.targets.insert(declared.queue, target);
            }
            Record::DeclareExchange(declared) => {
                if let Some(store) = declared.store {
                    let target = ScheduleTarget::Exchange(declared.name.clone());
                    self.targets.insert(store, target);
                }
            }
            Record::Schedule { message, entries, ready_at } => {
                let Some(id) = id_of(message) else { return };
                let ready_at = millisecond_of(*ready_at);
                for (queue, entry) in entries {
                    let place = (*queue, entry.seq);
                    self.waiting.insert(place, Wait { id, ready_at, since: index });
                    self.places.insert(id, place);
                    self.events.push((id, WaitEvent::Entered));
                }
            }
            Record::Reschedule { queue, entry, ready_at, .. } => {
                if let Some(wait) = self.waiting.get_mut(&(*queue, entry.seq)) {
                    (wait.ready_at, wait.since) = (millisecond_of(*ready_at), index);
                    self.events.push((wait.id, WaitEvent::Moved));
                }
            }
            Record::Ready { queue, entry, .. } => {
                self.release((*queue, entry.seq), None, index, axis);
            }
            Record::DeadLetter { queue, entry, message, .. } => {
                // Nothing tells of a message that an exchange has held within an entry.
                let is_store = matches!(self.targets.get(queue), Some(ScheduleTarget::Exchange(_)));
                let unseen = id_of(message).filter(|_| is_store);
                self.release((*queue, entry.seq), unseen, index, axis);
            }
            Record::Settle { queue, entry } => {
                if let Some(wait) = self.leave(*queue, entry.seq) {
                    self.events.push((wait.id, WaitEvent::Removed));
                }
            }
            _ => {}
        }
    }

    /// The message of a place is ready, or that which was never seen there.
    fn release(
        &mut self,
        (queue, seq): (QueueNumber, u64),
        unseen: Option<u64>,
        index: u64,
        axis: Time,
    ) {
        let wait = self.leave(queue, seq);
        if let Some(id) = wait.map(|wait| wait.id).or(unseen) {
            self.events.push((id, WaitEvent::Released));
        }
        if let Some(Wait { id, ready_at, .. }) = wait.filter(|wait| wait.ready_at > axis) {
            self.faults.push(format!("early: message {id} of {ready_at:?} at entry {index}"));
        }
    }

    fn leave(&mut self, queue: QueueNumber, seq: u64) -> Option<Wait> {
        let wait = self.waiting.remove(&(queue, seq))?;
        self.places.remove(&wait.id);
        Some(wait)
    }

    /// A message that waits and is not about to be delivered.
    pub(crate) fn later(&self, id: u64) -> Option<Wait> {
        let wait = self.places.get(&id).and_then(|place| self.waiting.get(place));
        wait.copied().filter(|wait| wait.ready_at > self.axis)
    }

    /// All messages that wait, with their places and numbers there.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&ScheduleTarget, u64, Wait)> {
        let named = |((queue, seq), wait): (&(QueueNumber, u64), &Wait)| {
            Some((self.targets.get(queue)?, *seq, *wait))
        };
        self.waiting.iter().filter_map(named)
    }

    /// The changes since the last call, with the messages.
    pub(super) fn take_events(&mut self) -> Vec<(u64, WaitEvent)> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn take_faults(&mut self) -> Vec<String> {
        std::mem::take(&mut self.faults)
    }
}

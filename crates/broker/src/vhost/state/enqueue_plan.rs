//! The plan of an arrival: the places of a message in each queue that it enters, and in each place where it waits.

use smallvec::SmallVec;

use super::holder::Holder;
use crate::ids::{EntryId, QueueId, QueueNumber};
use crate::message::Message;
use crate::queue::Queue;
use crate::record::Entries;
use crate::schedule::ScheduleId;
use crate::time::Time;

/// A place in which a message waits for a time.
#[derive(Clone, Debug)]
pub(in crate::vhost) struct DelayedPlace {
    pub(in crate::vhost) holder: Holder,
    /// The number of the holder in the log.
    pub(in crate::vhost) number: QueueNumber,
    pub(in crate::vhost) entry: EntryId,
    /// True if the message survives a restart in this place.
    pub(in crate::vhost) is_durable: bool,
    pub(in crate::vhost) ready_at: Time,
    /// The message takes the place of older ones with this schedule id.
    pub(in crate::vhost) replaces: Option<ScheduleId>,
}

/// The queues that a message is about to enter, with its place in each.
#[derive(Default, Debug)]
pub(in crate::vhost) struct EnqueuePlan {
    pub(in crate::vhost) places: SmallVec<[Place; 4]>,
    pub(in crate::vhost) durable: Entries,
    /// The places in which the message waits for a time.
    pub(in crate::vhost) delayed: Vec<DelayedPlace>,
}

/// The place of a message in one queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::vhost) struct Place {
    pub(in crate::vhost) queue: QueueId,
    pub(in crate::vhost) entry: EntryId,
    /// True if the message survives a restart in this queue.
    pub(in crate::vhost) is_durable: bool,
}

impl EnqueuePlan {
    /// Reserves a place for the message in `queue`.
    #[inline]
    pub(in crate::vhost) fn add(&mut self, id: QueueId, queue: &mut Queue, message: &Message) {
        let entry = queue.assign(message);
        let is_durable = queue.is_durable_for(message);
        self.places.push(Place { queue: id, entry, is_durable });
        if is_durable {
            self.durable.push((queue.number, entry));
        }
    }

    /// Reserves a place in `queue` in which the message waits until `ready_at`.
    pub(in crate::vhost) fn schedule(
        &mut self,
        id: QueueId,
        queue: &mut Queue,
        message: &Message,
        ready_at: Time,
        replaces: Option<&ScheduleId>,
    ) {
        let entry = queue.assign(message);
        let is_durable = queue.is_durable_for(message);
        let (holder, number) = (Holder::Queue(id), queue.number);
        let replaces = replaces.cloned();
        self.delayed.push(DelayedPlace { holder, number, entry, is_durable, ready_at, replaces });
    }

    /// Reserves a place in a delayed exchange.
    pub(in crate::vhost) fn hold(&mut self, place: DelayedPlace) {
        self.delayed.push(place);
    }
}

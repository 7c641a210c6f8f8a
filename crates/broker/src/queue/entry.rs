//! A message in a queue.

use crate::ids::{EntryId, Lsn};
use crate::message::Message;
use crate::time::Time;

/// One message in one queue.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its identity in the queue.
    pub id: EntryId,
    /// The message.
    pub message: Message,
    /// The record that brought it here; 0 if it does not outlive a restart.
    pub lsn: Lsn,
    /// When it arrived in this queue; its deadline counts from here, whatever happens to it.
    pub arrived: Time,
    /// How often it was handed out.
    pub acquired_count: u32,
    /// How many of these times count against the delivery limit.
    pub delivery_count: u32,
}

impl Entry {
    /// A message that arrives.
    pub(crate) fn new(id: EntryId, message: Message, lsn: Lsn, arrived: Time) -> Self {
        let acquired_count = u32::from(message.is_maybe_seen());
        Self { id, message, lsn, arrived, acquired_count, delivery_count: 0 }
    }

    /// Whether it outlives a restart.
    pub(crate) fn is_durable(&self) -> bool {
        self.lsn != Lsn(0)
    }

    /// What expiry needs to know of it.
    pub(crate) fn front(&self) -> Front {
        let expiration_ms = self.message.facts().expiration_ms;
        Front { id: self.id, arrived: self.arrived, expiration_ms }
    }
}

/// What expiry needs to know of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Front {
    pub(crate) id: EntryId,
    pub(crate) arrived: Time,
    pub(crate) expiration_ms: Option<u64>,
}

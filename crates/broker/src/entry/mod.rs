//! A message in a queue, with the facts that the queue adds.

pub(crate) mod meter;
pub(crate) mod page_index;
pub(crate) mod totals;

use crate::ids::{EntryId, Lsn};
use crate::message::Message;
use crate::time::Time;

/// One message in one queue.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The identity of the entry in the queue.
    pub id: EntryId,
    /// The message.
    pub message: Message,
    /// The record that brought the message into the queue; 0 if the message is transient.
    pub lsn: Lsn,
    /// Time of arrival in this queue; the deadline counts from here, even after returns.
    pub arrived: Time,
    /// The number of deliveries so far.
    pub acquired_count: u32,
    /// The number of deliveries that count against the delivery limit.
    pub delivery_count: u32,
}

impl Entry {
    /// Creates the entry of a message that arrives.
    pub(crate) fn new(id: EntryId, message: Message, lsn: Lsn, arrived: Time) -> Self {
        let acquired_count = u32::from(message.is_maybe_seen());
        Self { id, message, lsn, arrived, acquired_count, delivery_count: 0 }
    }

    /// True if the message survives a restart.
    pub(crate) fn is_durable(&self) -> bool {
        self.lsn != Lsn(0)
    }

    /// The facts that decide the expiry of the message.
    pub(crate) fn expiry_key(&self) -> ExpiryKey {
        let expiration_ms = self.message.meta().expiration_ms;
        ExpiryKey { id: self.id, arrived: self.arrived, expiration_ms }
    }
}

/// The facts that decide the expiry of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ExpiryKey {
    pub(crate) id: EntryId,
    pub(crate) arrived: Time,
    pub(crate) expiration_ms: Option<u64>,
}

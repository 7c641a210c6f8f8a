//! Deliveries of a queue that are not settled, and the part of them that the log knows.

use std::collections::VecDeque;

use crate::channel_key::ChannelKey;
use crate::collections::Rare;
use crate::entry::Entry;
use crate::entry::totals::{CountedBytes, PersistentMessages, Totals};

/// The deliveries of a queue. The messages themselves are held by the channels that they were delivered on.
#[derive(Debug)]
pub(crate) struct Delivery {
    unacked: u64,
    totals: Totals,
    unacked_gets: u64,
    /// `basic.get`s that wait for messages being read from disk, with their `no-ack`.
    pub(crate) awaited_gets: Rare<VecDeque<(ChannelKey, bool)>>,
    /// The number up to which the log knows, or is about to know, that messages may have been delivered.
    delivered_up_to: u64,
    /// The next batch of the log will have `delivered_up_to`.
    is_noted: bool,
}

impl Delivery {
    pub(super) fn new(counted: CountedBytes) -> Self {
        Self {
            unacked: 0,
            totals: Totals::new(counted),
            unacked_gets: 0,
            awaited_gets: Rare::default(),
            delivered_up_to: 0,
            is_noted: false,
        }
    }

    /// Messages delivered and not acknowledged.
    pub(super) fn unacked(&self) -> u64 {
        self.unacked
    }

    pub(super) fn bytes(&self) -> u64 {
        self.totals.bytes()
    }

    pub(super) fn persistent(&self) -> PersistentMessages {
        self.totals.persistent()
    }

    /// True if a message that `basic.get` delivered is not acknowledged.
    pub(super) fn has_unacked_get(&self) -> bool {
        self.unacked_gets > 0
    }

    /// Counts a delivery that needs an acknowledgement.
    pub(super) fn begin(&mut self, entry: &Entry, by_get: bool) {
        self.unacked += 1;
        self.totals.add(&entry.message, entry.lsn);
        self.unacked_gets += u64::from(by_get);
    }

    /// Counts the end of a delivery that `begin` has counted. Both counters panic below zero.
    pub(super) fn end(&mut self, entry: &Entry, by_get: bool) {
        self.unacked -= 1;
        self.totals.subtract(&entry.message, entry.lsn);
        self.unacked_gets -= u64::from(by_get);
    }

    /// Notes that a message was delivered. True if the log has to know of it and no note is pending.
    pub(super) fn note(&mut self, entry: &Entry) -> bool {
        if !entry.is_durable() || entry.id.seq <= self.delivered_up_to {
            return false;
        }
        self.delivered_up_to = entry.id.seq;
        !std::mem::replace(&mut self.is_noted, true)
    }

    /// The number for the log's next batch; the note is no longer pending.
    pub(crate) fn take_note(&mut self) -> u64 {
        self.is_noted = false;
        self.delivered_up_to
    }

    /// Restores a note from the log during recovery: messages up to this number may have been delivered.
    pub(crate) fn restore_note(&mut self, up_to: u64) {
        self.delivered_up_to = self.delivered_up_to.max(up_to);
    }

    /// The log lost its notes: any message up to `newest` may have been delivered. True if that is to be noted.
    pub(super) fn forget_note(&mut self, newest: u64) -> bool {
        self.is_noted = self.delivered_up_to < newest;
        self.delivered_up_to = self.delivered_up_to.max(newest);
        self.is_noted
    }

    /// The number up to which messages may have been delivered.
    pub(super) fn delivered_up_to(&self) -> u64 {
        self.delivered_up_to
    }
}

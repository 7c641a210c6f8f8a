//! Positions in the log, and the channels and queues with something to write or to confirm at the end of the batch.

use std::collections::BTreeSet;

use super::effects::Effects;
use crate::channel_key::ChannelKey;
use crate::effect::Effect;
use crate::ids::{Lsn, QueueId};
use crate::record::Record;
use crate::time::Now;

/// A record with the references to others that end with it.
#[derive(Debug)]
pub(crate) struct Appended {
    /// The record this one is about; 0 for none.
    pub(crate) about: Lsn,
    /// Records of which one reference ends with this one, in addition to `about`.
    pub(crate) ended: Vec<Lsn>,
    pub(crate) record: Record,
    /// Continues the record before it: after a crash both are there, or neither.
    pub(crate) is_joined: bool,
}

/// Positions up to which the log is written and durable, and the channels and queues that wait for it.
#[derive(Default, Debug)]
pub(crate) struct LogState {
    last: Lsn,
    /// The newest record before the command that is being performed.
    command_began: Lsn,
    durable: Lsn,
    /// Channels with publishes that wait for the log, by position.
    awaiting: BTreeSet<(Lsn, ChannelKey)>,
    /// Channels with confirms to send.
    to_flush: Vec<ChannelKey>,
    /// Queues that have delivered messages for the first time in this batch.
    delivered: Vec<QueueId>,
}

impl LogState {
    /// Appends a record and returns its position.
    pub(crate) fn append(&mut self, effects: &mut Effects, at: Now, appended: Appended) -> Lsn {
        self.last.0 += 1;
        let lsn = self.last;
        let Appended { about, ended, record, is_joined } = appended;
        effects.push(Effect::Log { lsn, at, about, ended, record, is_joined });
        lsn
    }

    /// Position of the newest record.
    pub(crate) fn last(&self) -> Lsn {
        self.last
    }

    /// Position that the next record gets.
    pub(crate) fn next(&self) -> Lsn {
        Lsn(self.last.0 + 1)
    }

    /// The log has been read up to `lsn`.
    pub(crate) fn replayed(&mut self, lsn: Lsn) {
        self.last = self.last.max(lsn);
    }

    /// The whole log has been read, up to `lsn`.
    pub(crate) fn all_replayed(&mut self, lsn: Lsn) {
        self.replayed(lsn);
        self.durable = self.last;
    }

    // ---- answers ----

    /// A command begins: records from here on are its own.
    pub(crate) fn begin_command(&mut self) {
        self.command_began = self.last;
    }

    /// Position of the newest record of the command, if it has written any.
    pub(crate) fn written_by_command(&self) -> Option<Lsn> {
        (self.last > self.command_began).then_some(self.last)
    }

    /// True if the log is durable up to `lsn`.
    pub(crate) fn is_durable(&self, lsn: Lsn) -> bool {
        lsn <= self.durable
    }

    // ---- confirms ----

    /// Position up to which the log is durable.
    pub(crate) fn durable(&self) -> Lsn {
        self.durable
    }

    /// The log is durable up to `lsn`.
    pub(crate) fn set_durable(&mut self, lsn: Lsn) {
        self.durable = self.durable.max(lsn);
    }

    /// The channel has publishes that wait for the log to be durable up to `lsn`.
    pub(crate) fn await_durable(&mut self, lsn: Lsn, channel: ChannelKey) {
        self.awaiting.insert((lsn, channel));
    }

    /// Takes a channel that waits for a position up to `lsn`.
    pub(crate) fn pop_reached(&mut self, lsn: Lsn) -> Option<ChannelKey> {
        let (_, channel) = self.awaiting.first().copied().filter(|(needed, _)| *needed <= lsn)?;
        self.awaiting.pop_first();
        Some(channel)
    }

    /// The channel has confirms to send.
    pub(crate) fn list_for_flush(&mut self, channel: ChannelKey) {
        self.to_flush.push(channel);
    }

    /// Takes the channels that have confirms to send; [`LogState::flushed`] gives the memory back.
    pub(crate) fn take_to_flush(&mut self) -> Vec<ChannelKey> {
        std::mem::take(&mut self.to_flush)
    }

    pub(crate) fn flushed(&mut self, emptied: Vec<ChannelKey>) {
        self.to_flush = emptied;
    }

    // ---- deliveries ----

    /// The queue has delivered a message that it had not delivered before.
    pub(crate) fn note_delivered(&mut self, queue: QueueId) {
        self.delivered.push(queue);
    }

    /// Takes the queues that have delivered new messages; [`LogState::delivered_logged`] gives the memory back.
    pub(crate) fn take_delivered(&mut self) -> Vec<QueueId> {
        std::mem::take(&mut self.delivered)
    }

    pub(crate) fn delivered_logged(&mut self, emptied: Vec<QueueId>) {
        self.delivered = emptied;
    }
}

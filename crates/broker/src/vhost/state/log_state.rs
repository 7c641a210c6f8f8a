//! Positions in the log, and the channels and queues with records to write or confirms to send at the end of
//! the batch.

use std::collections::{BTreeSet, VecDeque};

use super::effects::Effects;
use super::holder::Holder;
use crate::channel_key::ChannelKey;
use crate::effect::Effect;
use crate::ids::{EntryId, Lsn, QueueId};
use crate::record::Record;
use crate::time::Now;

/// A record with the references to other records that end with it.
#[derive(Debug)]
pub(crate) struct Appended {
    /// The record that this one is about; 0 for none.
    pub(crate) about: Lsn,
    /// Further records that each lose one reference.
    pub(crate) ended: Vec<Lsn>,
    pub(crate) record: Record,
    /// True if the record continues the one before: after a crash either both are present or neither is.
    pub(crate) is_joined: bool,
}

/// Positions up to which the log is written and durable, and the channels and queues that wait for it.
#[derive(Default, Debug)]
pub(crate) struct LogState {
    last: Lsn,
    /// The newest record of a definition, by which publishes find their queues.
    last_definition: Lsn,
    /// The newest record before the current command.
    command_began: Lsn,
    durable: Lsn,
    /// Channels with publishes that wait for the log, by position.
    awaiting: BTreeSet<(Lsn, ChannelKey)>,
    /// Channels with confirms to send.
    to_flush: Vec<ChannelKey>,
    /// Queues that have delivered new messages in this batch.
    delivered: Vec<QueueId>,
    /// Scheduled messages that get an earlier delivery time when the log is durable, in the order of their records.
    moves: VecDeque<(Lsn, Holder, EntryId)>,
}

impl LogState {
    /// Appends a record and returns its position.
    pub(crate) fn append(&mut self, effects: &mut Effects, at: Now, appended: Appended) -> Lsn {
        self.last.0 += 1;
        let lsn = self.last;
        let Appended { about, ended, record, is_joined } = appended;
        if record.is_definition() {
            self.last_definition = lsn;
        }
        effects.push(Effect::Log { lsn, at, about, ended, record, is_joined });
        lsn
    }

    /// Position of the newest record.
    #[inline]
    pub(crate) fn last(&self) -> Lsn {
        self.last
    }

    /// Position of the newest record of a definition. What a client is told rests on all of them.
    #[inline]
    pub(crate) fn last_definition(&self) -> Lsn {
        self.last_definition
    }

    /// Position of the next record.
    #[inline]
    pub(crate) fn next(&self) -> Lsn {
        Lsn(self.last.0 + 1)
    }

    /// Notes that the log has been read up to `lsn`.
    #[inline]
    pub(crate) fn replayed(&mut self, lsn: Lsn) {
        self.last = self.last.max(lsn);
    }

    /// The whole log has been read, up to `lsn`.
    #[inline]
    pub(crate) fn all_replayed(&mut self, lsn: Lsn) {
        self.replayed(lsn);
        self.durable = self.last;
    }

    // ---- answers ----

    /// Notes the beginning of a command: later records are its own.
    #[inline]
    pub(crate) fn begin_command(&mut self) {
        self.command_began = self.last;
    }

    /// Position of the newest record of the command, if the command has written any.
    #[inline]
    pub(crate) fn written_by_command(&self) -> Option<Lsn> {
        (self.last > self.command_began).then_some(self.last)
    }

    /// True if the log is durable up to `lsn`.
    #[inline]
    pub(crate) fn is_durable(&self, lsn: Lsn) -> bool {
        lsn <= self.durable
    }

    // ---- confirms ----

    /// Position up to which the log is durable.
    #[inline]
    pub(crate) fn durable(&self) -> Lsn {
        self.durable
    }

    /// Notes that the log is durable up to `lsn`.
    #[inline]
    pub(crate) fn set_durable(&mut self, lsn: Lsn) {
        self.durable = self.durable.max(lsn);
    }

    /// Lists a channel with publishes that wait for the log to be durable up to `lsn`.
    #[inline]
    pub(crate) fn await_durable(&mut self, lsn: Lsn, channel: ChannelKey) {
        self.awaiting.insert((lsn, channel));
    }

    /// Takes a channel that waits for a position up to `lsn`.
    #[inline]
    pub(crate) fn pop_reached(&mut self, lsn: Lsn) -> Option<ChannelKey> {
        let (_, channel) = self.awaiting.first().copied().filter(|(needed, _)| *needed <= lsn)?;
        self.awaiting.pop_first();
        Some(channel)
    }

    /// Lists a channel that has confirms to send.
    #[inline]
    pub(crate) fn list_for_flush(&mut self, channel: ChannelKey) {
        self.to_flush.push(channel);
    }

    /// Takes the channels that have confirms to send; [`LogState::flushed`] returns the buffer.
    #[inline]
    pub(crate) fn take_to_flush(&mut self) -> Vec<ChannelKey> {
        std::mem::take(&mut self.to_flush)
    }

    #[inline]
    pub(crate) fn flushed(&mut self, emptied: Vec<ChannelKey>) {
        self.to_flush = emptied;
    }

    // ---- scheduled messages ----

    /// Notes that a message gets an earlier delivery time once the log is durable up to `lsn`.
    pub(crate) fn note_move(&mut self, lsn: Lsn, holder: Holder, id: EntryId) {
        self.moves.push_back((lsn, holder, id));
    }

    /// Takes the next message whose new delivery time is durable.
    #[inline]
    pub(crate) fn pop_move(&mut self) -> Option<(Lsn, Holder, EntryId)> {
        self.moves.pop_front_if(|(lsn, ..)| *lsn <= self.durable)
    }

    // ---- deliveries ----

    /// Lists a queue that has delivered a new message.
    #[inline]
    pub(crate) fn note_delivered(&mut self, queue: QueueId) {
        self.delivered.push(queue);
    }

    /// Takes the queues that have delivered new messages; [`LogState::delivered_logged`] returns the buffer.
    #[inline]
    pub(crate) fn take_delivered(&mut self) -> Vec<QueueId> {
        std::mem::take(&mut self.delivered)
    }

    #[inline]
    pub(crate) fn delivered_logged(&mut self, emptied: Vec<QueueId>) {
        self.delivered = emptied;
    }
}

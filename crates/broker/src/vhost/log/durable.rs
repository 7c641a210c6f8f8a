//! The boundary to the log: what must be durable gets a position, and confirms wait for it.
//!
//! Records are effects like any other. Whoever writes them calls `durable` with the position up to
//! which they will survive a crash; publishes that wait for that position are confirmed then, all of a
//! batch at once (`flush`). The answer to any other change carries the position it waits for
//! (`Effect::SendDurable`).

use crate::channel::{Channel, PublishMode};
use crate::effect::{Effect, Outgoing};
use crate::ids::Lsn;
use crate::record::Record;
use crate::route::At;
use crate::vhost::Vhost;

impl Vhost {
    /// Appends a record and returns its position.
    pub(in crate::vhost) fn log(&mut self, record: Record) -> Lsn {
        self.log_ending(Lsn(0), Vec::new(), record)
    }

    /// Appends a record about another.
    pub(in crate::vhost) fn log_about(&mut self, about: Lsn, record: Record) -> Lsn {
        self.log_ending(about, Vec::new(), record)
    }

    /// Appends a record about another, with which references of others end, too.
    pub(in crate::vhost) fn log_ending(
        &mut self,
        about: Lsn,
        ended: Vec<Lsn>,
        record: Record,
    ) -> Lsn {
        self.append(about, ended, record, false)
    }

    /// Appends a record that continues the one before it: after a crash both are there, or neither.
    pub(in crate::vhost) fn log_joined(&mut self, record: Record) -> Lsn {
        self.append(Lsn(0), Vec::new(), record, true)
    }

    fn append(&mut self, about: Lsn, ended: Vec<Lsn>, record: Record, is_joined: bool) -> Lsn {
        self.last_lsn.0 += 1;
        let (lsn, at) = (self.last_lsn, self.now);
        self.effects.push(Effect::Log { lsn, at, about, ended, record, is_joined });
        lsn
    }

    /// What was handed out in this batch is in the log with it.
    fn log_delivered(&mut self) {
        let mut noted = std::mem::take(&mut self.delivered);
        for id in noted.drain(..) {
            let Some(queue) = self.queues.get_mut(id) else {
                continue;
            };
            let up_to = queue.delivery.take_note();
            let (about, queue) = (queue.registration.lsn, queue.number);
            self.log_about(about, Record::Delivered { queue, up_to });
        }
        self.delivered = noted;
    }

    /// The position of the newest record.
    pub fn last_lsn(&self) -> Lsn {
        self.last_lsn
    }

    /// The log is durable up to `lsn`; call `flush` when everything that is known has been said.
    pub fn durable(&mut self, lsn: Lsn) {
        self.durable_lsn = self.durable_lsn.max(lsn);
        while let Some((needed, at)) = self.awaiting_durable.first().copied()
            && needed <= lsn
        {
            self.awaiting_durable.pop_first();
            let Some(channel) = self.channel(at) else {
                continue;
            };
            if let PublishMode::Confirm(confirms) = &mut channel.mode {
                confirms.durable(lsn);
            }
            self.list_for_flush(at);
        }
    }

    /// The channel has something to tell its publisher, or waits for the log to.
    pub(in crate::vhost) fn list_for_flush(&mut self, at: At) {
        if let Some(channel) = self.channel(at)
            && !channel.flush_listed
        {
            channel.flush_listed = true;
            self.to_flush.push(at);
        }
    }

    /// Tells publishers what can be told; call it at the end of every batch.
    pub fn flush(&mut self) {
        self.death_bytes = 0;
        self.log_delivered();
        let mut listed = std::mem::take(&mut self.to_flush);
        for at in listed.drain(..) {
            self.flush_channel(at);
        }
        self.to_flush = listed;
    }

    /// Tells one publisher; also before its channel closes.
    pub(in crate::vhost) fn flush_channel(&mut self, at: At) {
        let Self { connections, effects, awaiting_durable, counters, durable_lsn, .. } = self;
        let Some(connection) = connections.get_mut(at.connection) else {
            return;
        };
        let Some(channel) = connection.channels.get_mut(&at.channel) else {
            return;
        };
        channel.flush_listed = false;
        let Channel { mode, counters: channel_counters, .. } = &mut **channel;
        let PublishMode::Confirm(confirms) = mode else {
            return;
        };
        confirms.durable(*durable_lsn);
        confirms.flush(|confirm| {
            let (seq, multiple) = (confirm.seq, confirm.multiple);
            let outgoing = if confirm.ack {
                counters.confirmed += confirm.count;
                channel_counters.confirmed += confirm.count;
                Outgoing::Ack { seq, multiple }
            } else {
                Outgoing::Nack { seq, multiple }
            };
            effects.push(Effect::Send { connection: at.connection, channel: at.channel, outgoing });
        });
        awaiting_durable.extend(confirms.waits_for().map(|needed| (needed, at)));
    }
}

//! Positions in the log, and the confirms that wait for them.
//!
//! Records are effects like any other. The shell writes them and calls `durable` with the position up to which they
//! survive a crash; publishes that wait for that position are confirmed then, all of a batch at once (`flush`). The
//! answer to any other change carries the position it waits for (`Effect::SendDurable`).

use crate::channel::{Channel, PublishMode};
use crate::channel_key::ChannelKey;
use crate::effect::Outgoing;
use crate::ids::Lsn;
use crate::record::Record;
use crate::time::Now;
use crate::vhost::Vhost;
use crate::vhost::state::log_state::Appended;

impl Vhost {
    /// Appends a record and returns its position.
    pub(in crate::vhost) fn log(&mut self, record: Record) -> Lsn {
        self.log_ending(Lsn(0), Vec::new(), record)
    }

    /// Appends a record about another.
    pub(in crate::vhost) fn log_about(&mut self, about: Lsn, record: Record) -> Lsn {
        self.log_ending(about, Vec::new(), record)
    }

    /// Appends a record about another, with further records that each lose one reference.
    pub(in crate::vhost) fn log_ending(
        &mut self,
        about: Lsn,
        ended: Vec<Lsn>,
        record: Record,
    ) -> Lsn {
        self.append(about, ended, record, false)
    }

    /// Appends a record that continues the one before: after a crash either both are present or neither is.
    pub(in crate::vhost) fn log_joined(&mut self, record: Record) -> Lsn {
        self.append(Lsn(0), Vec::new(), record, true)
    }

    /// Appends a record about another that continues the one before.
    pub(in crate::vhost) fn log_joined_about(&mut self, about: Lsn, record: Record) -> Lsn {
        self.append(about, Vec::new(), record, true)
    }

    fn append(&mut self, about: Lsn, ended: Vec<Lsn>, record: Record, is_joined: bool) -> Lsn {
        let appended = Appended { about, ended, record, is_joined };
        self.log.append(&mut self.effects, self.now, appended)
    }

    /// Adds the records since the last call to the sums of a replicated vhost.
    pub(in crate::vhost) fn sum_records(&mut self) {
        if let Some(sums) = &mut self.sums {
            self.effects.sum_records(|lsn, record| sums.add(lsn, record));
        }
    }

    /// Logs a digest of the durable state of a replicated vhost, in one record or several; without effect in any other
    /// vhost. The first digest of a leader lists all queues, any other those that have changed.
    ///
    /// The batch of the log must end with the digest: a record after it that ends one before it would let the log drop
    /// both, and the digest would tell of a message that no replica has seen.
    pub fn log_digest(&mut self, now: Now) {
        self.advance(now);
        self.sum_records();
        let digests = self.sums.as_mut().map(|sums| sums.digests()).unwrap_or_default();
        for digest in digests {
            self.log(Record::Digest(digest));
        }
    }

    /// Logs the first deliveries of this batch, with the batch.
    fn log_delivered(&mut self) {
        let mut noted = self.log.take_delivered();
        for id in noted.drain(..) {
            // The queue may have been deleted in the batch.
            let Some(queue) = self.topology.queue_mut(id) else {
                continue;
            };
            let up_to = queue.delivery.take_note();
            let (about, queue) = (queue.registration.lsn, queue.number);
            self.log_about(about, Record::Delivered { queue, up_to });
        }
        self.log.delivered_logged(noted);
    }

    /// The position of the newest record.
    pub fn last_lsn(&self) -> Lsn {
        self.log.last()
    }

    /// Takes note that the log is durable up to `lsn`; call `flush` at the end of the batch.
    pub fn durable(&mut self, lsn: Lsn) {
        self.log.set_durable(lsn);
        self.finish_moves();
        while let Some(at) = self.log.pop_reached(lsn) {
            // The channel may have been closed.
            let Some(channel) = self.connections.channel_mut(at) else {
                continue;
            };
            if let PublishMode::Confirm(confirms) = &mut channel.mode {
                confirms.durable(lsn);
            }
            self.list_for_flush(at);
        }
    }

    /// Lists a channel with confirms to send, or with publishes that wait for the log.
    pub(in crate::vhost) fn list_for_flush(&mut self, at: ChannelKey) {
        if let Some(channel) = self.connections.channel_mut(at)
            && !channel.flush_listed
        {
            channel.flush_listed = true;
            self.log.list_for_flush(at);
        }
    }

    /// Sends the confirms that can be sent; call it at the end of every batch.
    pub fn flush(&mut self) {
        self.dead_lettering.begin_batch();
        self.log_delivered();
        let mut listed = self.log.take_to_flush();
        for at in listed.drain(..) {
            self.flush_channel(at);
        }
        self.log.flushed(listed);
    }

    /// Sends the confirms of one channel; also called before it closes. The channel may be gone.
    pub(in crate::vhost) fn flush_channel(&mut self, at: ChannelKey) {
        let Some(channel) = self.connections.channel_mut(at) else {
            return;
        };
        channel.flush_listed = false;
        let Channel { mode, counters: channel_counters, .. } = channel;
        let PublishMode::Confirm(confirms) = mode else {
            return;
        };
        confirms.durable(self.log.durable());
        confirms.flush(|confirm| {
            let (seq, multiple) = (confirm.seq, confirm.multiple);
            let outgoing = if confirm.ack {
                self.counters.confirmed += confirm.count;
                channel_counters.confirmed += confirm.count;
                Outgoing::Ack { seq, multiple }
            } else {
                Outgoing::Nack { seq, multiple }
            };
            self.effects.send(at, outgoing);
        });
        if let Some(needed) = confirms.waits_for() {
            self.log.await_durable(needed, at);
        }
    }
}

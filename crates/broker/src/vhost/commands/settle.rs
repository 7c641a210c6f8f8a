//! The end of a delivery: acknowledged, rejected, or back in its queue.

use smallvec::SmallVec;

use crate::channel::PublishMode;
use crate::channel::transaction::{Deliveries, PendingSettle};
use crate::channel::unacked::{Tags, Unacked};
use crate::channel_key::ChannelKey;
use crate::command::Outcome;
use crate::dead_letter::DeathReason;
use crate::effect::Outgoing;
use crate::ids::{DeliveryTag, Lsn, QueueId};
use crate::queue::Entry;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::vhost::Vhost;
use crate::vhost::state::death_ledger::Settler;

/// Queues whose consumers may have room now.
pub(in crate::vhost) type Touched = SmallVec<[QueueId; 4]>;

impl Vhost {
    pub(in crate::vhost) fn settle(
        &mut self,
        at: ChannelKey,
        tag: DeliveryTag,
        multiple: bool,
        outcome: Outcome,
    ) -> Result<(), Refusal> {
        let Some(channel) = self.connections.channel_mut(at) else {
            return Ok(());
        };
        let tags = Tags { tag, multiple };
        if let PublishMode::Transactional(transaction) = &mut channel.mode {
            let mut deliveries = Deliveries::new();
            channel.unacked.take(tags, |tag, unacked| deliveries.push((tag, unacked)))?;
            return transaction.settle(PendingSettle { deliveries, outcome });
        }
        if channel.annotations.is_some() {
            return self.settle_annotated(at, tags, outcome);
        }
        let mut settled: SmallVec<[Unacked; 1]> = SmallVec::new();
        channel.unacked.take(tags, |_, unacked| settled.push(unacked))?;
        channel.count_settled(outcome, settled.len());
        self.settle_all(at, settled, outcome);
        Ok(())
    }

    /// Settles deliveries that were taken off their channel, in the given order.
    pub(in crate::vhost) fn settle_all(
        &mut self,
        at: ChannelKey,
        settled: impl IntoIterator<Item = Unacked>,
        outcome: Outcome,
    ) {
        let mut touched = Touched::new();
        let freed_global = self.settle_each(at, settled, outcome, &mut touched);
        self.finish_settling(at, touched, freed_global);
    }

    /// Settles deliveries, and notes their queues, whose consumers are served by the caller. True if that makes room
    /// under a global prefetch.
    pub(in crate::vhost) fn settle_each(
        &mut self,
        at: ChannelKey,
        settled: impl IntoIterator<Item = Unacked>,
        outcome: Outcome,
        touched: &mut Touched,
    ) -> bool {
        let mut freed_global = false;
        for unacked in settled {
            self.work_done += 1;
            freed_global |= self.release(at, &unacked);
            let queue = unacked.queue;
            self.settle_entry(at, unacked, outcome);
            if touched.last() != Some(&queue) {
                touched.push(queue);
            }
        }
        freed_global
    }

    /// Serves the consumers of queues to which messages have returned, or one of whose consumers is gone.
    pub(in crate::vhost) fn serve(&mut self, mut touched: Touched) {
        touched.sort_unstable();
        touched.dedup();
        for queue in touched {
            self.dispatch(queue);
            self.enforce_limits(queue);
        }
    }

    /// Lets consumers go on after deliveries were settled in the queues `touched`.
    pub(in crate::vhost) fn finish_settling(
        &mut self,
        at: ChannelKey,
        touched: Touched,
        freed_global: bool,
    ) {
        self.serve(touched);
        if freed_global {
            self.unpark_channel(at);
        }
        self.resume_deliveries(at);
    }

    /// Counts the end of a delivery in its queue, consumer, channel and vhost. True if that makes room under
    /// a global prefetch.
    pub(in crate::vhost) fn release(&mut self, at: ChannelKey, unacked: &Unacked) -> bool {
        let bytes = unacked.entry.message.memory_bytes();
        self.unacked_memory.subtract(bytes);
        // A delivery may outlive its queue.
        if let Some(queue) = self.topology.queue_mut(unacked.queue) {
            queue.taken_back(&unacked.entry, unacked.consumer.is_none());
            match unacked.consumer {
                Some(consumer) => queue.consumers.settled(consumer, self.now.time),
                None if queue.kind().get_holds_lease() => {
                    queue.renew_lease(self.now.time);
                    self.arm_queue(unacked.queue);
                }
                None => {}
            }
        }
        let channel = self.connections.known_channel_mut(at);
        channel.delivery_ended(bytes, unacked.consumer.is_some());
        channel.prefetch_count_global > 0
    }

    /// Settles a delivery. Returns the reason if the message dies by that.
    pub(in crate::vhost) fn settle_entry(
        &mut self,
        at: ChannelKey,
        unacked: Unacked,
        outcome: Outcome,
    ) -> Option<DeathReason> {
        let Unacked { queue: id, consumer, entry, .. } = unacked;
        let Some(queue) = self.topology.queue_mut(id) else {
            // The message was deleted with its queue.
            return None;
        };
        match outcome {
            Outcome::Ack => {
                queue.counters.deliveries.acknowledged += 1;
                self.log_settled(id, &entry);
                self.left(id);
                None
            }
            Outcome::Reject => {
                self.die_settled(id, entry, DeathReason::Rejected, Settler { at, consumer });
                Some(DeathReason::Rejected)
            }
            Outcome::Requeue { failed } => {
                // A consumer that is gone, with its channel or by `basic.cancel`, asks for no delay.
                let known = consumer.and_then(|consumer| queue.consumers.get(consumer));
                let asked_delay_ms = known.and_then(|consumer| consumer.requeue_delay_ms);
                self.requeue(id, entry, failed, asked_delay_ms, Settler { at, consumer })
            }
        }
    }

    /// Returns a message to its queue, unless it has been returned too often or its deadline has passed meanwhile.
    /// The message is ready after `asked_delay_ms`, or else by the queue's rule. Returns the reason if the
    /// message dies instead.
    pub(in crate::vhost) fn requeue(
        &mut self,
        id: QueueId,
        mut entry: Entry,
        failed: bool,
        asked_delay_ms: Option<u64>,
        settler: Settler,
    ) -> Option<DeathReason> {
        let now = self.now.time;
        let queue = self.topology.known_queue_mut(id);
        if queue.counts_deliveries() {
            entry.delivery_count = entry.delivery_count.saturating_add(u32::from(failed));
            if queue.is_over_delivery_limit(&entry, failed) {
                self.die_settled(id, entry, DeathReason::DeliveryLimit, settler);
                return Some(DeathReason::DeliveryLimit);
            }
        }
        if queue.is_expired(&entry, now) {
            self.die(id, entry, DeathReason::Expired);
            return Some(DeathReason::Expired);
        }
        let retry = queue.settings.delayed_retry.as_ref();
        let delay_ms = asked_delay_ms
            .or_else(|| retry.and_then(|retry| retry.delay_ms(failed, queue.number, &entry)));
        let ready_at = delay_ms.filter(|millis| *millis > 0).map(|millis| now.plus_ms(millis));
        let lsn = entry.lsn;
        let record = Record::Requeue {
            queue: queue.number,
            entry: entry.id,
            acquired_count: entry.acquired_count,
            delivery_count: entry.delivery_count,
            ready_at,
        };
        match ready_at {
            Some(ready_at) => queue.delay(entry, ready_at),
            None => queue.give_back(entry),
        }
        if lsn != Lsn(0) {
            self.log_about(lsn, record);
        }
        self.arm_queue(id);
        None
    }

    /// `basic.recover`: all unacknowledged deliveries of the channel return to their queues, except those that an
    /// open transaction has settled.
    pub(in crate::vhost) fn recover(
        &mut self,
        at: ChannelKey,
        answer: bool,
    ) -> Result<(), Refusal> {
        let Some(channel) = self.connections.channel_mut(at) else {
            return Ok(());
        };
        let all = channel.unacked.take_all();
        channel.annotations = None;
        if answer {
            // At once: what is delivered again follows it.
            self.effects.send(at, Outgoing::RecoverOk);
        }
        self.settle_all(at, all, Outcome::Requeue { failed: false });
        Ok(())
    }
}

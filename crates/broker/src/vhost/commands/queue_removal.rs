//! Class queue: `queue.purge` and `queue.delete`, and the removal of queues without a command.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::queues::count;
use crate::access::Permission;
use crate::channel_key::ChannelKey;
use crate::command::DeleteQueue;
use crate::effect::Outgoing;
use crate::ids::{EntryId, Lsn, QueueId};
use crate::message::Name;
use crate::queue::Queue;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::timers::Wake;
use crate::vhost::Vhost;

impl Vhost {
    pub(in crate::vhost) fn purge_queue(
        &mut self,
        at: ChannelKey,
        name: &str,
        nowait: bool,
    ) -> Result<(), Refusal> {
        let name = self.queue_name(at, name)?;
        self.require(at, Permission::Read, self.queue_resource(&name))?;
        let id = self.find_queue(at, &name)?;
        self.expire_due(id);
        self.finish_deaths_of(id);
        let dead = self.take_waiting_deaths(id);
        let queue = self.topology.known_queue_mut(id);
        let (number, durable) = (queue.number, queue.ownership.durable);
        let ended = queue.durable_waiting().map(|(_, lsn)| lsn).chain(dead.lsns).collect();
        let had_scheduled = queue.next_delivery_at().is_some();
        let (waited, pages) = queue.purge();
        queue.counters.purged += dead.count;
        let purged = waited + dead.count;
        self.dead_lettering.remove_source(id);
        if durable {
            // The sums of a replicated vhost are those of durable messages; the log needs no others.
            let is_told = |lsn: Lsn| !self.options.delivers_after_commit || lsn != Lsn(0);
            let unacked = self.unacked_entries(id).into_iter();
            let kept = unacked.filter(|(_, lsn)| is_told(*lsn)).map(|(entry, _)| entry).collect();
            self.log_ending(Lsn(0), ended, Record::Purge { queue: number, kept });
        }
        self.end_pages(pages);
        if had_scheduled {
            self.scheduled_left(id);
        }
        self.left(id);
        self.waiting_deaths_taken();
        self.answer_gets(id);
        self.answer(at, nowait, Outgoing::QueuePurgeOk { message_count: count(purged) });
        Ok(())
    }

    /// Unacknowledged messages of a queue, in order of arrival, with the records that brought them.
    fn unacked_entries(&self, id: QueueId) -> Vec<(EntryId, Lsn)> {
        let held = self.connections.channels().flat_map(|(_, channel)| channel.deliveries());
        let mut entries: Vec<(EntryId, Lsn)> = held
            .filter(|unacked| unacked.queue == id)
            .map(|unacked| (unacked.entry.id, unacked.entry.lsn))
            .collect();
        entries.sort_unstable();
        entries
    }

    pub(in crate::vhost) fn delete_queue(
        &mut self,
        at: ChannelKey,
        delete: DeleteQueue<'_>,
    ) -> Result<(), Refusal> {
        let name = self.queue_name(at, delete.queue)?;
        self.require(at, Permission::Configure, self.queue_resource(&name))?;
        let removed = match self.topology.queue_id(name.as_str()) {
            None => RemovedQueue::default(),
            Some(id) => {
                self.check_owner(at, id)?;
                self.expire_due(id);
                self.finish_deaths();
                self.check_conditions(id, delete)?;
                self.remove_queue(id)
            }
        };
        let RemovedQueue { ready_count, consumers } = removed;
        // The deleting channel gets its answer before the `basic.cancel` of its consumers: a client that
        // closes the channel on `basic.cancel` would miss the answer.
        let (own, others): (Vec<_>, Vec<_>) =
            consumers.into_iter().partition(|(consumer_at, _)| *consumer_at == at);
        self.notify_cancelled(others);
        let outgoing = Outgoing::QueueDeleteOk { message_count: count(ready_count) };
        let needed = self.needed_for_answer(at);
        if !delete.nowait {
            self.send_when_durable(needed, at, outgoing);
        }
        if self.connections.understands_cancel(at.connection) {
            for (at, consumer_tag) in own {
                self.send_when_durable(needed, at, Outgoing::Cancel { consumer_tag });
            }
        }
        Ok(())
    }

    /// Checks `if-unused` and `if-empty`.
    fn check_conditions(&self, id: QueueId, delete: DeleteQueue<'_>) -> Result<(), Refusal> {
        let queue = self.topology.known_queue(id);
        let resource = self.queue_resource(&queue.name);
        for (flag, is_set) in [("if-unused", delete.if_unused), ("if-empty", delete.if_empty)] {
            if is_set && !queue.kind().allows_conditional_delete() {
                return Err(Refusal::not_implemented(format!(
                    "cannot delete {resource}. queue.delete operations with {flag} flag set are \
                     not supported by {} queues",
                    queue.kind().as_str()
                )));
            }
        }
        if delete.if_unused && queue.consumer_count() > 0 {
            return Err(Refusal::precondition_failed(format!("{resource} in use")));
        }
        if delete.if_empty && queue.ready_count() > 0 {
            return Err(Refusal::precondition_failed(format!("{resource} not empty")));
        }
        Ok(())
    }

    /// Removes a queue with its messages and consumers. Only messages that have died before are dead-lettered, and
    /// not while an alarm is on.
    fn remove_queue(&mut self, id: QueueId) -> RemovedQueue {
        self.finish_deaths_of(id);
        let dead = self.take_all_deaths(id);
        // Before the queue is removed, because the records name it.
        let bindings = std::mem::take(&mut self.topology.known_queue_mut(id).registration.bindings);
        for (source, binding) in bindings {
            self.unbind(source, &binding);
        }
        let mut queue = self.topology.remove_queue(id).expect("unbinding removes no queue");
        self.timers.disarm(&mut queue.expiry.armed, Wake::Queue(id));
        self.dead_lettering.remove_source(id);
        if let Some(owner) = queue.ownership.exclusive_owner
            && let Some(owner) = self.connections.get_mut(owner)
        {
            owner.exclusive_queues.remove(&id);
        }
        if queue.ownership.durable {
            let unacked = self.unacked_entries(id).into_iter().map(|(_, lsn)| lsn);
            let waiting = queue.durable_waiting().map(|(_, lsn)| lsn);
            let unacked = unacked.filter(|lsn| *lsn != Lsn(0));
            let ended = waiting.chain(unacked).chain(dead.lsns).collect();
            self.log_ending(
                queue.registration.lsn,
                ended,
                Record::DeleteQueue { queue: queue.number },
            );
        }
        let ready_count = queue.ready_count() + dead.count;
        let (_, pages) = queue.purge();
        self.end_pages(pages);
        self.answer_gets_empty(&mut queue);
        self.counters.queues_deleted += 1;
        let of_type = &mut self.counters.delivered_from_gone[queue.kind() as usize];
        of_type.add(&queue.counters.deliveries);
        self.topology_changed();
        let consumers = self.detach_consumers(id, &queue);
        self.waiting_deaths_taken();
        RemovedQueue { ready_count, consumers }
    }

    /// Removes a queue without a client's command, and cancels its consumers.
    pub(in crate::vhost) fn remove_queue_and_notify(&mut self, id: QueueId) {
        let removed = self.remove_queue(id);
        self.notify_cancelled(removed.consumers);
    }

    /// Removes the consumers of a deleted queue from their channels.
    fn detach_consumers(&mut self, id: QueueId, queue: &Queue) -> Vec<(ChannelKey, Name)> {
        let mut removed = Vec::new();
        for consumer in queue.consumers() {
            let at = ChannelKey { connection: consumer.connection, channel: consumer.channel };
            if let Some(channel) = self.connections.channel_mut(at) {
                channel.consumers.remove(&*consumer.tag);
            }
            removed.push((at, Arc::clone(&consumer.tag)));
        }
        let channels: BTreeSet<ChannelKey> = removed.iter().map(|(at, _)| *at).collect();
        for at in channels {
            if let Some(channel) = self.connections.channel_mut(at) {
                channel.parked.retain(|parked| parked.queue != id);
            }
        }
        removed
    }

    /// Sends `basic.cancel` for consumers that the broker has removed, to clients that understand it.
    fn notify_cancelled(&mut self, consumers: Vec<(ChannelKey, Name)>) {
        for (at, consumer_tag) in consumers {
            if self.connections.understands_cancel(at.connection) {
                self.effects.send(at, Outgoing::Cancel { consumer_tag });
            }
        }
    }
}

/// Messages and consumers of a queue that was removed.
#[derive(Default, Debug)]
#[must_use = "the clients of its consumers do not know yet"]
struct RemovedQueue {
    /// Messages that were ready.
    ready_count: u64,
    /// Consumers that were removed with the queue.
    consumers: Vec<(ChannelKey, Name)>,
}

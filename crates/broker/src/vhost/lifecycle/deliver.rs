//! From a queue to its consumers: who gets the next message, and when nobody can.
//!
//! A consumer gets a message when its own prefetch, its channel's and its connection's outbox leave
//! room. One that has none is parked with its channel until something makes room there.

use std::sync::Arc;

use crate::channel::ConsumerAt;
use crate::channel::unacked::Unacked;
use crate::delivery::{Delivery, DeliveryCounts};
use crate::effect::{Effect, Outgoing};
use crate::ids::{ChannelNumber, ConnectionId, ConsumerId, DeliveryTag, QueueId};
use crate::limits::{EXPIRY_SLICE, OUTBOX_BYTES_MAX};
use crate::message::Name;
use crate::queue::consumers::Room;
use crate::queue::{Entry, Queue};
use crate::record::Record;
use crate::route::At;
use crate::timers::Wake;
use crate::vhost::Vhost;

/// The consumer that gets a message.
struct Chosen {
    at: At,
    consumer: ConsumerId,
    tag: Name,
    no_ack: bool,
    timeout_ms: Option<u64>,
}

impl Vhost {
    /// Hands out what waits in a queue for as long as a consumer has room.
    pub(in crate::vhost) fn dispatch(&mut self, id: QueueId) {
        let mut expiry_budget = EXPIRY_SLICE;
        loop {
            let now = self.now.time;
            let Some(queue) = self.queues.get(id) else {
                return;
            };
            if queue.has_none_ready() || queue.is_away() {
                return;
            }
            let (expired, has_consumers) =
                (queue.front_is_expired(now), !queue.consumers.is_empty());
            // Who rejects everything would bring all of a long queue into memory.
            if has_consumers && self.stalls(id) {
                return;
            }
            if expired {
                if !has_consumers || expiry_budget == 0 {
                    return;
                }
                match self.expire_until(id, now, expiry_budget) {
                    0 => return,
                    expired => expiry_budget -= expired,
                }
                continue;
            }
            let Some(chosen) = self.choose(id) else {
                return;
            };
            let Some(entry) = self.pop_front(id) else { return };
            self.deliver(id, entry, chosen);
        }
    }

    /// Takes what is delivered next.
    pub(in crate::vhost) fn pop_front(&mut self, id: QueueId) -> Option<Entry> {
        let entry = self.queues.get_mut(id)?.pop_front();
        self.head_moved(id);
        self.left(id);
        entry
    }

    /// Hands a message that has just arrived to a consumer, or gives it back if none has room.
    pub(in crate::vhost) fn deliver_at_once(
        &mut self,
        id: QueueId,
        entry: Entry,
    ) -> Result<(), Entry> {
        match self.choose(id) {
            Some(chosen) => {
                self.deliver(id, entry, chosen);
                Ok(())
            }
            None => Err(entry),
        }
    }

    fn choose(&mut self, id: QueueId) -> Option<Chosen> {
        let chosen = self.choose_consumer(id);
        if !self.found_without_memory.is_empty() {
            self.note_without_memory();
        }
        chosen
    }

    fn choose_consumer(&mut self, id: QueueId) -> Option<Chosen> {
        let Self { queues, connections, effects, unacked_memory, found_without_memory, .. } = self;
        let queue = queues.get_mut(id)?;
        let consumer = queue.consumers.next(|consumer| {
            let Some(connection) = connections.get_mut(consumer.connection) else {
                return Room::No;
            };
            let Some(channel) = connection.channels.get_mut(&consumer.channel) else {
                return Room::No;
            };
            let has_memory = consumer.no_ack || unacked_memory.leaves_room(channel);
            if connection.backlog.bytes < OUTBOX_BYTES_MAX && channel.has_room() && has_memory {
                return Room::Yes;
            }
            if !has_memory {
                let at = At { connection: consumer.connection, channel: consumer.channel };
                found_without_memory.push(at);
            }
            if connection.backlog.bytes >= OUTBOX_BYTES_MAX && !connection.backlog.stalled {
                connection.backlog.stalled = true;
                effects.push(Effect::Stalled(consumer.connection));
            }
            channel.parked.push(ConsumerAt { queue: id, consumer: consumer.id });
            Room::No
        })?;
        if !consumer.no_ack {
            consumer.unacked += 1;
        }
        Some(Chosen {
            at: At { connection: consumer.connection, channel: consumer.channel },
            consumer: consumer.id,
            tag: Arc::clone(&consumer.tag),
            no_ack: consumer.no_ack,
            timeout_ms: consumer.timeout_ms,
        })
    }

    fn deliver(&mut self, id: QueueId, mut entry: Entry, chosen: Chosen) {
        if self.is_tracing() {
            self.tell_delivery(chosen.at, id, &entry);
        }
        let now = self.now.time;
        let Self { queues, connections, effects, timers, unacked_memory, .. } = self;
        let Some(queue) = queues.get_mut(id) else {
            return;
        };
        let Some(connection) = connections.get_mut(chosen.at.connection) else {
            return;
        };
        let Some(channel) = connection.channels.get_mut(&chosen.at.channel) else {
            return;
        };
        let tag = channel.next_tag();
        let delivery = queue.delivery(&entry, tag);
        channel.counters.deliveries.count(chosen.no_ack, false, delivery.redelivered);
        connection.backlog.bytes += entry.message.delivery_bytes();
        effects.push(Effect::Send {
            connection: chosen.at.connection,
            channel: chosen.at.channel,
            outgoing: Outgoing::Deliver { consumer_tag: chosen.tag, delivery },
        });
        if queue.handed_out(&mut entry, !chosen.no_ack, false) {
            self.delivered.push(id);
        }
        if chosen.no_ack {
            self.log_settled(id, &entry);
            self.left(id);
            return;
        }
        channel.unacked_by_consumers += 1;
        let timeout = chosen.timeout_ms.map(|millis| now.plus_ms(millis));
        if let Some(at) = timeout {
            let wake = Wake::Channel(chosen.at.connection, chosen.at.channel);
            timers.arm(&mut channel.armed, at, wake);
        }
        let consumer = Some(chosen.consumer);
        unacked_memory.add(channel, &entry.message);
        channel.unacked.push(tag, Unacked { queue: id, consumer, entry, timeout });
    }

    /// Records that a message left its queue for good.
    pub(in crate::vhost) fn log_settled(&mut self, id: QueueId, entry: &Entry) {
        if let Some(queue) = self.queues.get(id)
            && entry.is_durable()
        {
            let record = Record::Settle { queue: queue.number, entry: entry.id };
            self.log_about(entry.lsn, record);
        }
    }

    /// Something made room on a channel: its parked consumers wait for messages again.
    pub(in crate::vhost) fn unpark_channel(&mut self, at: At) {
        let Some(channel) = self.channel(at) else {
            return;
        };
        let parked = std::mem::take(&mut channel.parked);
        for ConsumerAt { queue, consumer } in parked {
            if let Some(queue) = self.queues.get_mut(queue) {
                queue.consumers.unpark(consumer);
            }
            self.dispatch(queue);
        }
        // Whoever was asked first is asked last when there is room again.
        if let Some(channel) = self.channel(at)
            && !channel.parked.is_empty()
        {
            channel.parked.rotate_left(1);
        }
    }

    /// Tells the core how many bytes wait for a connection's socket; room there lets its consumers
    /// have more.
    pub fn set_backlog(&mut self, now: crate::time::Now, connection: ConnectionId, bytes: u64) {
        self.advance(now);
        let Some(known) = self.connections.get_mut(connection) else {
            return;
        };
        known.backlog.bytes = bytes;
        known.backlog.asked = false;
        if !known.backlog.stalled {
            return;
        }
        if bytes >= OUTBOX_BYTES_MAX {
            // Too early: it is to be told again.
            self.effects.push(Effect::Stalled(connection));
            return;
        }
        known.backlog.stalled = false;
        // Each time another channel is the first to fill the room again.
        let mut channels: Vec<ChannelNumber> = known.channels.keys().copied().collect();
        let next = channels.partition_point(|channel| *channel <= known.backlog.served_first);
        channels.rotate_left(next);
        known.backlog.served_first = channels.first().copied().unwrap_or_default();
        for channel in channels {
            self.unpark_channel(At { connection, channel });
        }
        self.finish_deaths();
    }
}

impl Queue {
    /// A message as it is handed out. Redeliveries of a queue that counts tell their counts (spec 7.2).
    pub(in crate::vhost) fn delivery(&self, entry: &Entry, tag: DeliveryTag) -> Delivery {
        let redelivered = entry.acquired_count > 0;
        let counts =
            DeliveryCounts { acquired: entry.acquired_count, delivery: entry.delivery_count };
        Delivery {
            tag,
            redelivered,
            counts: (self.kind().counts_deliveries() && redelivered).then_some(counts),
            message: entry.message.clone(),
        }
    }
}

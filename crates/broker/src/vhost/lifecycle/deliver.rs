//! Delivery: the choice of the consumer that gets the next message of a queue.
//!
//! A consumer gets a message when its own prefetch, its channel's and its connection's outbox leave room. A
//! consumer without room is parked with its channel until there is some.

use std::sync::Arc;

use crate::channel::ConsumerAt;
use crate::channel::unacked::Unacked;
use crate::channel_key::ChannelKey;
use crate::delivery::{Delivery, DeliveryCounts};
use crate::effect::{Effect, Outgoing};
use crate::ids::{ChannelNumber, ConnectionId, ConsumerId, DeliveryTag, QueueId};
use crate::limits::{EXPIRY_SLICE, OUTBOX_BYTES_MAX};
use crate::message::Name;
use crate::queue::consumers::Room;
use crate::queue::{Entry, Queue};
use crate::record::Record;
use crate::time::Now;
use crate::timers::Wake;
use crate::vhost::Vhost;

/// The consumer that gets a message.
struct Chosen {
    at: ChannelKey,
    consumer: ConsumerId,
    tag: Name,
    no_ack: bool,
    timeout_ms: Option<u64>,
}

impl Vhost {
    /// Delivers the messages of a queue as long as a consumer has room. The queue may be gone.
    pub(in crate::vhost) fn dispatch(&mut self, id: QueueId) {
        let mut expiry_budget = EXPIRY_SLICE;
        loop {
            let now = self.now.time;
            let Some(queue) = self.topology.queue(id) else {
                return;
            };
            if queue.has_none_ready() || queue.is_away() {
                return;
            }
            let (expired, has_consumers) =
                (queue.front_is_expired(now), !queue.consumers.is_empty());
            // Without this check, a consumer that rejects every message would bring all of a long queue into
            // memory.
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
            let entry = self.pop_front(id).expect("a message is at hand");
            self.deliver(id, entry, chosen);
        }
    }

    /// Takes the next message; none if the queue is empty or the message is still being read.
    pub(in crate::vhost) fn pop_front(&mut self, id: QueueId) -> Option<Entry> {
        let entry = self.topology.known_queue_mut(id).pop_front();
        self.head_moved(id);
        self.left(id);
        entry
    }

    /// Delivers a message that has just arrived to a consumer, or returns it if none has room.
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
        if self.unacked_memory.has_found() {
            self.note_without_memory();
        }
        chosen
    }

    fn choose_consumer(&mut self, id: QueueId) -> Option<Chosen> {
        let queue = self.topology.known_queue_mut(id);
        if queue.holds_deliveries() || self.hand_over.is_halted {
            return None;
        }
        let found = queue.consumers.next(|consumer| {
            let at = ChannelKey { connection: consumer.connection, channel: consumer.channel };
            // A consumer is removed before its channel.
            let (backlog, channel) = self.connections.known_delivery_ends(at);
            let has_memory = consumer.no_ack || self.unacked_memory.leaves_room(channel);
            if backlog.bytes < OUTBOX_BYTES_MAX && channel.has_room() && has_memory {
                return Room::Yes;
            }
            if !has_memory {
                self.unacked_memory.found_without(at);
            }
            if backlog.bytes >= OUTBOX_BYTES_MAX && !backlog.stalled {
                backlog.stalled = true;
                self.effects.push(Effect::Stalled(consumer.connection));
            }
            channel.parked.push(ConsumerAt { queue: id, consumer: consumer.id });
            Room::No
        });
        let Some(consumer) = found else {
            queue.consumers.none_had_room(self.now.time);
            return None;
        };
        if !consumer.no_ack {
            consumer.unacked += 1;
        }
        Some(Chosen {
            at: ChannelKey { connection: consumer.connection, channel: consumer.channel },
            consumer: consumer.id,
            tag: Arc::clone(&consumer.tag),
            no_ack: consumer.no_ack,
            timeout_ms: consumer.timeout_ms,
        })
    }

    fn deliver(&mut self, id: QueueId, mut entry: Entry, chosen: Chosen) {
        if self.watches_deliveries {
            self.before_delivery(chosen.at, id, &entry);
        }
        let queue = self.topology.known_queue_mut(id);
        let (backlog, channel) = self.connections.known_delivery_ends(chosen.at);
        let tag = channel.next_tag();
        let delivery = queue.delivery(&entry, tag);
        channel.counters.deliveries.count(chosen.no_ack, false, delivery.redelivered);
        backlog.bytes += entry.message.delivery_bytes();
        self.effects.send(chosen.at, Outgoing::Deliver { consumer_tag: chosen.tag, delivery });
        if queue.handed_out(&mut entry, !chosen.no_ack, false) {
            self.log.note_delivered(id);
        }
        if chosen.no_ack {
            self.log_settled(id, &entry);
            self.left(id);
            return;
        }
        channel.unacked_by_consumers += 1;
        let timeout = chosen.timeout_ms.map(|millis| self.now.time.plus_ms(millis));
        if let Some(at) = timeout {
            let wake = Wake::Channel(chosen.at.connection, chosen.at.channel);
            self.timers.arm(&mut channel.armed, at, wake);
        }
        let consumer = Some(chosen.consumer);
        self.unacked_memory.add(channel, &entry.message);
        channel.unacked.push(tag, Unacked { queue: id, consumer, entry, timeout });
    }

    /// Copies a delivery to the firehose. In a replicated vhost, holds that of a quorum queue, and every redelivery: the first
    /// delivery of the message may be held behind others of its connection, and leaves no later. Called before the delivery
    /// is counted, because the copy shows whether the message was delivered before.
    #[inline(never)]
    pub(in crate::vhost) fn before_delivery(&mut self, at: ChannelKey, id: QueueId, entry: &Entry) {
        if self.firehose.is_on() {
            self.trace_delivery(at, id, entry);
        }
        let is_held = self.options.delivers_after_commit
            && (entry.acquired_count > 0
                || self.topology.known_queue(id).kind().delivers_after_commit());
        if is_held {
            self.effects.hold(at.connection);
        }
    }

    /// Logs that a message left its queue for good.
    #[inline]
    pub(in crate::vhost) fn log_settled(&mut self, id: QueueId, entry: &Entry) {
        if entry.is_durable() {
            let queue = self.topology.known_queue(id).number;
            self.log_about(entry.lsn, Record::Settle { queue, entry: entry.id });
        }
    }

    /// Lets the parked consumers of a channel wait for messages again, because there is room. The channel may
    /// be gone.
    pub(in crate::vhost) fn unpark_channel(&mut self, at: ChannelKey) {
        let Some(channel) = self.connections.channel_mut(at) else {
            return;
        };
        let parked = std::mem::take(&mut channel.parked);
        for ConsumerAt { queue: id, consumer } in parked {
            // A consumer is removed from this list before its queue is removed.
            self.topology.known_queue_mut(id).consumers.unpark(consumer, self.now.time);
            self.dispatch(id);
        }
        // The consumer that was served first is the last one next time.
        if let Some(channel) = self.connections.channel_mut(at)
            && !channel.parked.is_empty()
        {
            channel.parked.rotate_left(1);
        }
    }

    /// Sets the number of bytes that wait for a connection's socket, and delivers more if there is room.
    pub fn set_backlog(&mut self, now: Now, connection: ConnectionId, bytes: u64) {
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
            // The shell reported too early and must report again.
            self.effects.push(Effect::Stalled(connection));
            return;
        }
        known.backlog.stalled = false;
        // Each time, another channel is the first to fill the room again.
        let mut channels: Vec<ChannelNumber> = known.channels.keys().copied().collect();
        let next = channels.partition_point(|channel| *channel <= known.backlog.served_first);
        channels.rotate_left(next);
        known.backlog.served_first = channels.first().copied().unwrap_or_default();
        for channel in channels {
            self.unpark_channel(ChannelKey { connection, channel });
        }
        self.finish_deaths();
    }
}

impl Queue {
    /// Makes the delivery of a message; redeliveries of a queue that counts deliveries carry the counts.
    pub(in crate::vhost) fn delivery(&self, entry: &Entry, tag: DeliveryTag) -> Delivery {
        let redelivered = entry.acquired_count > 0;
        let counts =
            DeliveryCounts { acquired: entry.acquired_count, delivery: entry.delivery_count };
        Delivery {
            tag,
            redelivered,
            counts: (redelivered && self.counts_deliveries()).then_some(counts),
            message: entry.message.clone(),
        }
    }
}

//! `basic.get`: one message, at once or when it has been read back from its page.

use super::queues::count;
use crate::access::Permission;
use crate::channel::unacked::Unacked;
use crate::channel_key::ChannelKey;
use crate::effect::Outgoing;
use crate::ids::QueueId;
use crate::queue::Entry;
use crate::refusal::Refusal;
use crate::timers::Wake;
use crate::vhost::Vhost;

impl Vhost {
    /// `basic.get`. While the next message is being read from its page, the answer waits.
    pub(in crate::vhost) fn get(
        &mut self,
        at: ChannelKey,
        name: &str,
        no_ack: bool,
    ) -> Result<(), Refusal> {
        if self.connections.channel(at).is_none() {
            // The node itself takes no messages.
            return Ok(());
        }
        let name = self.queue_name(at, name)?;
        if self.connections.replies_at(&name).is_some() {
            let queue = self.queue_resource(&name);
            let text = format!("basic.get not supported by volatile {queue}");
            return Err(Refusal::not_implemented(text));
        }
        self.require(at, Permission::Read, self.queue_resource(&name))?;
        let id = self.find_queue(at, &name)?;
        self.check_get(id)?;
        if !no_ack {
            self.check_unacked_memory(at)?;
        }
        self.expire_due(id);
        self.finish_deaths();
        let queue = self.topology.known_queue_mut(id);
        queue.renew_lease(self.now.time);
        let is_away = (queue.is_away() && !queue.holds_deliveries()) || self.hand_over.is_halted;
        self.arm_queue(id);
        if is_away {
            self.await_get(at, id, no_ack);
        } else {
            self.answer_get(at, id, no_ack);
        }
        Ok(())
    }

    /// Answers `basic.get` with the next message.
    pub(in crate::vhost) fn answer_get(&mut self, at: ChannelKey, id: QueueId, no_ack: bool) {
        // The head may have expired, if more messages had than fit into a slice.
        let queue = self.topology.known_queue(id);
        let has_none = queue.front_is_expired(self.now.time) || queue.holds_deliveries();
        match if has_none { None } else { self.pop_front(id) } {
            None => {
                self.topology.known_queue_mut(id).counters.deliveries.got_nothing += 1;
                self.send_get_empty(at);
            }
            Some(entry) => self.answer_with(at, id, entry, no_ack),
        }
    }

    /// Answers `basic.get` with `basic.get-empty`.
    pub(in crate::vhost) fn send_get_empty(&mut self, at: ChannelKey) {
        if let Some(channel) = self.connections.channel_mut(at) {
            channel.counters.deliveries.got_nothing += 1;
        }
        self.effects.send(at, Outgoing::GetEmpty);
    }

    /// Answers `basic.get` with a message.
    fn answer_with(&mut self, at: ChannelKey, id: QueueId, mut entry: Entry, no_ack: bool) {
        if self.watches_deliveries {
            self.before_delivery(at, id, &entry);
        }
        let queue = self.topology.known_queue_mut(id);
        let channel = self.connections.known_channel_mut(at);
        let tag = channel.next_tag();
        let delivery = queue.delivery(&entry, tag);
        channel.counters.deliveries.count(no_ack, true, delivery.redelivered);
        if queue.handed_out(&mut entry, !no_ack, true) {
            self.log.note_delivered(id);
        }
        let outgoing = Outgoing::GetOk { delivery, message_count: count(queue.ready_count()) };
        if no_ack {
            self.log_settled(id, &entry);
            self.left(id);
        } else {
            let timeout = queue.settings.consumer_timeout_ms;
            let timeout = timeout.map(|millis| self.now.time.plus_ms(millis));
            if let Some(timeout) = timeout {
                let wake = Wake::Channel(at.connection, at.channel);
                self.timers.arm(&mut channel.armed, timeout, wake);
            }
            self.unacked_memory.add(channel, &entry.message);
            channel.unacked.push(tag, Unacked { queue: id, consumer: None, entry, timeout });
        }
        self.effects.send(at, outgoing);
    }

    /// Refuses `basic.get` on quorum queues with a single active consumer.
    fn check_get(&self, id: QueueId) -> Result<(), Refusal> {
        let queue = self.topology.known_queue(id);
        let allowed = !queue.consumers.is_single_active()
            || queue.kind().allows_get_with_single_active_consumer();
        if allowed {
            return Ok(());
        }
        Err(Refusal::resource_locked(format!(
            "cannot obtain access to locked {}. basic.get operations are not supported by <<\"{}\">> \
             queues with single active consumer",
            self.queue_resource(&queue.name),
            queue.kind().as_str()
        )))
    }
}

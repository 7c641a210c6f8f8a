//! Consumers and `basic.get` (spec 7.1, 7.3).

use std::sync::Arc;

use amqp::table::TableRef;

use super::queues::count;
use crate::access::Permission;
use crate::channel::unacked::Unacked;
use crate::channel::{ConsumerAt, ReplyConsumer};
use crate::command::Consume;
use crate::effect::Outgoing;
use crate::ids::QueueId;
use crate::message::Name;
use crate::names;
use crate::publish_properties::DIRECT_REPLY_TO;
use crate::queue::{Consumer, Entry, Queue};
use crate::refusal::{Refusal, Resource};
use crate::route::At;
use crate::timers::Wake;
use crate::vhost::Vhost;

/// Arguments of `basic.consume` that only streams know.
const STREAM_ARGUMENTS: [&str; 3] =
    ["x-stream-offset", "x-stream-filter", "x-stream-match-unfiltered"];

impl Vhost {
    /// COMPAT: global prefetch: honoured, on every queue type; RabbitMQ 4.3 counts it per consumer
    /// unless permitted, and then refuses it on quorum queues.
    pub(in crate::vhost) fn qos(
        &mut self,
        at: At,
        prefetch_count: u16,
        global: bool,
    ) -> Result<(), Refusal> {
        let global = global && self.options.permits_global_qos;
        let Some(channel) = self.channel(at) else {
            return Ok(());
        };
        if !global {
            channel.prefetch_count = prefetch_count;
            self.answer(at, false, Outgoing::QosOk);
            return Ok(());
        }
        channel.prefetch_count_global = prefetch_count;
        // At once: what there is room for now follows it.
        self.send(at, Outgoing::QosOk);
        self.unpark_channel(at);
        Ok(())
    }

    pub(in crate::vhost) fn consume(
        &mut self,
        at: At,
        consume: Consume<'_>,
    ) -> Result<(), Refusal> {
        let tag = self.consumer_tag(at, consume.consumer_tag)?;
        if consume.queue == DIRECT_REPLY_TO {
            return self.consume_replies(at, tag, consume);
        }
        if self.reply_addresses.contains_key(consume.queue) {
            return Err(Refusal::precondition_failed(format!(
                "only creator channel may consume from {}",
                self.queue_resource(consume.queue)
            )));
        }
        let name = self.queue_name(at, consume.queue)?;
        self.require(at, Permission::Read, self.queue_resource(&name))?;
        let id = self.find_queue(at, &name)?;
        self.check_consumer_growth(self.queue_resource(&name), consume.arguments)?;
        let consumer = self.new_consumer(at, id, Arc::clone(&tag), consume)?;
        let now = self.now.time;
        let Some(queue) = self.queues.get_mut(id) else {
            return Ok(());
        };
        let consumer = queue.consumers.add(consumer);
        queue.renew_lease(now);
        // Its lease may have been over and have waited for the end of an alarm.
        self.arm_queue(id);
        if let Some(channel) = self.channel(at) {
            channel.consumers.insert(Arc::clone(&tag), ConsumerAt { queue: id, consumer });
        }
        if !consume.nowait {
            // At once: deliveries follow it.
            self.send(at, Outgoing::ConsumeOk { consumer_tag: tag });
        }
        self.dispatch(id);
        Ok(())
    }

    /// The tag of a new consumer; one is made up if the client gives none.
    fn consumer_tag(&mut self, at: At, tag: &str) -> Result<Name, Refusal> {
        let max = self.options.consumers_per_channel_max;
        let made_up = tag.is_empty().then(|| names::generate("amq.ctag-", &mut self.random));
        let tag = made_up.unwrap_or_else(|| tag.into());
        let Some(channel) = self.channel(at) else {
            return Ok(tag);
        };
        let reused = channel.consumers.contains_key(&tag)
            || channel.reply_consumer.as_ref().is_some_and(|c| c.tag == tag);
        if reused {
            let text = format!("attempt to reuse consumer tag '{tag}'");
            return Err(Refusal::not_allowed(text));
        }
        match max {
            Some(max) if channel.consumer_count() >= max as usize => Err(Refusal::not_allowed(
                format!("reached maximum ({max}) of consumers per channel"),
            )),
            _ => Ok(tag),
        }
    }

    fn new_consumer(
        &mut self,
        at: At,
        id: QueueId,
        tag: Name,
        consume: Consume<'_>,
    ) -> Result<Consumer, Refusal> {
        let prefetch_count = self.channel(at).map(|c| c.prefetch_count).unwrap_or_default();
        let vhost = Arc::clone(&self.name);
        let mut consumer =
            Consumer::new((at.connection, at.channel), tag, consume.no_ack, false, prefetch_count);
        let Some(queue) = self.queues.get(id) else {
            return Ok(consumer);
        };
        let resource = Resource { vhost: &vhost, ..self.queue_resource(&queue.name) };
        read_arguments(&mut consumer, queue, consume.arguments, resource)?;
        if queue.kind().has_exclusive_consumers() {
            let taken = queue.consumers.has_exclusive()
                || consume.exclusive
                    && (!queue.consumers.is_empty() || queue.consumers.is_single_active());
            if taken {
                return Err(Refusal::access_refused(format!("{resource} in exclusive use")));
            }
            consumer.exclusive = consume.exclusive;
        }
        Ok(consumer)
    }

    /// Replies without a queue: the consumer gets an address that requests carry.
    fn consume_replies(&mut self, at: At, tag: Name, consume: Consume<'_>) -> Result<(), Refusal> {
        if !consume.no_ack {
            return Err(Refusal::precondition_failed("reply consumer cannot acknowledge"));
        }
        let address = names::generate("amq.rabbitmq.reply-to.", &mut self.random);
        let Some(channel) = self.channel(at) else {
            return Ok(());
        };
        if channel.reply_consumer.is_some() {
            return Err(Refusal::precondition_failed("reply consumer already set"));
        }
        let (consumer_tag, reply_address) = (Arc::clone(&tag), Arc::clone(&address));
        channel.reply_consumer = Some(ReplyConsumer { tag, address });
        self.reply_addresses.insert(reply_address, at);
        if !consume.nowait {
            self.send(at, Outgoing::ConsumeOk { consumer_tag });
        }
        Ok(())
    }

    /// `basic.cancel`; a tag that does not exist is answered like one that did.
    pub(in crate::vhost) fn cancel(
        &mut self,
        at: At,
        tag: &str,
        nowait: bool,
    ) -> Result<(), Refusal> {
        self.remove_consumer(at, tag);
        let consumer_tag = tag.into();
        self.answer(at, nowait, Outgoing::CancelOk { consumer_tag });
        Ok(())
    }

    /// Removes a consumer; its unacknowledged deliveries stay with the channel. An auto-delete queue
    /// goes with its last consumer.
    pub(in crate::vhost) fn remove_consumer(&mut self, at: At, tag: &str) {
        let now = self.now.time;
        let Some(channel) = self.channel(at) else {
            return;
        };
        if channel.reply_consumer.as_ref().is_some_and(|consumer| &*consumer.tag == tag) {
            if let Some(consumer) = channel.reply_consumer.take() {
                self.reply_addresses.remove(&*consumer.address);
            }
            return;
        }
        let Some(ConsumerAt { queue: id, consumer }) = channel.consumers.remove(tag) else {
            return;
        };
        channel.parked.retain(|parked| parked.queue != id || parked.consumer != consumer);
        let Some(queue) = self.queues.get_mut(id) else {
            return;
        };
        queue.consumers.remove(consumer);
        if !queue.consumers.is_empty() {
            self.dispatch(id);
            return;
        }
        queue.renew_lease(now);
        if queue.ownership.auto_delete && queue.consumers.had_any() {
            self.remove_queue_and_notify(id);
        } else {
            self.arm_queue(id);
        }
    }

    /// `basic.get`. Where what comes next is still being read, the answer comes later.
    pub(in crate::vhost) fn get(
        &mut self,
        at: At,
        name: &str,
        no_ack: bool,
    ) -> Result<(), Refusal> {
        let name = self.queue_name(at, name)?;
        if self.reply_addresses.contains_key(name.as_str()) {
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
        let now = self.now.time;
        let Some(queue) = self.queues.get_mut(id) else {
            return Ok(());
        };
        queue.renew_lease(now);
        let is_away = queue.is_away();
        self.arm_queue(id);
        if is_away {
            self.await_get(at, id, no_ack);
        } else {
            self.answer_get(at, id, no_ack);
        }
        Ok(())
    }

    /// Answers `basic.get` with what comes next.
    pub(in crate::vhost) fn answer_get(&mut self, at: At, id: QueueId, no_ack: bool) {
        let now = self.now.time;
        // What is left in front may have expired, if more had than a slice holds.
        let expired = self.queues.get(id).is_some_and(|queue| queue.front_is_expired(now));
        match if expired { None } else { self.pop_front(id) } {
            None => {
                if let Some(queue) = self.queues.get_mut(id) {
                    queue.counters.deliveries.got_nothing += 1;
                }
                self.send_get_empty(at);
            }
            Some(entry) => self.hand_over(at, id, entry, no_ack),
        }
    }

    /// Answers `basic.get` with nothing.
    pub(in crate::vhost) fn send_get_empty(&mut self, at: At) {
        if let Some(channel) = self.channel(at) {
            channel.counters.deliveries.got_nothing += 1;
        }
        self.send(at, Outgoing::GetEmpty);
    }

    /// Answers `basic.get` with a message.
    fn hand_over(&mut self, at: At, id: QueueId, mut entry: Entry, no_ack: bool) {
        if self.is_tracing() {
            self.tell_delivery(at, id, &entry);
        }
        let now = self.now.time;
        let Self { queues, connections, timers, unacked_memory, .. } = self;
        let Some(queue) = queues.get_mut(id) else {
            return;
        };
        let Some(connection) = connections.get_mut(at.connection) else {
            return;
        };
        let Some(channel) = connection.channels.get_mut(&at.channel) else {
            return;
        };
        let tag = channel.next_tag();
        let delivery = queue.delivery(&entry, tag);
        channel.counters.deliveries.count(no_ack, true, delivery.redelivered);
        if queue.handed_out(&mut entry, !no_ack, true) {
            self.delivered.push(id);
        }
        let outgoing = Outgoing::GetOk { delivery, message_count: count(queue.ready_count()) };
        if no_ack {
            self.log_settled(id, &entry);
            self.left(id);
        } else {
            let timeout = queue.settings.consumer_timeout_ms.map(|millis| now.plus_ms(millis));
            if let Some(timeout) = timeout {
                let wake = Wake::Channel(at.connection, at.channel);
                timers.arm(&mut channel.armed, timeout, wake);
            }
            unacked_memory.add(channel, &entry.message);
            channel.unacked.push(tag, Unacked { queue: id, consumer: None, entry, timeout });
        }
        self.send(at, outgoing);
    }

    /// Quorum queues with a single active consumer cannot be polled.
    fn check_get(&self, id: QueueId) -> Result<(), Refusal> {
        let Some(queue) = self.queues.get(id) else {
            return Ok(());
        };
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

/// The arguments of `basic.consume`; unknown ones are kept and ignored.
fn read_arguments(
    consumer: &mut Consumer,
    queue: &Queue,
    arguments: TableRef<'_>,
    resource: Resource<'_>,
) -> Result<(), Refusal> {
    let kind = queue.kind();
    let foreign = STREAM_ARGUMENTS
        .into_iter()
        .chain((!kind.has_consumer_timeout()).then_some("x-consumer-timeout"));
    for name in foreign {
        if arguments.get(name).is_some() {
            return Err(Refusal::precondition_failed(format!(
                "invalid arg '{name}' for {resource} of queue type {}",
                kind.module()
            )));
        }
    }
    let integer = |name: &str| match arguments.get(name) {
        None => Ok(None),
        Some(value) => value.as_integer().map(Some).ok_or_else(|| {
            let reason = format!("\"expected integer, got {}\"", value.type_name());
            Refusal::invalid_argument(name, resource, &reason)
        }),
    };
    consumer.priority = integer("x-priority")?.unwrap_or(0);
    consumer.timeout_ms = match integer("x-consumer-timeout")? {
        None => queue.settings.consumer_timeout_ms,
        Some(millis) => Some(u64::try_from(millis).map_err(|_| {
            let reason = format!("{{value_negative,{millis}}}");
            Refusal::invalid_argument("x-consumer-timeout", resource, &reason)
        })?),
    };
    consumer.arguments = arguments.to_table();
    Ok(())
}

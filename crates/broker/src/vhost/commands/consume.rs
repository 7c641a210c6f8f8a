//! Consumers: `basic.qos`, `basic.consume`, `basic.cancel`.

use std::sync::Arc;

use amqp::table::TableRef;

use crate::access::Permission;
use crate::channel::{ConsumerAt, ReplyConsumer};
use crate::channel_key::ChannelKey;
use crate::command::Consume;
use crate::effect::Outgoing;
use crate::generated_names;
use crate::ids::QueueId;
use crate::limits::DELIVERY_DELAY_MS_MAX;
use crate::message::Name;
use crate::publish_properties::DIRECT_REPLY_TO;
use crate::queue::{Consumer, Queue};
use crate::refusal::{Refusal, Resource};
use crate::vhost::Vhost;

/// The argument of `basic.consume` for the delay of what the consumer gives back: Leveret's own.
const REQUEUE_DELAY: &str = "x-requeue-delay";

/// Arguments of `basic.consume` that only streams support.
const STREAM_ARGUMENTS: [&str; 3] =
    ["x-stream-offset", "x-stream-filter", "x-stream-match-unfiltered"];

impl Vhost {
    /// COMPAT: global prefetch: honoured, on every queue type; RabbitMQ 4.3 counts it per consumer unless
    /// permitted, and then refuses it on quorum queues.
    pub(in crate::vhost) fn qos(
        &mut self,
        at: ChannelKey,
        prefetch_count: u16,
        global: bool,
    ) -> Result<(), Refusal> {
        let global = global && self.options.permits_global_qos;
        let Some(channel) = self.connections.channel_mut(at) else {
            return Ok(());
        };
        if !global {
            channel.prefetch_count = prefetch_count;
            self.answer(at, false, Outgoing::QosOk);
            return Ok(());
        }
        channel.prefetch_count_global = prefetch_count;
        // At once: what there is room for now follows it.
        self.effects.send(at, Outgoing::QosOk);
        self.unpark_channel(at);
        Ok(())
    }

    pub(in crate::vhost) fn consume(
        &mut self,
        at: ChannelKey,
        consume: Consume<'_>,
    ) -> Result<(), Refusal> {
        if self.connections.channel(at).is_none() {
            // The node itself has no consumers.
            return Ok(());
        }
        let tag = self.consumer_tag(at, consume.consumer_tag)?;
        if consume.queue == DIRECT_REPLY_TO {
            return self.consume_replies(at, tag, consume);
        }
        if self.connections.replies_at(consume.queue).is_some() {
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
        let queue = self.topology.known_queue_mut(id);
        let consumer = queue.consumers.add(consumer, self.now.time);
        queue.renew_lease(self.now.time);
        // The lease may have ended and waited for the end of an alarm.
        self.arm_queue(id);
        if let Some(channel) = self.connections.channel_mut(at) {
            channel.consumers.insert(Arc::clone(&tag), ConsumerAt { queue: id, consumer });
        }
        if !consume.nowait {
            // At once: deliveries follow it.
            self.effects.send(at, Outgoing::ConsumeOk { consumer_tag: tag });
        }
        self.dispatch(id);
        Ok(())
    }

    /// The tag of a new consumer, generated if the client gives none.
    fn consumer_tag(&mut self, at: ChannelKey, tag: &str) -> Result<Name, Refusal> {
        let max = self.options.consumers_per_channel_max;
        let made_up =
            tag.is_empty().then(|| generated_names::generate("amq.ctag-", &mut self.random));
        let tag = made_up.unwrap_or_else(|| tag.into());
        let Some(channel) = self.connections.channel_mut(at) else {
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
        at: ChannelKey,
        id: QueueId,
        tag: Name,
        consume: Consume<'_>,
    ) -> Result<Consumer, Refusal> {
        let prefetch_count =
            self.connections.channel_mut(at).map(|c| c.prefetch_count).unwrap_or_default();
        let vhost = Arc::clone(&self.name);
        let mut consumer =
            Consumer::new((at.connection, at.channel), tag, consume.no_ack, false, prefetch_count);
        let queue = self.topology.known_queue(id);
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

    /// Starts a consumer of direct replies, whose address is put into requests.
    fn consume_replies(
        &mut self,
        at: ChannelKey,
        tag: Name,
        consume: Consume<'_>,
    ) -> Result<(), Refusal> {
        if !consume.no_ack {
            return Err(Refusal::precondition_failed("reply consumer cannot acknowledge"));
        }
        let address = generated_names::generate("amq.rabbitmq.reply-to.", &mut self.random);
        let Some(channel) = self.connections.channel_mut(at) else {
            return Ok(());
        };
        if channel.reply_consumer.is_some() {
            return Err(Refusal::precondition_failed("reply consumer already set"));
        }
        let (consumer_tag, reply_address) = (Arc::clone(&tag), Arc::clone(&address));
        channel.reply_consumer = Some(ReplyConsumer { tag, address });
        self.connections.add_reply_address(reply_address, at);
        if !consume.nowait {
            self.effects.send(at, Outgoing::ConsumeOk { consumer_tag });
        }
        Ok(())
    }

    /// `basic.cancel`; an unknown tag gets the same answer.
    pub(in crate::vhost) fn cancel(
        &mut self,
        at: ChannelKey,
        tag: &str,
        nowait: bool,
    ) -> Result<(), Refusal> {
        self.remove_consumer(at, tag);
        let consumer_tag = tag.into();
        self.answer(at, nowait, Outgoing::CancelOk { consumer_tag });
        Ok(())
    }

    /// Removes a consumer; its unacknowledged deliveries stay with the channel. An auto-delete queue is
    /// deleted with its last consumer.
    pub(in crate::vhost) fn remove_consumer(&mut self, at: ChannelKey, tag: &str) {
        if let Some(left) = self.detach_consumer(at, tag) {
            self.dispatch(left.queue);
        }
    }

    /// Removes a consumer as [`Vhost::remove_consumer`] does, and serves no other one yet: what the consumer holds may
    /// have to return first. None if there is no such consumer of a queue, which may be gone.
    pub(in crate::vhost) fn detach_consumer(
        &mut self,
        at: ChannelKey,
        tag: &str,
    ) -> Option<ConsumerAt> {
        let channel = self.connections.channel_mut(at)?;
        if channel.reply_consumer.as_ref().is_some_and(|consumer| &*consumer.tag == tag) {
            if let Some(consumer) = channel.reply_consumer.take() {
                self.connections.remove_reply_address(&consumer.address);
            }
            return None;
        }
        let ConsumerAt { queue: id, consumer } = channel.consumers.remove(tag)?;
        channel.parked.retain(|parked| parked.queue != id || parked.consumer != consumer);
        // A deleted queue removes its consumers from their channels.
        let queue = self.topology.known_queue_mut(id);
        queue.consumers.remove(consumer);
        if queue.consumers.is_empty() {
            queue.renew_lease(self.now.time);
            if queue.ownership.auto_delete && queue.consumers.had_any() {
                self.remove_queue_and_notify(id);
            } else {
                self.arm_queue(id);
            }
        }
        Some(ConsumerAt { queue: id, consumer })
    }
}

/// Reads the arguments of `basic.consume`; unknown ones are kept and ignored.
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
    let millis = |name: &str| {
        let millis = integer(name)?.map(|millis| {
            u64::try_from(millis).map_err(|_| {
                let reason = format!("{{value_negative,{millis}}}");
                Refusal::invalid_argument(name, resource, &reason)
            })
        });
        millis.transpose()
    };
    consumer.timeout_ms = millis("x-consumer-timeout")?.or(queue.settings.consumer_timeout_ms);
    consumer.requeue_delay_ms = millis(REQUEUE_DELAY)?;
    if let Some(delay_ms) = consumer.requeue_delay_ms.filter(|ms| *ms > DELIVERY_DELAY_MS_MAX) {
        let reason = format!("{{value_too_large,{delay_ms}}}");
        return Err(Refusal::invalid_argument(REQUEUE_DELAY, resource, &reason));
    }
    consumer.arguments = arguments.to_table();
    Ok(())
}

//! `basic.publish`: checked, routed, and into its queues.

use std::sync::Arc;

use amqp::properties::Properties;

use crate::access::Permission;
use crate::channel::transaction::PendingPublish;
use crate::channel::{LastRoute, PublishMode};
use crate::channel_key::ChannelKey;
use crate::command::Publish;
use crate::effect::Outgoing;
use crate::exchange::control::{SCHEDULE_EXCHANGE, SETTLE_EXCHANGE};
use crate::exchange::{ExchangeType, UnroutablePublish};
use crate::ids::{ExchangeId, Lsn, PublishSeq, QueueId};
use crate::message::{Envelope, Message};
use crate::publish_properties::delivery_time::{DeliveryTime, ExchangeDelay, has_ignored_delay};
use crate::publish_properties::schedule_headers::NamedSchedule;
use crate::publish_properties::{self, DIRECT_REPLY_TO, Prepared};
use crate::queue::Queue;
use crate::refusal::Refusal;
use crate::route::Route;
use crate::time::Time;
use crate::vhost::Vhost;
use crate::vhost::state::enqueue_plan::EnqueuePlan;
use crate::vhost::state::holder::Holder;

/// The outcome of a publish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::vhost) enum Verdict {
    /// The queues have the message; it is safe once the log is durable up to this position, or, with none, once the
    /// definitions are durable by which the message went to other queues or to no queue.
    Accepted(Option<Lsn>),
    /// At least one queue refused it.
    Refused,
}

impl Verdict {
    fn of(refused: bool, lsn: Option<Lsn>) -> Self {
        if refused { Self::Refused } else { Self::Accepted(lsn) }
    }
}

/// A publish with a known route.
#[derive(Clone, Copy, Debug)]
pub(in crate::vhost) struct RoutedPublish<'a> {
    pub(in crate::vhost) exchange: ExchangeId,
    pub(in crate::vhost) route: &'a Route,
    pub(in crate::vhost) mandatory: bool,
    pub(in crate::vhost) body_bytes: usize,
}

impl LastRoute {
    /// True if the route is that of `publish`, in this version of the topology.
    #[inline]
    fn is_of(&self, publish: &Publish<'_>, topology: u64) -> bool {
        self.route.can_be_remembered
            && self.topology == topology
            && *self.envelope.routing_key.as_bytes() == *publish.routing_key
            && *self.envelope.exchange.as_bytes() == *publish.exchange
    }
}

impl Vhost {
    pub(in crate::vhost) fn publish(
        &mut self,
        at: ChannelKey,
        publish: Publish<'_>,
    ) -> Result<(), Refusal> {
        // Taken and put back instead of cloned, because a route to many queues is an allocation.
        let remembered = self.connections.channel_mut(at).and_then(|known| known.last_route.take());
        let topology = self.topology.version();
        let known = remembered.as_deref().filter(|last| last.is_of(&publish, topology));
        let is_known = known.is_some();
        let exchange = match known {
            Some(last) => last.exchange,
            None if *publish.exchange == *SCHEDULE_EXCHANGE.as_bytes() => {
                self.remember_route(at, remembered);
                return self.publish_operation(at, &publish);
            }
            None if *publish.exchange == *SETTLE_EXCHANGE.as_bytes() => {
                self.remember_route(at, remembered);
                return self.publish_settlement(at, &publish);
            }
            None => self.check_exchange(at, &publish)?,
        };
        let properties = publish_properties::parse(publish.content.properties())?;
        let prepared = self.prepare(at, &publish, &properties)?;
        let last = match remembered {
            Some(last) if is_known && prepared.cc.is_empty() && prepared.bcc.is_empty() => last,
            Some(mut replaced) => {
                *replaced = self.find_route(at, exchange, &publish, &prepared)?;
                replaced
            }
            None => Box::new(self.find_route(at, exchange, &publish, &prepared)?),
        };
        self.publish_along(at, publish, &prepared, &last)?;
        self.remember_route(at, Some(last));
        Ok(())
    }

    #[inline]
    fn remember_route(&mut self, at: ChannelKey, route: Option<Box<LastRoute>>) {
        if let Some(channel) = self.connections.channel_mut(at) {
            channel.last_route = route;
        }
    }

    /// Lets a publish with a known route into its queues, or into the transaction.
    fn publish_along(
        &mut self,
        at: ChannelKey,
        publish: Publish<'_>,
        prepared: &Prepared,
        LastRoute { exchange, envelope, route, .. }: &LastRoute,
    ) -> Result<(), Refusal> {
        let exchange = *exchange;
        let mandatory = publish.mandatory;
        let body_bytes = publish.content.body().len();
        let rewritten = prepared.rewritten.as_deref();
        if self.firehose.is_on() {
            let (envelope, content) = (Arc::clone(envelope), publish.content.clone());
            let message = Message::new(envelope, prepared.meta, content, rewritten);
            self.trace_publish(at, &message, route);
        }
        let shared = Arc::clone(envelope);
        let message = || Message::new(shared, prepared.meta, publish.content, rewritten);
        let Some(channel) = self.connections.channel_mut(at) else { return Ok(()) };
        let seq = match &mut channel.mode {
            PublishMode::Transactional(transaction) => {
                return transaction.publish(PendingPublish {
                    exchange,
                    message: message(),
                    route: route.clone(),
                    mandatory,
                    delivery_time: prepared.delivery_time.clone(),
                });
            }
            PublishMode::Confirm(confirms) => Some(confirms.assign()),
            PublishMode::Plain => None,
        };
        channel.counters.published += 1;
        self.counters.published_for_confirm += u64::from(seq.is_some());
        let routed = RoutedPublish { exchange, route, mandatory, body_bytes };
        self.count_publish(at, envelope, &routed);
        let verdict = if route.is_empty() && !mandatory {
            self.drop_unroutable(at)
        } else {
            self.enqueue_publish(at, &routed, message(), prepared.delivery_time.as_deref())
        };
        if verdict == Verdict::Refused {
            self.count_refused(at, exchange);
        }
        if let Some(seq) = seq {
            self.confirm(at, seq, verdict);
        }
        Ok(())
    }

    /// The exchange of a publish; checks that the user may publish to it with this key.
    fn check_exchange(&self, at: ChannelKey, publish: &Publish<'_>) -> Result<ExchangeId, Refusal> {
        let name = String::from_utf8_lossy(&publish.exchange);
        let name = name.replace(['\r', '\n'], "");
        let name = name.as_str();
        let resource = self.exchange_resource(name);
        self.require(at, Permission::Write, resource)?;
        let id = self.find_exchange(name)?;
        if self.topology.known_exchange(id).internal {
            let text = format!("cannot publish to internal {resource}");
            return Err(Refusal::access_refused(text));
        }
        self.check_topic(at, id, &publish.routing_key)?;
        Ok(id)
    }

    /// Checks topic permissions, which limit the keys of topic exchanges, including those in `CC` and `BCC`.
    fn check_topic(&self, at: ChannelKey, exchange: ExchangeId, key: &[u8]) -> Result<(), Refusal> {
        let exchange = self.topology.known_exchange(exchange);
        match self.connections.get(at.connection) {
            Some(connection) if exchange.routing_type == ExchangeType::Topic => {
                let resource = self.exchange_resource(&exchange.name);
                let key = String::from_utf8_lossy(key);
                connection.access.require_topic(Permission::Write, resource, &key)
            }
            _ => Ok(()),
        }
    }

    /// Reads the properties of a publish; a request for direct replies gets its address.
    pub(super) fn prepare(
        &mut self,
        at: ChannelKey,
        publish: &Publish<'_>,
        properties: &Properties<'_>,
    ) -> Result<Prepared, Refusal> {
        if let Some(user_id) = properties.user_id
            && let Some(connection) = self.connections.get(at.connection)
        {
            connection.access.check_user_id(user_id)?;
        }
        let mut reply_to = None;
        if properties.reply_to == Some(DIRECT_REPLY_TO.as_bytes()) {
            let channel = self.connections.channel(at);
            let consumer = channel.and_then(|channel| channel.reply_consumer.as_ref());
            let consumer = consumer.ok_or_else(|| {
                Refusal::precondition_failed("fast reply consumer does not exist")
            })?;
            reply_to = Some(&*consumer.address);
        }
        let prepared =
            publish_properties::prepare(properties, publish.content.properties(), reply_to)?;
        if let Some(delivery_time) = &prepared.delivery_time {
            delivery_time.check(self.now)?;
            self.counters.schedules.ignored += u64::from(delivery_time.is_ignored());
            properties.headers.map(NamedSchedule::of).transpose()?;
        }
        Ok(prepared)
    }

    /// Routes a publish.
    fn find_route(
        &mut self,
        at: ChannelKey,
        exchange: ExchangeId,
        publish: &Publish<'_>,
        prepared: &Prepared,
    ) -> Result<LastRoute, Refusal> {
        for key in prepared.cc.iter().chain(&prepared.bcc) {
            self.check_topic(at, exchange, key.as_bytes())?;
        }
        let envelope = Arc::new(Envelope {
            exchange: Arc::clone(&self.topology.known_exchange(exchange).name),
            routing_key: (&*publish.routing_key).into(),
            cc: prepared.cc.clone(),
            bcc: prepared.bcc.clone(),
        });
        let properties = prepared.rewritten.as_deref();
        let properties = properties.unwrap_or_else(|| publish.content.properties());
        let route = self.route(exchange, &envelope, properties);
        if route.reaches_delayed {
            ExchangeDelay::of(properties).check()?;
            NamedSchedule::check(properties)?;
            self.counters.schedules.ignored += u64::from(has_ignored_delay(properties));
        }
        Ok(LastRoute { topology: self.topology.version(), exchange, envelope, route })
    }

    /// Counts a publish in its exchange and vhost, and keeps the key of one that reaches no queue. The caller counts the publish in its channel, which it has
    /// looked up anyway.
    pub(in crate::vhost) fn count_publish(
        &mut self,
        at: ChannelKey,
        envelope: &Envelope,
        publish: &RoutedPublish<'_>,
    ) {
        let RoutedPublish { exchange, route, mandatory, body_bytes } = *publish;
        let routed = route.queues.len() as u64;
        // A transaction may hold the id of a deleted exchange.
        if let Some(exchange) = self.topology.exchange_mut(exchange) {
            exchange.counters.published_in += 1;
            exchange.counters.published_out += routed;
            match (route.is_empty(), mandatory) {
                (false, _) => {}
                (true, true) => exchange.counters.returned_unroutable += 1,
                (true, false) => {
                    exchange.counters.dropped_unroutable += 1;
                    exchange.last_unroutable = Some(UnroutablePublish {
                        routing_key: envelope.routing_key.clone(),
                        connection: at.connection,
                    });
                }
            }
        }
        self.counters.published += 1;
        self.counters.routed += routed;
        self.counters.message_sizes.record(body_bytes);
    }

    /// Lets a publish into its queues and into the delayed exchanges that hold it. A mandatory publish without a queue
    /// is returned, as is one that would have none if the delays were over now.
    pub(in crate::vhost) fn enqueue_publish(
        &mut self,
        at: ChannelKey,
        publish: &RoutedPublish<'_>,
        message: Message,
        delivery_time: Option<&DeliveryTime>,
    ) -> Verdict {
        let RoutedPublish { exchange, route, mandatory, .. } = *publish;
        if mandatory && self.is_unroutable(exchange, &message, route) {
            self.return_unroutable(at, message.clone());
        } else if route.is_empty() {
            return self.drop_unroutable(at);
        }
        for requester in &route.requesters {
            self.deliver_reply(*requester, &message);
        }
        let mut plan = EnqueuePlan::default();
        let (mut refused, mut older) = (false, None);
        if !route.holders.is_empty() {
            (refused, older) = self.hold_publish(&route.holders, &message, &mut plan);
        }
        if let Some(ready_at) = delivery_time.and_then(|time| self.ready_at(*time, &message)) {
            return self.schedule_publish(route, &message, plan, ready_at, (refused, older));
        }
        let add = |id, queue: &mut Queue| plan.add(id, queue, &message);
        refused |= self.plan_queues(&route.queues, &message, add);
        let lsn = self.enqueue(message, &plan).max(older);
        Verdict::of(refused, lsn)
    }

    /// Lets a publish into its queues, to be ready at `ready_at`, and into the delayed exchanges of `plan`, which hold
    /// the message as it was published, unless some of them have refused it, or older messages stay there.
    #[cold]
    fn schedule_publish(
        &mut self,
        route: &Route,
        message: &Message,
        mut plan: EnqueuePlan,
        ready_at: Time,
        (refused, older): (bool, Option<Lsn>),
    ) -> Verdict {
        let held = self.enqueue(message.clone(), &std::mem::take(&mut plan));
        let message = self.scheduled(message, ready_at);
        let named = NamedSchedule::of_message(&message);
        let admitted = self.admit(named.as_ref(), &route.queues, Holder::Queue);
        let replaces = named.as_ref().and_then(NamedSchedule::replaces);
        let schedule =
            |id, queue: &mut Queue| plan.schedule(id, queue, &message, ready_at, replaces);
        let is_full = self.plan_queues(&admitted.targets, &message, schedule);
        self.collect_places(&plan.delayed, named.as_ref());
        let lsn = self.enqueue(message, &plan).max(held).max(older).max(admitted.older);
        Verdict::of(refused || admitted.has_no_room || is_full, lsn)
    }

    /// Reserves places for a publish in the delayed exchanges that hold the message. Returns true if one of them has no room
    /// for the schedule id, and the position behind the older messages that stay there instead.
    #[cold]
    fn hold_publish(
        &mut self,
        holders: &[ExchangeId],
        message: &Message,
        plan: &mut EnqueuePlan,
    ) -> (bool, Option<Lsn>) {
        let named = NamedSchedule::of_message(message);
        let admitted = self.admit(named.as_ref(), holders, Holder::Exchange);
        let replaces = named.as_ref().and_then(NamedSchedule::replaces);
        self.hold_in_exchanges(&admitted.targets, message, replaces, plan);
        self.collect_places(&plan.delayed, named.as_ref());
        (admitted.has_no_room, admitted.older)
    }

    /// The time at which a publish is ready; none if the message does not wait. A message with a schedule id waits for
    /// the end of the call even if its time has come, because it may take the place of older messages.
    #[cold]
    fn ready_at(&self, delivery_time: DeliveryTime, message: &Message) -> Option<Time> {
        if !delivery_time.is_given() {
            return None;
        }
        let now = self.now;
        let has_name = || NamedSchedule::of_message(message).is_some();
        delivery_time.ready_at(now.time, now).or_else(|| has_name().then_some(now.time))
    }

    /// Counts the publish in each queue of `queues` that accepts the message, and lets `plan` reserve its place. True
    /// if a queue refuses the message.
    #[inline]
    fn plan_queues(
        &mut self,
        queues: &[QueueId],
        message: &Message,
        mut plan: impl FnMut(QueueId, &mut Queue),
    ) -> bool {
        let mut refused = false;
        for id in queues {
            // A transaction may hold the id of a deleted queue.
            if self.topology.queue(*id).is_none() {
                continue;
            }
            if self.refuses(*id, message) {
                refused = true;
                continue;
            }
            let queue = self.topology.known_queue_mut(*id);
            queue.counters.published += 1;
            plan(*id, queue);
        }
        refused
    }

    /// True if no queue would get a publish, even if the delays of exchanges were over now.
    fn is_unroutable(&mut self, exchange: ExchangeId, message: &Message, route: &Route) -> bool {
        // A transaction may hold the id of a deleted exchange.
        if route.holders.is_empty() || self.topology.exchange(exchange).is_none() {
            return route.is_empty();
        }
        self.route_at_once(exchange, message.envelope(), message.properties()).is_empty()
    }

    /// Returns a mandatory publish without a queue to the publisher.
    #[cold]
    pub(super) fn return_unroutable(&mut self, at: ChannelKey, message: Message) {
        self.counters.returned_unroutable += 1;
        if let Some(channel) = self.connections.channel_mut(at) {
            channel.counters.returned_unroutable += 1;
        }
        self.effects.send(at, Outgoing::Return { message });
    }

    /// Drops an unroutable publish that is not mandatory.
    pub(super) fn drop_unroutable(&mut self, at: ChannelKey) -> Verdict {
        self.counters.dropped_unroutable += 1;
        if let Some(channel) = self.connections.channel_mut(at) {
            channel.counters.dropped_unroutable += 1;
        }
        Verdict::Accepted(None)
    }

    /// Counts a publish that a full queue refused, in its channel and its exchange. The queues and the vhost
    /// count for themselves.
    #[cold]
    pub(in crate::vhost) fn count_refused(&mut self, at: ChannelKey, exchange: ExchangeId) {
        self.counters.publishes_refused += 1;
        if let Some(channel) = self.connections.channel_mut(at) {
            channel.counters.refused += 1;
        }
        // A transaction may hold the id of a deleted exchange.
        if let Some(exchange) = self.topology.exchange_mut(exchange) {
            exchange.counters.refused += 1;
        }
    }

    /// Notes the outcome of a publish, which was numbered in this call, for the channel's next confirms.
    pub(in crate::vhost) fn confirm(&mut self, at: ChannelKey, seq: PublishSeq, verdict: Verdict) {
        let channel = self.connections.known_channel_mut(at);
        let PublishMode::Confirm(confirms) = &mut channel.mode else {
            unreachable!("only channels in confirm mode number their publishes");
        };
        match verdict {
            Verdict::Accepted(written) => {
                let needed = written.unwrap_or_else(|| self.log.last_definition());
                if self.log.is_durable(needed) {
                    confirms.ack(seq);
                } else {
                    confirms.ack_when_durable(seq, needed);
                }
            }
            Verdict::Refused => confirms.nack(seq),
        }
        if !channel.flush_listed {
            channel.flush_listed = true;
            self.log.list_for_flush(at);
        }
    }
}

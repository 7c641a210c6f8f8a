//! A publish: checked, routed, and into its queues (spec 1.2, 1.6, 4, 7.5).

use std::sync::Arc;

use amqp::properties::Properties;

use crate::access::Permission;
use crate::channel::transaction::PendingPublish;
use crate::channel::{LastRoute, PublishMode};
use crate::command::Publish;
use crate::dead_letter::DeathReason;
use crate::delivery::Delivery;
use crate::effect::{Effect, Outgoing};
use crate::exchange::ExchangeType;
use crate::ids::{EntryId, ExchangeId, Lsn, PublishSeq, QueueId};
use crate::limits::{EXPIRY_SLICE, OUTBOX_BYTES_MAX, REPLY_BACKLOG_BYTES_MAX};
use crate::message::{Envelope, Message};
use crate::publish_properties::{self, DIRECT_REPLY_TO, Prepared};
use crate::queue::{Entry, Queue};
use crate::refusal::Refusal;
use crate::route::At;
use crate::route::Route;
use crate::setting::Overflow;
use crate::vhost::Vhost;
use crate::vhost::lifecycle::placed::Placed;

/// What became of a publish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::vhost) enum Verdict {
    /// Its queues have it; it is safe once the log is durable up to there, or at once.
    Accepted(Option<Lsn>),
    /// At least one queue refused it.
    Refused,
}

impl Vhost {
    pub(in crate::vhost) fn publish(
        &mut self,
        at: At,
        publish: Publish<'_>,
    ) -> Result<(), Refusal> {
        let remembered = self.take_remembered(at, &publish);
        let exchange = match &remembered {
            Some(last) => last.exchange,
            None => self.check_exchange(at, &publish)?,
        };
        let properties = publish_properties::parse(publish.content.properties())?;
        let prepared = self.prepare(at, &publish, &properties)?;
        let last = match remembered {
            Some(last) if prepared.cc.is_empty() && prepared.bcc.is_empty() => last,
            _ => self.find_route(at, exchange, &publish, &prepared)?,
        };
        self.publish_along(at, publish, &prepared, &last)?;
        // Taken and put back, and not cloned: a route to many queues is an allocation.
        if last.route.can_be_remembered
            && let Some(channel) = self.channel(at)
        {
            channel.last_route = Some(last);
        }
        Ok(())
    }

    /// A publish whose way is known.
    fn publish_along(
        &mut self,
        at: At,
        publish: Publish<'_>,
        prepared: &Prepared,
        LastRoute { exchange, envelope, route, .. }: &LastRoute,
    ) -> Result<(), Refusal> {
        let exchange = *exchange;
        let mandatory = publish.mandatory;
        let bytes = publish.content.body().len();
        let rewritten = prepared.rewritten.as_deref();
        if self.is_tracing() {
            let (envelope, content) = (Arc::clone(envelope), publish.content.clone());
            let message = Message::new(envelope, prepared.facts, content, rewritten);
            self.tell_publish(at, &message, route);
        }
        let envelope = Arc::clone(envelope);
        let message = || Message::new(envelope, prepared.facts, publish.content, rewritten);
        let Some(channel) = self.channel(at) else { return Ok(()) };
        let seq = match &mut channel.mode {
            PublishMode::Transactional(transaction) => {
                let (message, route) = (message(), route.clone());
                return transaction.publish(PendingPublish { exchange, message, route, mandatory });
            }
            PublishMode::Confirm(confirms) => Some(confirms.assign()),
            PublishMode::Plain => None,
        };
        self.count_publish(at, exchange, (route, mandatory), bytes);
        let verdict = if route.is_empty() && !mandatory {
            self.drop_unroutable(at)
        } else {
            self.enter(at, message(), route, mandatory)
        };
        if let Some(seq) = seq {
            self.confirm(at, seq, verdict);
        }
        Ok(())
    }

    /// Takes the last route of the channel, if it is for the same place and still true.
    fn take_remembered(&mut self, at: At, publish: &Publish<'_>) -> Option<LastRoute> {
        let topology = self.topology;
        let remembered = &mut self.channel(at)?.last_route;
        let last = remembered.as_ref()?;
        let is_same = last.topology == topology
            && *last.envelope.routing_key.as_bytes() == *publish.routing_key
            && *last.envelope.exchange.as_bytes() == *publish.exchange;
        if is_same { remembered.take() } else { None }
    }

    /// The exchange of a publish, if the user may publish to it with this key.
    fn check_exchange(&self, at: At, publish: &Publish<'_>) -> Result<ExchangeId, Refusal> {
        let name = String::from_utf8_lossy(&publish.exchange);
        let name = name.replace(['\r', '\n'], "");
        let name = name.as_str();
        let resource = self.exchange_resource(name);
        self.require(at, Permission::Write, resource)?;
        let id = self.find_exchange(name)?;
        let Some(exchange) = self.exchanges.get(id) else {
            return Ok(id);
        };
        if exchange.internal {
            let text = format!("cannot publish to internal {resource}");
            return Err(Refusal::access_refused(text));
        }
        self.check_topic(at, id, &publish.routing_key)?;
        Ok(id)
    }

    /// Topic permissions limit the keys of topic exchanges, those in `CC` and `BCC` included.
    fn check_topic(&self, at: At, exchange: ExchangeId, key: &[u8]) -> Result<(), Refusal> {
        match (self.exchanges.get(exchange), self.connections.get(at.connection)) {
            (Some(exchange), Some(connection)) if exchange.kind == ExchangeType::Topic => {
                let resource = self.exchange_resource(&exchange.name);
                let key = String::from_utf8_lossy(key);
                connection.access.require_topic(Permission::Write, resource, &key)
            }
            _ => Ok(()),
        }
    }

    /// Reads the properties of a publish and gives a request for direct replies its address.
    fn prepare(
        &mut self,
        at: At,
        publish: &Publish<'_>,
        properties: &Properties<'_>,
    ) -> Result<Prepared, Refusal> {
        let Some(connection) = self.connections.get(at.connection) else {
            return Ok(Prepared::default());
        };
        if let Some(user_id) = properties.user_id {
            connection.access.check_user_id(user_id)?;
        }
        let mut reply_to = None;
        if properties.reply_to == Some(DIRECT_REPLY_TO.as_bytes()) {
            let channel = connection.channels.get(&at.channel);
            let consumer = channel.and_then(|channel| channel.reply_consumer.as_ref());
            let consumer = consumer.ok_or_else(|| {
                Refusal::precondition_failed("fast reply consumer does not exist")
            })?;
            reply_to = Some(&*consumer.address);
        }
        publish_properties::prepare(properties, publish.content.properties(), reply_to)
    }

    /// Routes a publish; what comes of it may be true for the next one, too.
    fn find_route(
        &mut self,
        at: At,
        exchange: ExchangeId,
        publish: &Publish<'_>,
        prepared: &Prepared,
    ) -> Result<LastRoute, Refusal> {
        for key in prepared.cc.iter().chain(&prepared.bcc) {
            self.check_topic(at, exchange, key.as_bytes())?;
        }
        let name = self.exchanges.get(exchange).map(|exchange| Arc::clone(&exchange.name));
        let envelope = Arc::new(Envelope {
            exchange: name.unwrap_or_default(),
            routing_key: (&*publish.routing_key).into(),
            cc: prepared.cc.clone(),
            bcc: prepared.bcc.clone(),
        });
        let properties = prepared.rewritten.as_deref();
        let properties = properties.unwrap_or_else(|| publish.content.properties());
        let route = self.route(exchange, &envelope, properties);
        Ok(LastRoute { topology: self.topology, exchange, envelope, route })
    }

    /// Counts a publish with everybody who counts it.
    pub(in crate::vhost) fn count_publish(
        &mut self,
        at: At,
        exchange: ExchangeId,
        (route, mandatory): (&Route, bool),
        bytes: usize,
    ) {
        let routed = route.queues.len() as u64;
        if let Some(exchange) = self.exchanges.get_mut(exchange) {
            exchange.counters.published_in += 1;
            exchange.counters.published_out += routed;
            if route.is_empty() {
                exchange.counters.returned_unroutable += u64::from(mandatory);
                exchange.counters.dropped_unroutable += u64::from(!mandatory);
            }
        }
        let mut confirms = false;
        if let Some(channel) = self.channel(at) {
            channel.counters.published += 1;
            confirms = channel.is_confirming();
        }
        self.counters.published += 1;
        self.counters.published_for_confirm += u64::from(confirms);
        self.counters.routed += routed;
        self.counters.message_sizes.record(bytes);
    }

    /// Lets a publish into its queues. One that has none comes back if it is mandatory.
    pub(in crate::vhost) fn enter(
        &mut self,
        at: At,
        message: Message,
        route: &Route,
        mandatory: bool,
    ) -> Verdict {
        if route.is_empty() && !mandatory {
            return self.drop_unroutable(at);
        }
        if route.is_empty() {
            self.counters.returned_unroutable += 1;
            if let Some(channel) = self.channel(at) {
                channel.counters.returned_unroutable += 1;
            }
            self.send(at, Outgoing::Return { message });
            return Verdict::Accepted(None);
        }
        let mut placed = Placed::default();
        let mut refused = false;
        for requester in &route.requesters {
            self.deliver_reply(*requester, &message);
        }
        for id in &route.queues {
            if self.refuses(*id, &message) {
                refused = true;
                continue;
            }
            let Some(queue) = self.queues.get_mut(*id) else {
                continue;
            };
            queue.counters.published += 1;
            placed.assign(*id, queue, &message);
        }
        let lsn = self.enter_placed(message, &placed);
        if refused { Verdict::Refused } else { Verdict::Accepted(lsn) }
    }

    /// A publish goes nowhere, which nobody wants to know.
    fn drop_unroutable(&mut self, at: At) -> Verdict {
        self.counters.dropped_unroutable += 1;
        if let Some(channel) = self.channel(at) {
            channel.counters.dropped_unroutable += 1;
        }
        Verdict::Accepted(None)
    }

    /// Whether a full queue refuses a publish.
    ///
    /// COMPAT: reject-publish: a hard limit on every queue type; RabbitMQ's quorum queues overshoot.
    pub(in crate::vhost) fn refuses(&mut self, id: QueueId, message: &Message) -> bool {
        let rejects = |queue: &Queue| queue.settings.rejects_publishes();
        if !self.queue_of(id).is_some_and(rejects) || !self.is_full_for(id, message) {
            return false;
        }
        let Some(queue) = self.queues.get_mut(id) else {
            return false;
        };
        queue.counters.published += 1;
        queue.counters.refused += 1;
        self.counters.refused += 1;
        if queue.settings.overflow == Overflow::RejectPublishDlx {
            self.die_refused(id, message.clone());
        }
        true
    }

    /// Whether `message` would put a queue over its limits; expired messages make room first.
    pub(in crate::vhost) fn is_full_for(&mut self, id: QueueId, message: &Message) -> bool {
        let is_full = |vhost: &Self| {
            let queue = vhost.queues.get(id);
            queue.is_some_and(|queue| queue.is_full_for(message))
        };
        is_full(self) && (self.expire_due(id) == 0 || is_full(self))
    }

    /// A message arrives in a queue: to a consumer if one has room, else to wait, if it may.
    pub(in crate::vhost) fn place(
        &mut self,
        id: QueueId,
        entry: EntryId,
        message: Message,
        lsn: Lsn,
    ) {
        let arrived = self.now.time;
        let Some(queue) = self.queues.get_mut(id) else {
            return;
        };
        let expires_at_once = queue.expires_on_arrival(&message);
        if queue.has_none_ready() && !queue.consumers.is_empty() || expires_at_once {
            let could_deliver = queue.has_none_ready();
            let entry = Entry::new(entry, message, lsn, arrived);
            let undelivered =
                if could_deliver { self.deliver_at_once(id, entry).err() } else { Some(entry) };
            let Some(entry) = undelivered else { return };
            if expires_at_once {
                self.counters.message_expiry.record(0);
                self.die(id, entry, DeathReason::Expired);
                return;
            }
            self.wait(id, entry.id, entry.message, lsn);
        } else {
            self.wait(id, entry, message, lsn);
        }
    }

    fn wait(&mut self, id: QueueId, entry: EntryId, message: Message, lsn: Lsn) {
        let arrived = self.now.time;
        let Some(queue) = self.queues.get_mut(id) else {
            return;
        };
        let has_deadline = queue.has_deadline(&message);
        queue.push(entry, message, lsn, arrived);
        self.page_out(id, entry.level);
        let Some(queue) = self.queues.get_mut(id) else {
            return;
        };
        // A consumer that has room may have found nothing but expired messages until now.
        let is_overtaking = !queue.consumers.is_empty() && queue.is_next(entry);
        if has_deadline {
            self.arm_queue(id);
        }
        if is_overtaking {
            self.dispatch(id);
        }
        self.enforce_limits(id);
    }

    /// Evicts what a queue has above its limits, if it makes room that way.
    pub(in crate::vhost) fn enforce_limits(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get(id) else {
            return;
        };
        if queue.settings.overflow != Overflow::DropHead || !queue.is_over_limit() {
            return;
        }
        let expired = self.expire_due(id);
        let is_overdue = |queue: &Queue| queue.is_overdue(self.now.time);
        if expired >= EXPIRY_SLICE && self.queue_of(id).is_some_and(is_overdue) {
            // What has expired makes room first; the timer goes on with that.
            self.arm_queue(id);
            return;
        }
        while !self.stalls(id)
            && let Some(queue) = self.queues.get_mut(id)
            && queue.is_over_limit()
            && let Some(entry) = queue.evict()
        {
            self.die(id, entry, DeathReason::Maxlen);
        }
        self.head_moved(id);
    }

    /// Notes how a publish ended for the channel's next confirms.
    pub(in crate::vhost) fn confirm(&mut self, at: At, seq: PublishSeq, verdict: Verdict) {
        let Some(channel) = self.channel(at) else {
            return;
        };
        let PublishMode::Confirm(confirms) = &mut channel.mode else {
            return;
        };
        match verdict {
            Verdict::Accepted(None) => confirms.ack(seq),
            Verdict::Accepted(Some(lsn)) => confirms.ack_when_durable(seq, lsn),
            Verdict::Refused => confirms.nack(seq),
        }
        self.list_for_flush(at);
    }

    /// A reply goes straight to the requester, without a queue (direct reply-to). False if he is gone
    /// or does not read.
    ///
    /// COMPAT: direct reply-to: a requester that does not read loses replies; they have no queue to
    /// wait in.
    pub(in crate::vhost) fn deliver_reply(&mut self, to: At, message: &Message) -> bool {
        let delivered = self.try_deliver_reply(to, message);
        if !delivered {
            self.counters.direct_replies_dropped += 1;
        } else if self.is_tracing() {
            self.tell_reply(to, message);
        }
        delivered
    }

    fn try_deliver_reply(&mut self, to: At, message: &Message) -> bool {
        let Self { connections, effects, counters, .. } = self;
        let Some(connection) = connections.get_mut(to.connection) else {
            return false;
        };
        let Some(channel) = connection.channels.get_mut(&to.channel) else {
            return false;
        };
        let Some(consumer) = &channel.reply_consumer else {
            return false;
        };
        if connection.backlog.bytes >= REPLY_BACKLOG_BYTES_MAX {
            return false;
        }
        let consumer_tag = Arc::clone(&consumer.tag);
        let tag = channel.next_tag();
        channel.counters.deliveries.count(true, false, false);
        counters.direct_replies += 1;
        connection.backlog.bytes += message.delivery_bytes();
        let asks = connection.backlog.bytes >= OUTBOX_BYTES_MAX && !connection.backlog.asked;
        connection.backlog.asked |= asks;
        let delivery = Delivery { tag, redelivered: false, counts: None, message: message.clone() };
        effects.push(Effect::Send {
            connection: to.connection,
            channel: to.channel,
            outgoing: Outgoing::Deliver { consumer_tag, delivery },
        });
        if asks {
            effects.push(Effect::AskBacklog(to.connection));
        }
        true
    }
}

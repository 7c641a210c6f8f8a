//! The firehose: while it is on, every message that is published or delivered is copied to the exchange
//! `amq.rabbitmq.trace`, with the same body and with its origin and destination in headers.
//!
//! Copies enter their queues at the end of the call that caused them, so that no queue gets a message while another
//! is being delivered from it. Messages from the trace exchange are not copied again, nor are their dead letters:
//! there is always an end.

use std::borrow::Cow;
use std::sync::Arc;

use amqp::limits::SHORT_STRING_BYTES_MAX;
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, TableRef, Value};

use crate::channel_key::ChannelKey;
use crate::delivery::Delivery;
use crate::ids::{ConnectionId, DeliveryTag, QueueId};
use crate::limits::{TRACE_HEADERS_BYTES_MAX, TRACE_KEYS_BYTES_MAX};
use crate::message::{Envelope, Message, MessageMeta, Name};
use crate::queue::Entry;
use crate::route::Route;
use crate::vhost::Vhost;
use crate::vhost::state::enqueue_plan::EnqueuePlan;

/// The exchange that copies are published to.
pub(in crate::vhost) const TRACE_EXCHANGE: &str = "amq.rabbitmq.trace";

/// Type and length of a string in a list of headers, in bytes.
const LIST_VALUE_BYTES: usize = 5;

/// The event that a copy of a message is made for.
enum Traced<'a> {
    /// The message was published to these queues.
    Published(Vec<Cow<'a, str>>),
    /// The message was delivered.
    Delivered { redelivered: bool },
}

impl Vhost {
    /// Turns the firehose on or off. It is off in a new vhost, and after a restart.
    pub fn set_tracing(&mut self, on: bool) {
        self.firehose.set(on);
        self.watches_deliveries = on || self.options.delivers_after_commit;
    }

    /// True if the firehose is on.
    pub fn is_tracing(&self) -> bool {
        self.firehose.is_on()
    }

    /// Sets the name of the node in the headers of copies.
    pub fn set_node_name(&mut self, name: &str) {
        self.firehose.set_node(name);
    }

    /// Sets the name of a connection for the headers of copies and for listings.
    pub fn set_connection_name(&mut self, id: ConnectionId, name: &str) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.name = name.into();
        }
    }

    /// Copies a message that was published.
    pub(in crate::vhost) fn trace_publish(
        &mut self,
        at: ChannelKey,
        message: &Message,
        route: &Route,
    ) {
        if !self.is_traced(message) {
            return;
        }
        let queue = |id: &QueueId| Cow::Borrowed(&*self.topology.known_queue(*id).name);
        let requesters = route.requesters.iter().filter_map(|at| self.reply_address(*at));
        let requesters = requesters.map(|name| Cow::Borrowed(&**name));
        let routed = route.queues.iter().map(queue).chain(requesters).collect();
        let key = format!("publish.{}", message.envelope().exchange);
        let traced = Traced::Published(routed);
        let headers = self.trace_headers(at, message, message.properties(), &traced);
        self.copy_to_firehose(&key, message, &headers);
    }

    /// Copies a message that is being delivered from a queue.
    pub(in crate::vhost) fn trace_delivery(&mut self, at: ChannelKey, id: QueueId, entry: &Entry) {
        if !self.is_traced(&entry.message) {
            return;
        }
        let queue = self.topology.known_queue(id);
        let (name, delivery) = (Arc::clone(&queue.name), queue.delivery(entry, DeliveryTag(0)));
        self.trace_delivered(at, &name, &delivery);
    }

    /// Copies a direct reply that is being delivered.
    pub(in crate::vhost) fn trace_reply(&mut self, at: ChannelKey, message: &Message) {
        if !self.is_traced(message) {
            return;
        }
        let Some(name) = self.reply_address(at).cloned() else {
            return;
        };
        let message = message.clone();
        let delivery = Delivery { tag: DeliveryTag(0), redelivered: false, counts: None, message };
        self.trace_delivered(at, &name, &delivery);
    }

    fn trace_delivered(&mut self, at: ChannelKey, queue: &str, delivery: &Delivery) {
        let traced = Traced::Delivered { redelivered: delivery.redelivered };
        let headers = self.trace_headers(at, &delivery.message, &delivery.properties(), &traced);
        self.copy_to_firehose(&format!("deliver.{queue}"), &delivery.message, &headers);
    }

    /// True if the trace exchange leads anywhere and the message has not come through it.
    fn is_traced(&self, message: &Message) -> bool {
        let exchange = self.exchange(TRACE_EXCHANGE);
        let is_heard = exchange.is_some_and(|x| x.is_bound() || x.alternate.in_force.is_some());
        let mut died_of = message.deaths().into_iter().flat_map(|deaths| &deaths.entries);
        is_heard
            && *message.envelope().exchange != *TRACE_EXCHANGE
            && died_of.all(|death| *death.exchange != *TRACE_EXCHANGE)
    }

    /// The address under which a requester consumes direct replies.
    fn reply_address(&self, at: ChannelKey) -> Option<&Name> {
        let channel = self.connections.channel(at)?;
        Some(&channel.reply_consumer.as_ref()?.address)
    }

    /// The headers of a copy. The message's own headers are left out if they would be nested too deeply, or if all
    /// would not fit into a frame; of very many keys or queues the first are listed.
    fn trace_headers(
        &self,
        at: ChannelKey,
        message: &Message,
        properties: &[u8],
        traced: &Traced<'_>,
    ) -> Table {
        // The publish has already validated the properties.
        let properties = Properties::parse(properties).unwrap_or_default();
        let all = self.headers_with(at, message, &fields(&properties), traced);
        let table = all.as_ref();
        let fits = table.as_bytes().len() <= TRACE_HEADERS_BYTES_MAX;
        if fits && TableRef::from_bytes(table.as_bytes()).is_ok() {
            return all;
        }
        let others = Properties { headers: None, ..properties };
        self.headers_with(at, message, &fields(&others), traced)
    }

    /// The headers of a copy with these properties of the message, sorted by key.
    fn headers_with(
        &self,
        at: ChannelKey,
        message: &Message,
        properties: &Table,
        traced: &Traced<'_>,
    ) -> Table {
        let connection = self.connections.get(at.connection);
        let name = connection.map(|connection| &*connection.name).unwrap_or_default();
        let user = connection.map(|connection| &*connection.access.user).unwrap_or_default();
        let mut headers = TableBuilder::new();
        headers.insert("channel", Value::I32(at.channel.0.into()));
        headers.insert("connection", text(name));
        headers.insert("exchange_name", text(&message.envelope().exchange));
        headers.insert("node", text(self.firehose.node()));
        headers.insert("properties", Value::Table(properties.as_ref()));
        match traced {
            Traced::Published(queues) => {
                headers.array("routed_queues", |names| {
                    let mut bytes = 0;
                    for queue in queues {
                        bytes += queue.len() + LIST_VALUE_BYTES;
                        if bytes > TRACE_KEYS_BYTES_MAX {
                            break;
                        }
                        names.push(text(queue));
                    }
                });
            }
            Traced::Delivered { redelivered } => {
                headers.insert("redelivered", Value::I32((*redelivered).into()));
            }
        }
        headers.array("routing_keys", |keys| {
            let mut bytes = 0;
            for key in message.envelope().routing_keys() {
                bytes += key.as_bytes().len() + LIST_VALUE_BYTES;
                if bytes > TRACE_KEYS_BYTES_MAX {
                    break;
                }
                keys.push(Value::LongStr(key.as_bytes()));
            }
        });
        headers.insert("user", text(user)).insert("vhost", text(&self.name));
        headers.finish()
    }

    fn copy_to_firehose(&mut self, key: &str, message: &Message, headers: &Table) {
        if self.alarm.is_on() {
            self.counters.firehose_untold += 1;
            return;
        }
        let key = key.get(..key.floor_char_boundary(SHORT_STRING_BYTES_MAX)).unwrap_or(key);
        let envelope = Envelope::new(TRACE_EXCHANGE.into(), key.into());
        let mut properties = Vec::new();
        Properties { headers: Some(headers.as_ref()), ..Properties::default() }
            .encode(&mut properties);
        let copy =
            message.republished(Arc::new(envelope), MessageMeta::default(), &properties, false);
        self.firehose.push(copy);
    }

    /// Enqueues the copies in the queues bound to the trace exchange.
    pub(in crate::vhost) fn enqueue_copies(&mut self) {
        let exchange = self.topology.exchange_id(TRACE_EXCHANGE);
        let exchange = exchange.expect("the trace exchange is predeclared and cannot be deleted");
        for message in self.firehose.take_copies() {
            let route = self.route(exchange, message.envelope(), message.properties());
            let mut plan = EnqueuePlan::default();
            for id in route.queues {
                if !self.refuses(id, &message) {
                    plan.add(id, self.topology.known_queue_mut(id), &message);
                }
            }
            self.enqueue(message, &plan);
        }
    }
}

fn text(text: &str) -> Value<'_> {
    Value::LongStr(text.as_bytes())
}

/// The properties of a message as the firehose of RabbitMQ shows them.
fn fields(properties: &Properties<'_>) -> Table {
    let mut table = TableBuilder::new();
    let text = Value::LongStr;
    let byte = |value: u8| Value::I32(value.into());
    // COMPAT: firehose: a timestamp after 2038 is shown as it is; RabbitMQ cuts it to 32 bits.
    let seconds = |value: u64| match i32::try_from(value) {
        Ok(value) => Value::I32(value),
        Err(_) => Value::I64(value.cast_signed()),
    };
    for (name, value) in [
        ("cluster_id", properties.cluster_id.map(text)),
        ("app_id", properties.app_id.map(text)),
        ("user_id", properties.user_id.map(text)),
        ("type", properties.type_.map(text)),
        ("timestamp", properties.timestamp.map(seconds)),
        ("message_id", properties.message_id.map(text)),
        ("expiration", properties.expiration.map(text)),
        ("reply_to", properties.reply_to.map(text)),
        ("correlation_id", properties.correlation_id.map(text)),
        ("priority", properties.priority.map(byte)),
        ("delivery_mode", properties.delivery_mode.map(byte)),
        ("headers", properties.headers.map(Value::Table)),
        ("content_encoding", properties.content_encoding.map(text)),
        ("content_type", properties.content_type.map(text)),
    ] {
        if let Some(value) = value {
            table.insert(name, value);
        }
    }
    table.finish()
}

//! Delivery times over restarts and steps of the wall clock.

use std::sync::Arc;

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{TableBuilder, Value};
use broker::access::Access;
use broker::time::Now;
use broker::{
    Bind, ChannelNumber, Command, ConnectionId, Content, DeclareExchange, Outgoing, Publish,
    Request, Vhost, VhostOptions,
};

use crate::commands::declare_queue;
use crate::disk::record_list::{NoPages, WrittenRecord, end_batch, replay};

const START_MS: u64 = 1_000_000_000;
const HOUR_MS: u64 = 3_600_000;

/// A vhost with a client, a durable queue `q` and a delayed exchange `x` that is bound to the queue.
struct Broker {
    vhost: Vhost,
    connection: ConnectionId,
    log: Vec<WrittenRecord>,
    now: Now,
}

impl Broker {
    fn new() -> Self {
        let vhost = Vhost::new("/", [3; 32], VhostOptions::default());
        let mut broker = Self::with(vhost, Vec::new(), Now::from_millis(START_MS));
        broker.apply(declare_queue("q", &TableBuilder::new().finish()));
        let mut arguments = TableBuilder::new();
        arguments.insert("x-delayed-type", Value::LongStr(b"fanout"));
        broker.apply(Command::DeclareExchange(DeclareExchange {
            exchange: "x",
            kind: "x-delayed-message",
            passive: false,
            durable: true,
            auto_delete: false,
            internal: false,
            nowait: false,
            arguments: arguments.finish().as_ref(),
        }));
        let arguments = TableBuilder::new().finish();
        broker.apply(Command::BindQueue(Bind {
            destination: "q",
            source: "x",
            routing_key: "",
            nowait: false,
            arguments: arguments.as_ref(),
        }));
        broker
    }

    fn with(mut vhost: Vhost, log: Vec<WrittenRecord>, now: Now) -> Self {
        let access = Access::matching("guest".into(), ".*").unwrap();
        let connection = vhost.open_connection(Arc::new(access), true);
        let mut broker = Self { vhost, connection, log, now };
        broker.apply(Command::OpenChannel);
        broker
    }

    fn apply(&mut self, command: Command<'_>) -> Vec<Outgoing> {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        self.vhost.apply(self.now, self.connection, request);
        self.finish()
    }

    fn finish(&mut self) -> Vec<Outgoing> {
        assert_eq!(self.vhost.broken_invariants(), Vec::<String>::new());
        end_batch(&mut self.vhost, &mut self.log)
    }

    /// Time passes on both clocks.
    fn sleep(&mut self, millis: u64) {
        self.now = Now { time: self.now.time.plus_ms(millis), wall_ms: self.now.wall_ms + millis };
        while self.vhost.next_wake().is_some_and(|wake| wake <= self.now.time) {
            self.vhost.tick(self.now);
            self.finish();
        }
    }

    /// Starts again, when the wall clock shows `wall_ms`.
    fn restart_at(self, wall_ms: u64) -> Self {
        let now = Now::from_millis(wall_ms);
        let vhost = Vhost::new("/", [3; 32], VhostOptions::default());
        let (replay, last) = replay(vhost, &self.log, now.time, &mut Vec::new());
        let vhost = replay.finish(now, last, &mut NoPages);
        let mut broker = Self::with(vhost, self.log, now);
        broker.sleep(0);
        broker
    }

    fn publish(&mut self, exchange: &str, body: &'static str, header: &str, value: Value<'_>) {
        let mut headers = TableBuilder::new();
        headers.insert(header, value);
        let headers = headers.finish();
        let mut properties = Vec::new();
        let delivery_mode = Some(2);
        let headers = Some(headers.as_ref());
        Properties { delivery_mode, headers, ..Properties::default() }.encode(&mut properties);
        self.apply(Command::Publish(Publish {
            exchange: exchange.as_bytes().into(),
            routing_key: b"q".as_slice().into(),
            mandatory: false,
            content: Content::Assembled { properties: properties.into(), body: body.into() },
        }));
    }

    /// Publishes three messages to the queue and three through the exchange, which are ready after one to six hours.
    fn publish_six(&mut self) {
        let hours = |hours: u64| Value::I64(i64::try_from(hours * HOUR_MS).unwrap());
        self.publish("", "6", "x-opt-delivery-delay", hours(6));
        self.publish("x", "5", "x-delay", hours(5));
        let at_ms = i64::try_from(self.now.wall_ms + 4 * HOUR_MS).unwrap();
        self.publish("", "4", "x-opt-delivery-time", Value::I64(at_ms));
        self.publish("x", "3", "x-delay", hours(3));
        self.publish("", "2", "x-opt-delivery-delay", hours(2));
        self.publish("x", "1", "x-delay", hours(1));
    }

    /// The bodies of the messages that are ready, which are taken.
    fn ready(&mut self) -> String {
        let mut bodies = String::new();
        loop {
            let said = self.apply(Command::Get { queue: "q", no_ack: true });
            let delivery = said.into_iter().find_map(|outgoing| match outgoing {
                Outgoing::GetOk { delivery, .. } => Some(delivery),
                _ => None,
            });
            let Some(delivery) = delivery else { return bodies };
            assert!(!delivery.redelivered);
            bodies.push_str(std::str::from_utf8(delivery.message.body()).unwrap());
        }
    }
}

#[test]
fn delays_end_in_their_order() {
    let mut broker = Broker::new();
    broker.publish_six();
    for hour in ["1", "2", "3", "4", "5", "6"] {
        broker.sleep(HOUR_MS - 1);
        assert_eq!(broker.ready(), "");
        broker.sleep(1);
        assert_eq!(broker.ready(), hour);
    }
}

#[test]
fn delays_go_on_while_the_broker_is_down() {
    let mut broker = Broker::new();
    broker.publish_six();
    broker.sleep(HOUR_MS);
    assert_eq!(broker.ready(), "1");
    let mut broker = broker.restart_at(START_MS + 3 * HOUR_MS + HOUR_MS / 2);
    // What became ready meanwhile is delivered in the order of the times.
    assert_eq!(broker.ready(), "23");
    broker.sleep(HOUR_MS / 2 - 1);
    assert_eq!(broker.ready(), "");
    // The log has milliseconds.
    broker.sleep(2);
    assert_eq!(broker.ready(), "4");
    let mut broker = broker.restart_at(START_MS + 4 * HOUR_MS + 10);
    assert_eq!(broker.ready(), "");
    broker.sleep(2 * HOUR_MS);
    assert_eq!(broker.ready(), "56");
}

#[test]
fn ready_message_keeps_its_place_over_a_restart() {
    let mut broker = Broker::new();
    broker.publish("", "a", "x-opt-delivery-delay", Value::I32(1000));
    broker.publish("", "b", "x-opt-delivery-delay", Value::I32(3000));
    broker.publish("", "c", "other", Value::Void);
    broker.sleep(1000);
    broker.publish("", "d", "other", Value::Void);
    let mut broker = broker.restart_at(START_MS + 2000);
    assert_eq!(broker.ready(), "cad");
    broker.sleep(1001);
    assert_eq!(broker.ready(), "b");
}

#[test]
fn step_of_the_wall_clock_releases_nothing() {
    let mut broker = Broker::new();
    broker.publish_six();
    broker.now.wall_ms += 10 * HOUR_MS;
    broker.sleep(HOUR_MS - 1);
    assert_eq!(broker.ready(), "");
    broker.now.wall_ms -= 20 * HOUR_MS;
    broker.sleep(1);
    assert_eq!(broker.ready(), "1");
}

#[test]
fn clock_that_was_set_back_over_a_restart_makes_no_wait_longer() {
    let mut broker = Broker::new();
    broker.publish_six();
    let mut broker = broker.restart_at(START_MS - HOUR_MS);
    assert_eq!(broker.ready(), "");
    broker.sleep(1);
    for hour in ["1", "2", "3", "4", "5", "6"] {
        broker.sleep(HOUR_MS);
        assert_eq!(broker.ready(), hour);
    }
}

#[test]
fn deleted_exchange_leaves_nothing_in_the_log() {
    let mut broker = Broker::new();
    broker.publish_six();
    let exchange = "x";
    broker.apply(Command::DeleteExchange { exchange, if_unused: false, nowait: false });
    let mut broker = broker.restart_at(START_MS + 10 * HOUR_MS);
    assert_eq!(broker.ready(), "246");
}

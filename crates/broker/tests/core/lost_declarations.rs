//! A log in which declarations are missing: messages whose queue is not declared are found and come back.

use std::collections::BTreeSet;
use std::sync::Arc;

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::access::Access;
use broker::time::{Now, Time};
use broker::{
    Bind, ChannelNumber, Command, ConnectionId, Content, DeclareExchange, DeleteQueue, Lsn,
    Outgoing, Publish, QueueNumber, Recovered, RecoveredQueue, Request, Vhost, VhostOptions,
};

use crate::commands::declare_queue;
use crate::disk::record_list::{NoPages, WrittenRecord, end_batch, replay};

const DECLARE_QUEUE: u8 = 16;
const DECLARE_EXCHANGE: u8 = 18;
const UNBIND: u8 = 21;

struct Broker {
    vhost: Vhost,
    connection: ConnectionId,
    now_ms: u64,
    log: Vec<WrittenRecord>,
    /// Records of which a reference has ended, beside the ones that others are about.
    ended: Vec<Lsn>,
}

impl Broker {
    fn new() -> Self {
        Self::with(Vhost::new("/", [3; 32], VhostOptions::default()), 1_000_000, Vec::new())
    }

    fn with(mut vhost: Vhost, now_ms: u64, log: Vec<WrittenRecord>) -> Self {
        let access = Arc::new(Access::matching("guest".into(), ".*").unwrap());
        let connection = vhost.open_connection(access, true);
        let mut broker = Self { vhost, connection, now_ms, log, ended: Vec::new() };
        broker.apply(Command::OpenChannel);
        broker
    }

    fn now(&self) -> Now {
        Now { time: Time::from_micros(self.now_ms * 1000), wall_us: self.now_ms * 1000 }
    }

    fn apply(&mut self, command: Command<'_>) -> Vec<Outgoing> {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        self.vhost.apply(self.now(), self.connection, request);
        end_batch(&mut self.vhost, &mut self.log)
    }

    /// Starts again from what is in the log.
    fn restart(self) -> (Self, Recovered) {
        let vhost = Vhost::new("/", [3; 32], VhostOptions::default());
        let mut ended = Vec::new();
        let (mut replay, last) = replay(vhost, &self.log, self.now().time, &mut ended);
        let recovered = replay.recover();
        let vhost = replay.finish(self.now(), last, &mut NoPages);
        let mut broker = Self::with(vhost, self.now_ms, self.log);
        broker.ended = ended;
        let broken = broker.vhost.broken_invariants();
        assert!(broken.is_empty(), "{broken:?}");
        (broker, recovered)
    }

    /// The records of that kind that hold this text are damaged, and not read any more.
    fn lose(&mut self, kind: u8, text: &str) {
        let before = self.log.len();
        self.log.retain(|(_, of, bytes)| {
            *of != kind || !bytes.windows(text.len()).any(|part| part == text.as_bytes())
        });
        assert!(self.log.len() < before, "there is no {text}");
    }

    fn declare(&mut self, queue: &str) {
        let mut arguments = TableBuilder::new();
        arguments.insert("x-message-ttl", Value::I32(60_000));
        let arguments: Table = arguments.finish();
        self.apply(declare_queue(queue, &arguments));
    }

    fn bind(&mut self, queue: &str, key: &str) {
        self.bind_to("amq.direct", queue, key);
    }

    fn bind_to(&mut self, source: &str, queue: &str, key: &str) {
        self.apply(Command::BindQueue(Bind {
            destination: queue,
            source,
            routing_key: key,
            nowait: true,
            arguments: Table::default().as_ref(),
        }));
    }

    fn publish(&mut self, exchange: &str, key: &str, expiration: Option<&str>) {
        let mut properties = Vec::new();
        let expiration = expiration.map(str::as_bytes);
        Properties { delivery_mode: Some(2), expiration, ..Properties::default() }
            .encode(&mut properties);
        self.apply(Command::Publish(Publish {
            exchange: exchange.as_bytes().into(),
            routing_key: key.as_bytes().into(),
            mandatory: false,
            content: Content::Assembled { properties: properties.into(), body: "m".into() },
        }));
    }

    fn messages(&self, queue: &str) -> Option<u64> {
        self.vhost.queue(queue).map(|queue| queue.message_count())
    }

    fn names(&self) -> BTreeSet<String> {
        self.vhost.queues().map(|(_, queue)| queue.name.to_string()).collect()
    }
}

fn recovered(number: u64, name: &str, is_original_name: bool, messages: u64) -> RecoveredQueue {
    RecoveredQueue { number: QueueNumber(number), name: name.into(), is_original_name, messages }
}

#[test]
fn recovered_queue_has_the_name_its_messages_were_sent_to() {
    let mut broker = Broker::new();
    broker.declare("first");
    broker.declare("orders");
    broker.bind("orders", "key");
    for _ in 0..3 {
        broker.publish("", "orders", Some("1000"));
    }
    broker.publish("amq.direct", "key", None);
    broker.lose(DECLARE_QUEUE, "orders");
    let (mut broker, found) = broker.restart();
    assert_eq!(found.queues, [recovered(2, "orders", true, 4)]);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!(broker.messages("orders"), Some(4));
    // Their targets are unknown: they stay.
    broker.now_ms += 100_000;
    broker.vhost.tick(broker.now());
    assert_eq!(broker.messages("orders"), Some(4));
    // It is a queue like any other, with its bindings, and no other queue has its number.
    broker.publish("amq.direct", "key", None);
    broker.declare("third");
    assert_eq!(broker.messages("orders"), Some(5));
    assert_eq!(broker.vhost.queue("third").unwrap().number, QueueNumber(3));

    // The next start knows it, and has nothing to say.
    let (mut broker, found) = broker.restart();
    assert!(found.queues.is_empty() && found.problems.is_empty(), "{found:?}");
    assert_eq!(broker.messages("orders"), Some(5));
    broker.apply(Command::PurgeQueue { queue: "orders", nowait: true });
    let (broker, _) = broker.restart();
    assert_eq!(broker.messages("orders"), Some(0));
}

#[test]
fn recovered_queue_without_a_certain_name_gets_a_new_one() {
    let mut broker = Broker::new();
    for queue in ["first", "second", "third"] {
        broker.declare(queue);
        broker.bind(queue, "key");
    }
    broker.publish("amq.direct", "key", None);
    broker.lose(DECLARE_QUEUE, "first");
    broker.lose(DECLARE_QUEUE, "second");
    let (broker, found) = broker.restart();
    let expected = [recovered(1, "recovered.1", false, 1), recovered(2, "recovered.2", false, 1)];
    assert_eq!(found.queues, expected);
    assert_eq!(found.problems.len(), 2, "{:?}", found.problems);
    let names = ["recovered.1", "recovered.2", "third"].map(str::to_owned);
    assert_eq!(broker.names(), BTreeSet::from(names));
}

#[test]
fn recovered_queue_is_named_by_its_binding() {
    let mut broker = Broker::new();
    broker.declare("bound");
    broker.bind("bound", "key");
    broker.publish("amq.direct", "key", None);
    broker.lose(DECLARE_QUEUE, "bound");
    let (broker, found) = broker.restart();
    assert_eq!(found.queues, [recovered(1, "bound", true, 1)]);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!(broker.messages("bound"), Some(1));
}

#[test]
fn recovered_queue_takes_no_name_of_another() {
    let mut broker = Broker::new();
    broker.declare("orders");
    broker.publish("", "orders", None);
    broker.lose(DECLARE_QUEUE, "orders");
    // A version that hid the messages let it be declared again.
    let log = std::mem::take(&mut broker.log);
    let mut other = Broker::new();
    other.declare("before");
    other.declare("orders");
    let mut log: Vec<_> = log.into_iter().collect();
    log.extend(other.log.drain(1..).map(|(lsn, kind, bytes)| (Lsn(lsn.0 + 10), kind, bytes)));
    broker.log = log;
    let (broker, found) = broker.restart();
    assert_eq!(found.queues, [recovered(1, "recovered.1", false, 1)]);
    assert_eq!((broker.messages("orders"), broker.messages("recovered.1")), (Some(0), Some(1)));
}

#[test]
fn deleted_queue_stays_deleted_and_its_references_end() {
    let mut broker = Broker::new();
    broker.declare("gone");
    broker.bind("gone", "key");
    broker.publish("", "gone", None);
    broker.publish("amq.direct", "key", None);
    let publishes: Vec<Lsn> =
        broker.log.iter().filter(|(_, kind, _)| *kind == 1).map(|(lsn, ..)| *lsn).collect();
    let (if_unused, if_empty, nowait) = (false, false, true);
    broker.apply(Command::DeleteQueue(DeleteQueue { queue: "gone", if_unused, if_empty, nowait }));
    // A compaction has left out the declaration, and not yet the messages.
    broker.lose(DECLARE_QUEUE, "gone");
    let (broker, found) = broker.restart();
    assert!(found.queues.is_empty() && found.problems.is_empty(), "{found:?}");
    assert!(broker.names().is_empty());
    assert_eq!(broker.ended, publishes);
}

#[test]
fn binding_without_its_exchange_is_reported() {
    let mut broker = Broker::new();
    broker.declare("q");
    broker.apply(Command::DeclareExchange(DeclareExchange {
        exchange: "in",
        kind: "topic",
        passive: false,
        durable: true,
        auto_delete: false,
        internal: false,
        nowait: true,
        arguments: Table::default().as_ref(),
    }));
    broker.bind_to("in", "q", "#");
    broker.lose(DECLARE_EXCHANGE, "in");
    let (_, found) = broker.restart();
    let [(_, problem)] = &found.problems[..] else { panic!("{found:?}") };
    assert_eq!(problem, "binding from 'in' to 'q' has lost an end");
}

#[test]
fn lost_unbinding_leaves_no_binding_to_a_deleted_queue() {
    let mut broker = Broker::new();
    broker.declare("q");
    broker.bind("q", "k");
    let (if_unused, if_empty, nowait) = (false, false, true);
    broker.apply(Command::DeleteQueue(DeleteQueue { queue: "q", if_unused, if_empty, nowait }));
    broker.lose(UNBIND, "k");
    let (mut broker, found) = broker.restart();
    assert!(found.queues.is_empty() && found.problems.is_empty(), "{found:?}");
    // It is routed to no queue, and to none that is gone.
    broker.publish("amq.direct", "k", None);
    assert_eq!(broker.vhost.counters().dropped_unroutable, 1);
}

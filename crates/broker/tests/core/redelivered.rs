//! Redelivered flags after a crash: set for every message that a client may have seen, and for none newer.

use std::sync::Arc;

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::access::Access;
use broker::redrive::{Redrive, RedriveTo, Redriven};
use broker::time::{Now, Time};
use broker::{
    Bind, BrowseCursor, ChannelNumber, Command, ConnectionId, Content, DeclareExchange,
    DeliveryTag, MessageState, Outcome, Outgoing, Publish, Request, Vhost, VhostOptions,
};

use crate::commands::declare_queue;
use crate::disk::record_list::{NoPages, WrittenRecord, end_batch, replay};

/// A vhost with one client, and its log.
struct Broker {
    vhost: Vhost,
    connection: ConnectionId,
    now_ms: u64,
    log: Vec<WrittenRecord>,
}

impl Broker {
    fn new() -> Self {
        Self::with(Vhost::new("/", [3; 32], VhostOptions::default()), 1_000_000, Vec::new())
    }

    fn with(mut vhost: Vhost, now_ms: u64, log: Vec<WrittenRecord>) -> Self {
        let connection = vhost.open_connection(Arc::new(access()), true);
        let mut broker = Self { vhost, connection, now_ms, log };
        broker.apply(Command::OpenChannel);
        broker
    }

    fn now(&self) -> Now {
        Now { time: Time::from_micros(self.now_ms * 1000), wall_us: self.now_ms * 1000 }
    }

    fn apply(&mut self, command: Command<'_>) -> Vec<Outgoing> {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        self.vhost.apply(self.now(), self.connection, request);
        self.finish()
    }

    /// Ends a batch: its records are in the log, and the answers to clients are returned.
    fn finish(&mut self) -> Vec<Outgoing> {
        end_batch(&mut self.vhost, &mut self.log)
    }

    /// Time passes.
    fn sleep(&mut self, millis: u64) {
        self.now_ms += millis;
        while self.vhost.next_wake().is_some_and(|wake| wake <= self.now().time) {
            self.vhost.tick(self.now());
            self.finish();
        }
    }

    /// Starts again with the first so many records of the log; `crashed` if it is unknown whether there
    /// were more.
    fn restart(mut self, records: usize, crashed: bool) -> Self {
        self.log.truncate(records);
        let vhost = Vhost::new("/", [3; 32], VhostOptions::default());
        let (mut replay, last) = replay(vhost, &self.log, self.now().time, &mut Vec::new());
        if crashed {
            replay.records_lost();
        }
        let mut vhost = replay.finish(self.now(), last, &mut NoPages);
        vhost.tick(self.now());
        let mut broker = Self::with(vhost, self.now_ms, self.log);
        broker.finish();
        broker
    }

    fn declare(&mut self, queue: &str, ttl_ms: Option<i32>, dead_letters_to: Option<&str>) {
        let mut arguments = TableBuilder::new();
        if let Some(ttl_ms) = ttl_ms {
            arguments.insert("x-message-ttl", Value::I32(ttl_ms));
        }
        if let Some(key) = dead_letters_to {
            arguments.insert("x-dead-letter-exchange", Value::LongStr(b""));
            arguments.insert("x-dead-letter-routing-key", Value::LongStr(key.as_bytes()));
        }
        let arguments: Table = arguments.finish();
        self.apply(declare_queue(queue, &arguments));
    }

    /// Declares a delayed exchange and binds a queue to it.
    fn declare_delayed(&mut self, exchange: &str, queue: &str) {
        let mut arguments = TableBuilder::new();
        arguments.insert("x-delayed-type", Value::LongStr(b"fanout"));
        self.apply(Command::DeclareExchange(DeclareExchange {
            exchange,
            kind: "x-delayed-message",
            passive: false,
            durable: true,
            auto_delete: false,
            internal: false,
            nowait: true,
            arguments: arguments.finish().as_ref(),
        }));
        self.apply(Command::BindQueue(Bind {
            destination: queue,
            source: exchange,
            routing_key: "",
            nowait: true,
            arguments: TableBuilder::new().finish().as_ref(),
        }));
    }

    fn publish(&mut self, queue: &str) {
        self.publish_with("", queue, Properties::default());
    }

    /// Publishes a message that waits, in an exchange or in the queue.
    fn publish_later(&mut self, exchange: &str, queue: &str, delay_ms: i32) {
        let header = if exchange.is_empty() { "x-opt-delivery-delay" } else { "x-delay" };
        let mut headers = TableBuilder::new();
        headers.insert(header, Value::I32(delay_ms));
        let headers: Table = headers.finish();
        let headers = Some(headers.as_ref());
        self.publish_with(exchange, queue, Properties { headers, ..Properties::default() });
    }

    fn publish_with(&mut self, exchange: &str, queue: &str, properties: Properties<'_>) {
        let mut encoded = Vec::new();
        Properties { delivery_mode: Some(2), ..properties }.encode(&mut encoded);
        let properties = encoded;
        self.apply(Command::Publish(Publish {
            exchange: exchange.as_bytes().into(),
            routing_key: queue.as_bytes().into(),
            mandatory: false,
            content: Content::Assembled { properties: properties.into(), body: "m".into() },
        }));
    }

    /// The next message of a queue is got: its tag, and whether it is marked.
    #[track_caller]
    fn get(&mut self, queue: &str) -> (DeliveryTag, bool) {
        let told = self.apply(Command::Get { queue, no_ack: false });
        let delivery = told.into_iter().find_map(|outgoing| {
            let Outgoing::GetOk { delivery, .. } = outgoing else { return None };
            Some((delivery.tag, delivery.redelivered))
        });
        delivery.expect("the queue has a message")
    }

    fn settle(&mut self, tag: DeliveryTag, outcome: Outcome) {
        self.apply(Command::Settle { tag, multiple: false, outcome });
    }
}

fn access() -> Access {
    Access::matching("guest".into(), ".*").unwrap()
}

#[test]
fn dead_letter_delivered_before_its_record_is_marked() {
    let mut broker = Broker::new();
    broker.declare("third", None, None);
    broker.declare("second", Some(100), Some("third"));
    broker.declare("first", Some(100), Some("second"));
    broker.publish("first");
    let written = broker.log.len();
    broker.sleep(100);
    let (tag, marked) = broker.get("second");
    assert!(!marked);
    broker.settle(tag, Outcome::Ack);

    let mut broker = broker.restart(written, true);
    broker.sleep(100);
    broker.publish("first");
    let (tag, marked) = broker.get("second");
    assert!(marked, "its consumer may have seen it");
    // The mark goes on with what becomes of it, and stays after a restart that was none of a crash.
    broker.settle(tag, Outcome::Requeue { failed: false });
    broker.sleep(50);
    let records = broker.log.len();
    let mut broker = broker.restart(records, false);
    broker.sleep(60);
    assert!(broker.get("third").1);
    // A newer one has no mark.
    assert!(!broker.get("second").1);
    assert!(broker.vhost.broken_invariants().is_empty());
}

#[test]
fn rejected_message_that_is_restored_and_its_dead_letter_are_marked() {
    let mut broker = Broker::new();
    broker.declare("dlq", None, None);
    broker.declare("work", None, Some("dlq"));
    broker.publish("work");
    let written = broker.log.len();
    let (tag, _) = broker.get("work");
    broker.settle(tag, Outcome::Reject);
    assert!(!broker.get("dlq").1);

    let mut broker = broker.restart(written, true);
    let (tag, marked) = broker.get("work");
    assert!(marked);
    broker.settle(tag, Outcome::Reject);
    assert!(broker.get("dlq").1);
}

#[test]
fn scheduled_message_delivered_before_its_release_is_recorded_is_marked() {
    for exchange in ["", "later"] {
        let mut broker = Broker::new();
        broker.declare("work", None, None);
        broker.declare_delayed("later", "work");
        broker.publish_later(exchange, "work", 100);
        let before_release = broker.log.len();
        // The log has delivery times in whole milliseconds.
        broker.sleep(101);
        assert!(!broker.get("work").1);

        let mut broker = broker.restart(before_release, true);
        let (tag, marked) = broker.get("work");
        assert!(marked, "its consumer may have seen it");
        broker.settle(tag, Outcome::Requeue { failed: false });

        // The mark of a message that nobody took stays after a restart that was none of a crash.
        let mut broker = broker.restart(before_release, true);
        let records = broker.log.len();
        assert!(records > before_release, "the release is recorded");
        assert!(broker.get("work").1);
        let mut broker = broker.restart(records, false);
        assert!(broker.get("work").1);
        assert!(broker.vhost.broken_invariants().is_empty());
    }
}

#[test]
fn scheduled_message_that_was_not_delivered_is_not_marked() {
    for exchange in ["", "later"] {
        let mut broker = Broker::new();
        broker.declare("work", None, None);
        broker.declare_delayed("later", "work");
        broker.publish_later(exchange, "work", 100);
        let records = broker.log.len();
        // Its time comes while the broker is stopped.
        broker.now_ms += 200;
        let mut broker = broker.restart(records, false);
        assert!(!broker.get("work").1);

        // Its time comes after a crash.
        broker.publish_later(exchange, "work", 100);
        let records = broker.log.len();
        let mut broker = broker.restart(records, true);
        broker.sleep(101);
        assert!(broker.get("work").1, "the first");
        assert!(!broker.get("work").1);
    }
}

#[test]
fn redriven_message_delivered_before_its_record_is_marked() {
    let mut broker = Broker::new();
    broker.declare("dlq", None, None);
    broker.declare("work", None, Some("dlq"));
    broker.publish("work");
    let (tag, _) = broker.get("work");
    broker.settle(tag, Outcome::Reject);
    let written = broker.log.len();
    redrive(&mut broker);
    assert!(!broker.get("work").1);

    let mut broker = broker.restart(written, true);
    redrive(&mut broker);
    assert!(broker.get("work").1);
}

/// Sends the message in `dlq` back.
fn redrive(broker: &mut Broker) {
    let from = BrowseCursor::start(MessageState::Ready);
    let queue = broker.vhost.queue_id("dlq").unwrap();
    let browsed = broker.vhost.browse(queue, from, &[], 10).unwrap();
    let entries: Vec<_> = browsed.messages.into_iter().map(|message| message.entry).collect();
    let access = access();
    let redrive = Redrive { queue, to: &RedriveTo::Origin, access: &access, is_of_kept: false };
    let outcomes = broker.vhost.redrive(broker.now(), redrive, &entries).unwrap();
    assert_eq!(outcomes, [Redriven::Moved]);
    broker.finish();
}

#[test]
fn clock_set_back_keeps_no_message_longer_than_its_ttl() {
    let mut broker = Broker::new();
    broker.now_ms = 100_000_000;
    broker.declare("dlq", None, None);
    broker.declare("work", Some(10_000), Some("dlq"));
    broker.publish("work");
    broker.sleep(4_000);
    broker.now_ms -= 86_400_000;
    let records = broker.log.len();
    // Twice, because the log still has the other record.
    let mut broker = broker.restart(records, false);
    broker.sleep(9_000);
    let mut broker = broker.restart(records, false);
    broker.sleep(9_000);
    let waiting = |broker: &Broker, queue| broker.vhost.queue(queue).unwrap().message_count();
    assert_eq!((waiting(&broker, "work"), waiting(&broker, "dlq")), (1, 0));
    broker.sleep(1_000);
    assert_eq!((waiting(&broker, "work"), waiting(&broker, "dlq")), (0, 1));
}

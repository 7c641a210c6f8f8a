//! Bounds on the work of one command and of one call, and its count.

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::limits::{EVICTION_SLICE, SCHEDULE_CHANGE_WORK, TRANSACTION_TARGETS_MAX};
use broker::time::Now;
use broker::{
    Bind, ChannelNumber, Command, ConnectionId, Content, Effect, Outgoing, PolicyKind, Publish,
    Request, Vhost,
};

use crate::commands::{declare_queue, queue_policy, vhost_with_client};

const NOW: Now = Now::from_millis(1_000_000);

/// A vhost with one client on one channel.
struct Broker {
    vhost: Vhost,
    connection: ConnectionId,
}

impl Broker {
    fn new() -> Self {
        let (vhost, connection) = vhost_with_client();
        let mut broker = Self { vhost, connection };
        broker.apply(Command::OpenChannel);
        broker
    }

    /// Performs a command; returns what the client is told.
    fn apply(&mut self, command: Command<'_>) -> Vec<Outgoing> {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        self.vhost.apply(NOW, self.connection, request);
        self.finish()
    }

    fn finish(&mut self) -> Vec<Outgoing> {
        self.vhost.durable(self.vhost.last_lsn());
        let sent = self.vhost.drain_effects().filter_map(|effect| match effect {
            Effect::Send { outgoing, .. } => Some(outgoing),
            _ => None,
        });
        sent.collect()
    }

    fn publish(&mut self, exchange: &str, routing_key: &str, headers: &Table) -> Vec<Outgoing> {
        let mut properties = Vec::new();
        let headers = (!headers.is_empty()).then(|| headers.as_ref());
        Properties { headers, ..Properties::default() }.encode(&mut properties);
        self.apply(Command::Publish(Publish {
            exchange: exchange.as_bytes().into(),
            routing_key: routing_key.as_bytes().into(),
            mandatory: false,
            content: Content::Assembled { properties: properties.into(), body: "m".into() },
        }))
    }

    /// Binds this many queues to `amq.fanout`.
    fn fan_out(&mut self, queues: usize) {
        let none = Table::default();
        for number in 0..queues {
            let queue = format!("q{number}");
            self.apply(declare_queue(&queue, &none));
            self.apply(Command::BindQueue(Bind {
                destination: &queue,
                source: "amq.fanout",
                routing_key: "",
                nowait: true,
                arguments: none.as_ref(),
            }));
        }
    }

    fn count(&self, queue: &str) -> u64 {
        self.vhost.queue(queue).unwrap().message_count()
    }

    /// Work of a command.
    fn work_of(&mut self, run: impl FnOnce(&mut Self)) -> u64 {
        let before = self.vhost.work_done();
        run(self);
        self.vhost.work_done() - before
    }
}

#[test]
fn transaction_enters_a_bounded_number_of_queues() {
    const QUEUES: usize = 1000;
    let (mut broker, none) = (Broker::new(), Table::default());
    broker.fan_out(QUEUES);
    broker.apply(Command::TxSelect);
    for _ in 0..TRANSACTION_TARGETS_MAX / QUEUES {
        assert!(broker.publish("amq.fanout", "", &none).is_empty());
    }
    let refused = broker.publish("amq.fanout", "", &none);
    let [Outgoing::ChannelClose { refusal, .. }] = &refused[..] else { panic!("{refused:?}") };
    assert_eq!(
        refusal.to_string(),
        "PRECONDITION_FAILED - messages of a transaction enter more than 1000000 queues in total"
    );
    assert_eq!(broker.count("q0"), 0, "the transaction is rolled back");
    broker.apply(Command::ChannelCloseOk);
    broker.apply(Command::OpenChannel);
    // The next one begins anew, and so does each after a commit.
    broker.apply(Command::TxSelect);
    for round in 1..=3 {
        assert!(broker.publish("amq.fanout", "", &none).is_empty());
        let work = broker.work_of(|broker| {
            assert!(matches!(broker.apply(Command::TxCommit)[..], [Outgoing::TxCommitOk]));
        });
        assert_eq!((work, broker.count("q0")), (QUEUES as u64, round));
    }
}

#[test]
fn work_is_counted_by_messages() {
    let (mut broker, none) = (Broker::new(), Table::default());
    broker.fan_out(3);
    assert_eq!(broker.work_of(|broker| drop(broker.publish("amq.fanout", "", &none))), 3);
    assert_eq!(broker.work_of(|broker| drop(broker.publish("", "nowhere", &none))), 0);
    let scheduled = |id: &str| {
        let mut headers = TableBuilder::new();
        headers.insert("x-opt-delivery-delay", Value::I64(1_000_000));
        headers.insert("x-schedule-id", Value::LongStr(id.as_bytes()));
        headers.insert("x-schedule-mode", Value::LongStr(b"add"));
        headers.finish()
    };
    for _ in 0..5 {
        assert_eq!(broker.work_of(|b| drop(b.publish("", "q0", &scheduled("a")))), 1);
    }
    let mut headers = TableBuilder::new();
    headers.insert("x-schedule-op", Value::LongStr(b"cancel"));
    headers.insert("x-schedule-target", Value::LongStr(b"queue/q0"));
    headers.insert("x-schedule-id", Value::LongStr(b"a"));
    let cancel = headers.finish();
    let work = broker.work_of(|broker| drop(broker.publish("amq.schedule", "", &cancel)));
    assert_eq!(work, 5 * SCHEDULE_CHANGE_WORK);
}

#[test]
fn lowered_limit_evicts_in_slices() {
    let (mut broker, none) = (Broker::new(), Table::default());
    broker.fan_out(1);
    let messages = 3 * EVICTION_SLICE as u64;
    for _ in 0..messages {
        broker.publish("", "q0", &none);
    }
    let policy = queue_policy("p", "", "max-length", 10);
    broker.vhost.start_policy(NOW, PolicyKind::User, policy);
    while broker.vhost.apply_policies(NOW) {}
    broker.finish();
    let mut before = broker.count("q0");
    assert_eq!(before, messages - EVICTION_SLICE as u64);
    while broker.vhost.next_wake().is_some_and(|wake| wake <= NOW.time) {
        broker.vhost.tick(NOW);
        broker.finish();
        let now = broker.count("q0");
        assert!(before - now <= EVICTION_SLICE as u64, "{before} {now}");
        before = now;
    }
    assert_eq!(before, 10);
    broker.publish("", "q0", &none);
    assert_eq!(broker.count("q0"), 10);
}

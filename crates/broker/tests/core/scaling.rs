//! Operations that must stay cheap, however large everything is.
//!
//! Each of these takes minutes where the work grows with the square of the size, and a moment where it
//! does not; the processor time allowed lies far from both, however busy the machine is.

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{ArrayBuilder, Table, TableBuilder, Value};
use broker::time::{Now, Time};
use broker::{
    Bind, ChannelNumber, Command, ConnectionId, Consume, Content, DeclareExchange, DeleteQueue,
    DeliveryTag, Effect, Outcome, Outgoing, PolicyKind, Publish, Request, Vhost,
};

use rustix::time::{ClockId, clock_gettime};

use crate::commands::{declare_queue, queue_policy, vhost_with_client};

/// A vhost with one client on one channel that is never refused.
struct Broker {
    vhost: Vhost,
    connection: ConnectionId,
    now_us: u64,
}

impl Broker {
    fn new() -> Self {
        let (vhost, connection) = vhost_with_client();
        let mut broker = Self { vhost, connection, now_us: 1_000_000_000 };
        broker.apply(Command::OpenChannel);
        broker
    }

    fn now(&self) -> Now {
        Now { time: Time::from_micros(self.now_us), wall_us: self.now_us }
    }

    fn apply(&mut self, command: Command<'_>) {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        self.vhost.apply(self.now(), self.connection, request);
        self.finish();
    }

    /// Ends the batch; the client has read everything.
    fn finish(&mut self) {
        self.vhost.durable(self.vhost.last_lsn());
        self.vhost.flush();
        for effect in self.vhost.drain_effects() {
            if let Effect::Send { outgoing: Outgoing::ChannelClose { refusal, .. }, .. } = effect {
                panic!("{refusal}");
            }
        }
        self.vhost.set_backlog(self.now(), self.connection, 0);
    }

    /// Lets the timer fire until nothing is due any more.
    fn tick(&mut self) {
        while self.vhost.next_wake().is_some_and(|wake| wake <= self.now().time) {
            self.vhost.tick(self.now());
            self.finish();
        }
    }

    fn declare(&mut self, queue: &str, arguments: &Table) {
        self.apply(declare_queue(queue, arguments));
    }

    fn exchange(&mut self, exchange: &str, kind: &str) {
        self.apply(Command::DeclareExchange(DeclareExchange {
            exchange,
            kind,
            passive: false,
            durable: true,
            auto_delete: false,
            internal: false,
            nowait: true,
            arguments: Table::default().as_ref(),
        }));
    }

    fn bind(&mut self, queue: &str, source: &str, routing_key: &str, arguments: &Table) {
        let arguments = arguments.as_ref();
        let bind = Bind { destination: queue, source, routing_key, nowait: true, arguments };
        self.apply(Command::BindQueue(bind));
    }

    fn bind_exchange(&mut self, exchange: &str, source: &str) {
        let arguments = none();
        let arguments = arguments.as_ref();
        let bind = Bind { destination: exchange, source, routing_key: "", nowait: true, arguments };
        self.apply(Command::BindExchange(bind));
    }

    fn publish(&mut self, exchange: &str, routing_key: &str, headers: &Table) {
        let mut properties = Vec::new();
        let headers = (!headers.is_empty()).then(|| headers.as_ref());
        Properties { headers, ..Properties::default() }.encode(&mut properties);
        self.apply(Command::Publish(Publish {
            exchange: exchange.as_bytes().into(),
            routing_key: routing_key.as_bytes().into(),
            mandatory: false,
            content: Content::Assembled { properties: properties.into(), body: "m".into() },
        }));
    }

    fn publish_to(&mut self, queue: &str, times: u64) {
        (0..times).for_each(|_| self.publish("", queue, &Table::default()));
    }

    fn get(&mut self, queue: &str, times: u64) {
        (0..times).for_each(|_| self.apply(Command::Get { queue, no_ack: false }));
    }

    fn consume(&mut self, queue: &str, consumer_tag: &str, arguments: &Table) {
        self.apply(Command::Consume(Consume {
            queue,
            consumer_tag,
            no_ack: false,
            exclusive: false,
            nowait: true,
            arguments: arguments.as_ref(),
        }));
    }

    /// The properties of the next message.
    fn got(&mut self, queue: &str) -> Vec<u8> {
        let command = Command::Get { queue, no_ack: true };
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        self.vhost.apply(self.now(), self.connection, request);
        let sent = |effect| {
            let Effect::Send { outgoing, .. } = effect else { return None };
            if let Outgoing::GetOk { delivery, .. } = outgoing { Some(delivery) } else { None }
        };
        let delivery = self.vhost.drain_effects().find_map(sent).unwrap();
        delivery.properties().into_owned()
    }

    fn ready(&self, queue: &str) -> u64 {
        self.vhost.queue(queue).unwrap().ready_count()
    }
}

fn none() -> Table {
    Table::default()
}

fn table(entries: &[(&str, Value<'_>)]) -> Table {
    let mut table = TableBuilder::new();
    for (key, value) in entries {
        table.insert(*key, *value);
    }
    table.finish()
}

fn in_time(work: impl FnOnce()) {
    let before_s = processor_time_s();
    work();
    let took_s = processor_time_s() - before_s;
    assert!(took_s < 60, "it took {took_s} s");
}

/// Processor time of this thread.
fn processor_time_s() -> i64 {
    clock_gettime(ClockId::ThreadCPUTime).tv_sec
}

#[test]
fn transaction_settles_many_deliveries_one_by_one() {
    let mut broker = Broker::new();
    let count = 50_000;
    broker.declare("q", &none());
    broker.publish_to("q", count);
    broker.apply(Command::TxSelect);
    broker.get("q", count);
    in_time(|| {
        for tag in 1..=count {
            let (tag, outcome) = (DeliveryTag(tag), Outcome::Ack);
            broker.apply(Command::Settle { tag, multiple: false, outcome });
        }
        broker.apply(Command::TxCommit);
    });
    assert_eq!(broker.vhost.queue("q").unwrap().message_count(), 0);
}

#[test]
fn deliveries_time_out_each_at_its_own_time() {
    let mut broker = Broker::new();
    let quorum = ("x-queue-type", Value::LongStr(b"quorum"));
    broker.declare("q", &table(&[quorum, ("x-consumer-timeout", Value::I32(1000))]));
    broker.consume("q", "t", &none());
    for _ in 0..40_000 {
        broker.now_us += 1;
        broker.publish_to("q", 1);
    }
    in_time(|| {
        while broker.vhost.queue("q").unwrap().unacked_count() > 0 {
            broker.now_us = broker.vhost.next_wake().unwrap().as_micros();
            broker.tick();
        }
    });
    assert_eq!(broker.ready("q"), 40_000);
}

#[test]
fn consumers_of_many_priorities_are_removed_at_once() {
    let mut broker = Broker::new();
    broker.declare("q", &none());
    for priority in 0..3000_i32 {
        let arguments = table(&[("x-priority", Value::I32(priority))]);
        broker.consume("q", &priority.to_string(), &arguments);
    }
    in_time(|| broker.apply(Command::CloseChannel));
    assert_eq!(broker.vhost.queue("q").unwrap().consumer_count(), 0);
}

#[test]
fn route_passes_many_exchanges() {
    let mut broker = Broker::new();
    broker.declare("q", &none());
    broker.exchange("x", "fanout");
    for number in 0..50_000 {
        let name = number.to_string();
        broker.exchange(&name, "fanout");
        broker.bind_exchange(&name, "x");
    }
    broker.bind("q", "49999", "", &none());
    in_time(|| broker.publish("x", "", &none()));
    assert_eq!(broker.ready("q"), 1);
}

#[test]
fn consistent_hash_exchange_takes_many_queues() {
    let mut broker = Broker::new();
    broker.exchange("x", "x-consistent-hash");
    in_time(|| {
        for number in 0..5000 {
            let name = number.to_string();
            broker.declare(&name, &none());
            broker.bind(&name, "x", "10", &none());
        }
    });
}

#[test]
fn topic_wildcards_match_a_long_key() {
    let mut broker = Broker::new();
    broker.declare("q", &none());
    broker.exchange("x", "topic");
    broker.bind("q", "x", "#.*.#.z", &none());
    let mut keys = ArrayBuilder::new();
    keys.push(Value::LongStr("a.".repeat(50_000).as_bytes()));
    let keys = keys.finish();
    let headers = table(&[("CC", Value::Array(keys.as_ref()))]);
    in_time(|| broker.publish("x", "a.z", &headers));
    assert_eq!(broker.ready("q"), 1);
}

#[test]
fn fanout_and_headers_exchanges_route_many_keys_and_headers() {
    let mut broker = Broker::new();
    broker.exchange("x", "fanout");
    broker.exchange("h", "headers");
    for number in 0..2000 {
        let name = number.to_string();
        broker.declare(&name, &none());
        broker.bind(&name, "x", "", &none());
        let arguments = table(&[("zzz", Value::I32(number))]);
        broker.bind(&name, "h", "", &arguments);
    }
    let mut keys = ArrayBuilder::new();
    let mut headers = TableBuilder::new();
    for number in 0..1000 {
        keys.push(Value::LongStr(number.to_string().as_bytes()));
    }
    for number in 0..20_000 {
        headers.insert(format!("{number:05}"), Value::Void);
    }
    let keys = keys.finish();
    let (keys, headers) = (table(&[("CC", Value::Array(keys.as_ref()))]), headers.finish());
    in_time(|| {
        (0..20).for_each(|_| broker.publish("x", "k", &keys));
        (0..20).for_each(|_| broker.publish("h", "k", &headers));
    });
    assert_eq!(broker.ready("0"), 20);
}

#[test]
fn rejected_deliveries_are_dead_lettered_beside_other_work() {
    let mut broker = Broker::new();
    let dead_letters = [
        ("x-dead-letter-exchange", Value::LongStr(b"")),
        ("x-dead-letter-routing-key", Value::LongStr(b"dlq")),
    ];
    broker.declare("dlq", &none());
    broker.declare("other", &none());
    broker.declare("q", &table(&dead_letters));
    broker.publish_to("q", 20_000);
    broker.get("q", 20_000);
    let (tag, outcome) = (DeliveryTag(0), Outcome::Reject);
    broker.apply(Command::Settle { tag, multiple: true, outcome });
    let moved = broker.ready("dlq");
    assert!((1..20_000).contains(&moved), "{moved} in one call");
    broker.publish_to("other", 1);
    assert_eq!(broker.ready("dlq"), moved, "a publish does not pay for it");
    assert!(broker.vhost.broken_invariants().is_empty());
    broker.tick();
    assert_eq!(broker.ready("dlq"), 20_000);
    assert!(broker.vhost.broken_invariants().is_empty());
}

/// Twelve queues that expire everything at once and dead-letter it to all of them: every way through
/// them without a circle is taken, 1.3 thousand million in all.
#[test]
fn multiplying_dead_letter_exchanges_block_no_client() {
    let mut broker = Broker::new();
    broker.exchange("x", "fanout");
    broker.declare("other", &none());
    let dead_letters = ("x-dead-letter-exchange", Value::LongStr(b"x"));
    for number in 0..12 {
        let name = number.to_string();
        broker.declare(&name, &table(&[dead_letters, ("x-message-ttl", Value::I32(0))]));
        broker.bind(&name, "x", "", &none());
    }
    in_time(|| {
        broker.publish_to("0", 1);
        broker.publish_to("other", 100);
        for _ in 0..10 {
            broker.vhost.tick(broker.now());
            broker.finish();
        }
    });
    assert_eq!(broker.ready("other"), 100);
    assert!(broker.vhost.broken_invariants().is_empty());
    broker.apply(Command::DeleteExchange { exchange: "x", if_unused: false, nowait: true });
    broker.tick();
    let later = broker.now().time.plus_ms(60_000);
    // The history of dead letters forgets them much later.
    assert!(
        broker.vhost.next_wake().is_none_or(|at| at > later),
        "without the exchange it is over"
    );
    assert!(broker.vhost.broken_invariants().is_empty());
}

/// A message whose keys take nearly all of a frame dies in two hundred queues one after the other.
#[test]
fn dead_letter_with_many_keys_passes_a_chain_of_queues() {
    let mut broker = Broker::new();
    for number in 0..200 {
        let next = format!("chain-{}", number + 1);
        broker.exchange(&format!("x{number}"), "fanout");
        let exchange = format!("x{}", number + 1);
        let arguments = [
            ("x-dead-letter-exchange", Value::LongStr(exchange.as_bytes())),
            ("x-message-ttl", Value::I32(0)),
        ];
        broker.declare(&format!("chain-{number}"), &table(&arguments));
        broker.bind(&format!("chain-{number}"), &format!("x{number}"), "", &none());
        if number == 199 {
            broker.exchange(&exchange, "fanout");
            broker.declare(&next, &none());
            broker.bind(&next, &exchange, "", &none());
        }
    }
    let mut keys = ArrayBuilder::new();
    (0..1000).for_each(|at| {
        keys.push(Value::LongStr(format!("{at:0>110}").as_bytes()));
    });
    let keys = keys.finish();
    let headers = table(&[("CC", Value::Array(keys.as_ref()))]);
    let mut properties = Vec::new();
    Properties { headers: Some(headers.as_ref()), delivery_mode: Some(2), ..Properties::default() }
        .encode(&mut properties);
    let properties_len = properties.len();
    let publish = Command::Publish(Publish {
        exchange: b"x0".as_slice().into(),
        routing_key: b"k".as_slice().into(),
        mandatory: false,
        content: Content::Assembled { properties: properties.into(), body: "m".into() },
    });
    let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command: publish };
    broker.vhost.apply(broker.now(), broker.connection, request);
    let (mut batches, mut largest, mut all) = (0, 0, 0);
    loop {
        broker.vhost.flush();
        let (mut batch, mut record_bytes) = (0, 0);
        for effect in broker.vhost.drain_effects() {
            if let Effect::Log { at, record, .. } = effect {
                let mut bytes = Vec::new();
                record.encode(at, &mut bytes);
                batch += bytes.len() as u64;
                record_bytes = record_bytes.max(bytes.len() as u64);
            }
        }
        largest = largest.max(record_bytes);
        all += batch;
        batches += 1;
        let bytes_max = broker::limits::DEATH_BYTES_PER_BATCH_MAX + largest;
        assert!(batch <= bytes_max, "{batch} bytes in a batch, the largest record {largest}");
        if broker.vhost.next_wake().is_none_or(|wake| wake > broker.now().time) {
            break;
        }
        broker.vhost.tick(broker.now());
    }
    assert!(batches > 5, "{batches} batches");
    assert!(all < 200 * 600_000, "{all} bytes in all");
    assert_eq!(broker.ready("chain-200"), 1);
    assert_eq!(broker.vhost.counters().death_headers_cut, 200);
    let got = broker.got("chain-200");
    assert!(properties_len < got.len() && got.len() < broker::limits::FRAME_MAX_DEFAULT);
    let headers = Properties::parse(&got).unwrap().headers.unwrap();
    let Some(Value::Array(list)) = headers.get("x-death") else { panic!("no list") };
    let omitted = headers.get("x-death-omitted").and_then(|value| value.as_integer());
    assert_eq!(list.iter().count() as i128 + i128::from(omitted.unwrap()), 200);
}

/// Every key leads to every one of the queue's bindings: matched key by key that is sixty million.
#[test]
fn topic_wildcards_match_many_keys_at_once() {
    const LEVELS: u32 = 14;
    let mut broker = Broker::new();
    broker.exchange("t", "topic");
    broker.declare("q", &none());
    for bits in 0..1_u32 << LEVELS {
        let word = |level| if bits >> level & 1 == 0 { "a" } else { "*" };
        let words: Vec<&str> = (0..LEVELS).map(word).chain(["#"]).collect();
        broker.bind("q", "t", &words.join("."), &none());
    }
    let stem = vec!["a"; LEVELS as usize].join(".");
    let keys = |first: u32| {
        let mut keys = ArrayBuilder::new();
        for number in first..first + 1000 {
            keys.push(Value::LongStr(format!("{stem}.{number}").as_bytes()));
        }
        keys.finish()
    };
    let (cc, bcc) = (keys(0), keys(1000));
    let keys = table(&[("BCC", Value::Array(bcc.as_ref())), ("CC", Value::Array(cc.as_ref()))]);
    in_time(|| (0..2).for_each(|_| broker.publish("t", "other", &keys)));
    assert_eq!(broker.ready("q"), 2, "one message each, however many ways lead there");
}

#[test]
fn policy_change_is_applied_in_slices() {
    const QUEUES: usize = 3000;
    let mut broker = Broker::new();
    for number in 0..QUEUES {
        broker.declare(&format!("queue.{number}.{}", "a".repeat(200)), &none());
    }
    let policy = |name, pattern, ttl_ms| queue_policy(name, pattern, "message-ttl", ttl_ms);
    let in_force = |broker: &Broker| {
        let queues = broker.vhost.queues();
        queues.filter(|(_, queue)| queue.settings.message_ttl_ms == Some(7_000)).count()
    };
    let kind = PolicyKind::User;
    broker.vhost.start_policy(broker.now(), kind, policy("all", "^(?!amq)", 7_000));
    assert!(broker.vhost.apply_policies(broker.now()), "more is left");
    let first = in_force(&broker);
    assert!((1..100).contains(&first), "{first} in one slice");
    broker.publish_to("elsewhere", 1);
    // Another change meanwhile, whose end no caller awaits.
    broker.vhost.start_policy(broker.now(), kind, policy("better", "^queue\\.1", 8_000));
    assert!(in_force(&broker) < QUEUES);
    broker.tick();
    let others = broker.vhost.queues().filter(|(_, queue)| !queue.name.starts_with("queue.1"));
    assert_eq!(in_force(&broker), others.count());
    assert!(broker.vhost.broken_invariants().is_empty());
    // A pattern that explodes on every name is bounded on each of them.
    in_time(|| {
        let bomb = policy("bomb", "^(?=.*a)(\\w|a|.)*(x)\\2$", 9_000);
        broker.vhost.start_policy(broker.now(), kind, bomb);
        broker.tick();
    });
    assert!(broker.vhost.broken_invariants().is_empty());
}

#[test]
fn consumers_and_weights_are_removed_one_by_one() {
    let mut broker = Broker::new();
    broker.declare("q", &none());
    broker.exchange("c", "x-consistent-hash");
    for number in 0..20_000 {
        broker.consume("q", &number.to_string(), &none());
        broker.bind("q", "c", "1", &table(&[("a", Value::I32(number))]));
    }
    broker.publish("c", "k", &none());
    in_time(|| {
        broker.apply(Command::CloseChannel);
        broker.apply(Command::OpenChannel);
        broker.vhost.execute(broker.now(), delete("q")).unwrap();
    });
    assert!(broker.vhost.broken_invariants().is_empty());
}

fn delete(queue: &str) -> Command<'_> {
    Command::DeleteQueue(DeleteQueue { queue, if_unused: false, if_empty: false, nowait: true })
}

/// Every rejected message comes back to its queue and evicts another there, which dies while the queue is deleted.
#[test]
fn queue_deleted_during_a_mass_death_ends_all_its_deaths() {
    let mut broker = Broker::new();
    broker.declare("end", &none());
    broker.declare(
        "q",
        &table(&[
            ("x-dead-letter-exchange", Value::LongStr(b"")),
            ("x-dead-letter-routing-key", Value::LongStr(b"q")),
            ("x-max-length", Value::I32(1)),
        ]),
    );
    for _ in 0..5000 {
        broker.publish_to("q", 1);
        broker.get("q", 1);
    }
    let (tag, outcome) = (DeliveryTag(0), Outcome::Reject);
    broker.apply(Command::Settle { tag, multiple: true, outcome });
    assert!(broker.vhost.next_wake().is_some(), "the timer goes on with the deaths");
    let (if_unused, if_empty, nowait) = (false, false, true);
    let delete = ::broker::DeleteQueue { queue: "q", if_unused, if_empty, nowait };
    broker.apply(Command::DeleteQueue(delete));
    assert!(broker.vhost.broken_invariants().is_empty());
    broker.tick();
    assert!(broker.vhost.queue("q").is_none());
    assert!(broker.vhost.broken_invariants().is_empty());
}

//! Times the single commands that hold a vhost longest, on large queues and topologies:
//! `cargo run --release -p leveret-server --example long_calls [PART OF A NAME]`.
//!
//! Each line is the longest call of a command, in milliseconds. No other client is served in the vhost
//! meanwhile.

#![allow(clippy::unwrap_used, reason = "a program to measure ends where something is wrong")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "it looks at the clock")]
#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{ArrayBuilder, Table, TableBuilder, Value};
use broker::access::Access;
use broker::time::{Now, Time};
use broker::{
    ApplyTo, Bind, ChannelNumber, Command, ConnectionId, Consume, Content, DeclareExchange,
    DeclareQueue, Definition, DeleteQueue, DeliveryTag, Outcome, Pattern, Policy, PolicyChange,
    PolicyKind, PolicyValue, Publish, Request, Vhost, VhostOptions,
};

struct Broker {
    vhost: Vhost,
    connection: ConnectionId,
    longest: Duration,
}

impl Broker {
    fn new() -> Self {
        let mut vhost = Vhost::new("/", [3; 32], VhostOptions::default());
        let access = Access::matching("guest".into(), ".*").unwrap();
        let connection = vhost.open_connection(Arc::new(access), true);
        let mut broker = Self { vhost, connection, longest: Duration::ZERO };
        broker.apply(Command::OpenChannel);
        broker
    }

    fn now() -> Now {
        Now { time: Time::from_micros(1_000_000), wall_us: 1_000_000 }
    }

    fn timed<T>(&mut self, call: impl FnOnce(&mut Vhost) -> T) -> T {
        let began = Instant::now();
        let result = call(&mut self.vhost);
        self.vhost.flush();
        self.longest = self.longest.max(began.elapsed());
        self.vhost.durable(self.vhost.last_lsn());
        self.vhost.drain_effects();
        self.vhost.set_backlog(Self::now(), self.connection, 0);
        self.vhost.drain_effects();
        result
    }

    fn apply(&mut self, command: Command<'_>) {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        let connection = self.connection;
        self.timed(|vhost| vhost.apply(Self::now(), connection, request));
    }

    fn tick(&mut self) {
        while self.vhost.next_wake().is_some_and(|wake| wake <= Self::now().time) {
            self.timed(|vhost| vhost.tick(Self::now()));
        }
    }

    fn queue(&mut self, queue: &str, exclusive: bool) {
        self.apply(Command::DeclareQueue(DeclareQueue {
            queue,
            passive: false,
            durable: true,
            exclusive,
            auto_delete: false,
            nowait: true,
            arguments: Table::default().as_ref(),
        }));
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

    fn publish(&mut self, exchange: &str, routing_key: &str, headers: &Table) {
        let mut properties = Vec::new();
        let headers = (!headers.is_empty()).then(|| headers.as_ref());
        Properties { headers, delivery_mode: Some(2), ..Properties::default() }
            .encode(&mut properties);
        self.apply(Command::Publish(Publish {
            exchange: exchange.as_bytes().into(),
            routing_key: routing_key.as_bytes().into(),
            mandatory: false,
            content: Content::Assembled { properties: properties.into(), body: "m".into() },
        }));
    }

    fn fill(&mut self, queue: &str, count: usize) {
        (0..count).for_each(|_| self.publish("", queue, &Table::default()));
    }

    fn consume(&mut self, queue: &str, consumer_tag: &str) {
        self.apply(Command::Consume(Consume {
            queue,
            consumer_tag,
            no_ack: false,
            exclusive: false,
            nowait: true,
            arguments: Table::default().as_ref(),
        }));
    }

    fn settle(&mut self, outcome: Outcome) {
        self.apply(Command::Settle { tag: DeliveryTag(0), multiple: true, outcome });
    }

    fn delete_queue(&mut self, queue: &str) {
        let delete = DeleteQueue { queue, if_unused: false, if_empty: false, nowait: true };
        self.apply(Command::DeleteQueue(delete));
    }
}

fn wildcards(broker: &mut Broker, levels: u32) {
    broker.exchange("t", "topic");
    broker.queue("q", false);
    for bits in 0..1_u32 << levels {
        let word = |level| if bits >> level & 1 == 0 { "a" } else { "*" };
        let words: Vec<&str> = (0..levels).map(word).chain(["#"]).collect();
        broker.bind("q", "t", &words.join("."), &Table::default());
    }
}

fn keys(stem: &str) -> Table {
    let mut table = TableBuilder::new();
    for header in ["BCC", "CC"] {
        let mut keys = ArrayBuilder::new();
        for at in 0..1024 {
            keys.push(Value::LongStr(format!("{stem}.{header}{at}").as_bytes()));
        }
        table.insert(header, Value::Array(keys.finish().as_ref()));
    }
    table.finish()
}

fn policy(pattern: &str) -> Policy {
    let definition = vec![("max-length".to_owned(), PolicyValue::Integer(1_000_000))];
    Policy {
        name: "p".into(),
        pattern: Pattern::new(pattern).unwrap(),
        apply_to: ApplyTo::All,
        priority: 0.0,
        definition: Definition::parse(definition, PolicyKind::User).unwrap(),
    }
}

const MANY: usize = 100_000;
const MILLION: usize = 1_000_000;

type Case = (&'static str, fn(&mut Broker), fn(&mut Broker));

const CASES: &[Case] = &[
    (
        "publish, 2048 keys on 2^15 topic bindings",
        |b| wildcards(b, 15),
        |b| {
            b.publish("t", "k", &keys(&["a"; 15].join(".")));
        },
    ),
    (
        "publish, a key of 128 words on 2^13 topic bindings",
        |b| wildcards(b, 13),
        |b| {
            b.publish("t", &["a"; 127].join("."), &Table::default());
        },
    ),
    (
        "publish to a fanout of 100,000 queues",
        |b| {
            b.exchange("f", "fanout");
            for at in 0..MANY {
                b.queue(&at.to_string(), false);
                b.bind(&at.to_string(), "f", "", &Table::default());
            }
        },
        |b| b.publish("f", "", &Table::default()),
    ),
    (
        "publish, 100,000 headers bindings of 8 arguments",
        |b| {
            b.exchange("h", "headers");
            b.queue("q", false);
            for at in 0..MANY {
                let mut table = TableBuilder::new();
                table.insert("x-match", Value::LongStr(b"any"));
                for key in 0..8 {
                    table.insert(format!("{at}-{key}"), Value::I32(1));
                }
                b.bind("q", "h", "", &table.finish());
            }
        },
        |b| b.publish("h", "", &keys("x")),
    ),
    (
        "publish, 10,000 exchanges one behind the other with 2048 keys",
        |b| {
            for at in 0..10_000 {
                b.exchange(&at.to_string(), "direct");
                if at > 0 {
                    let (destination, source) = (at.to_string(), (at - 1).to_string());
                    let arguments = Table::default();
                    b.apply(Command::BindExchange(Bind {
                        destination: &destination,
                        source: &source,
                        routing_key: "k",
                        nowait: true,
                        arguments: arguments.as_ref(),
                    }));
                }
            }
        },
        |b| b.publish("0", "k", &keys("x")),
    ),
    (
        "delete an exchange with 100,000 bindings",
        |b| {
            b.exchange("d", "direct");
            b.queue("q", false);
            (0..MANY).for_each(|at| b.bind("q", "d", &at.to_string(), &Table::default()));
        },
        |b| b.apply(Command::DeleteExchange { exchange: "d", if_unused: false, nowait: true }),
    ),
    (
        "delete a queue with 100,000 bindings",
        |b| {
            b.exchange("d", "direct");
            b.queue("q", false);
            (0..MANY).for_each(|at| b.bind("q", "d", &at.to_string(), &Table::default()));
        },
        |b| b.delete_queue("q"),
    ),
    (
        "delete a queue with 10,000 bindings to a consistent-hash exchange",
        |b| {
            b.exchange("c", "x-consistent-hash");
            b.queue("q", false);
            for at in 0..10_000 {
                let mut table = TableBuilder::new();
                table.insert("a", Value::I32(at));
                b.bind("q", "c", "1", &table.finish());
            }
        },
        |b| b.delete_queue("q"),
    ),
    (
        "purge a million messages",
        |b| {
            b.queue("q", false);
            b.fill("q", MILLION);
        },
        |b| b.apply(Command::PurgeQueue { queue: "q", nowait: true }),
    ),
    (
        "delete a queue with a million messages",
        |b| {
            b.queue("q", false);
            b.fill("q", MILLION);
        },
        |b| b.delete_queue("q"),
    ),
    ("ack a million", unacked, |b| b.settle(Outcome::Ack)),
    ("reject a million", unacked, |b| b.settle(Outcome::Reject)),
    ("requeue a million", unacked, |b| b.settle(Outcome::Requeue { failed: true })),
    ("recover a million", unacked, |b| b.apply(Command::Recover { answer: true })),
    ("close a connection with a million unacknowledged", unacked, |b| {
        let connection = b.connection;
        b.timed(|vhost| vhost.close_connection(Broker::now(), connection));
    }),
    (
        "commit 100,000 publishes",
        |b| {
            b.queue("q", false);
            b.apply(Command::TxSelect);
            b.fill("q", MANY);
        },
        |b| b.apply(Command::TxCommit),
    ),
    (
        "close a connection with 100,000 exclusive queues",
        |b| {
            (0..MANY).for_each(|at| b.queue(&at.to_string(), true));
        },
        |b| {
            let connection = b.connection;
            b.timed(|vhost| vhost.close_connection(Broker::now(), connection));
        },
    ),
    (
        "close a channel with 100,000 consumers",
        |b| {
            b.queue("q", false);
            (0..MANY).for_each(|at| b.consume("q", &at.to_string()));
        },
        |b| b.apply(Command::CloseChannel),
    ),
    ("a policy on 100,000 queues, each slice", many_queues, |b| {
        b.timed(|vhost| vhost.start_policy(Broker::now(), PolicyKind::User, policy(".*")));
        while b.timed(|vhost| vhost.apply_policies(Broker::now())) {}
    }),
    (
        "a policy that backtracks on 2,500 long names, each slice",
        |b| {
            (0..2_500).for_each(|at| b.queue(&format!("{}{at}", "a".repeat(240)), false));
        },
        |b| {
            let bomb = policy("^(?=(a+)+$)(a|aa)+\\1b$");
            b.timed(|vhost| vhost.start_policy(Broker::now(), PolicyKind::User, bomb));
            while b.timed(|vhost| vhost.apply_policies(Broker::now())) {}
        },
    ),
    ("try a policy out on 100,000 queues", many_queues, |b| {
        b.timed(|vhost| {
            vhost.dry_run(Broker::now(), PolicyKind::User, PolicyChange::Set(policy(".*")))
        });
    }),
];

fn many_queues(b: &mut Broker) {
    (0..MANY).for_each(|at| b.queue(&at.to_string(), false));
}

fn unacked(b: &mut Broker) {
    b.queue("q", false);
    b.fill("q", MILLION);
    (0..MILLION).for_each(|_| b.apply(Command::Get { queue: "q", no_ack: false }));
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for (name, prepare, measure) in CASES.iter().filter(|(name, ..)| name.contains(&wanted)) {
        let mut broker = Broker::new();
        prepare(&mut broker);
        broker.longest = Duration::ZERO;
        measure(&mut broker);
        let call = broker.longest;
        broker.longest = Duration::ZERO;
        broker.tick();
        println!(
            "{:9.1} ms, then {:6.1} ms  {name}",
            call.as_secs_f64() * 1000.0,
            broker.longest.as_secs_f64() * 1000.0
        );
    }
}

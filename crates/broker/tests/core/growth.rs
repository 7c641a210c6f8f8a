//! Bounds on the memory of queues, exchanges and bindings while memory is short.

use amqp::reply_code::ReplyCode;
use amqp::table::{Table, TableBuilder, Value};
use broker::limits::ARGUMENTS_BYTES_MAX;
use broker::refusal::Refusal;
use broker::time::{Now, Time};
use broker::{Bind, Command, DeclareExchange, DeleteQueue, Vhost, VhostOptions};

use crate::commands::declare_queue;

struct Broker(Vhost);

impl Broker {
    fn execute(&mut self, command: Command<'_>) -> Result<(), Refusal> {
        let now = Now { time: Time::from_micros(1_000_000), wall_us: 1_000_000 };
        let result = self.0.execute(now, command);
        self.0.drain_effects();
        result
    }

    fn queue(&mut self, queue: &str, arguments: &Table) -> Result<(), Refusal> {
        self.execute(declare_queue(queue, arguments))
    }

    fn exchange(&mut self, exchange: &str) -> Result<(), Refusal> {
        self.execute(Command::DeclareExchange(DeclareExchange {
            exchange,
            kind: "fanout",
            passive: false,
            durable: true,
            auto_delete: false,
            internal: false,
            nowait: true,
            arguments: Table::default().as_ref(),
        }))
    }

    fn bind(&mut self, routing_key: &str, arguments: &Table) -> Result<(), Refusal> {
        self.execute(Command::BindQueue(bind(routing_key, arguments)))
    }

    fn unbind(&mut self, routing_key: &str, arguments: &Table) -> Result<(), Refusal> {
        self.execute(Command::UnbindQueue(bind(routing_key, arguments)))
    }
}

fn bind<'a>(routing_key: &'a str, arguments: &'a Table) -> Bind<'a> {
    let arguments = arguments.as_ref();
    Bind { destination: "q", source: "amq.direct", routing_key, nowait: true, arguments }
}

fn of_bytes(bytes: usize) -> Table {
    let mut table = TableBuilder::new();
    table.insert("a", Value::LongStr(&vec![b'x'; bytes]));
    table.finish()
}

#[test]
fn topology_memory_is_counted_and_released() {
    let mut broker = Broker(Vhost::new("/", [3; 32], VhostOptions::default()));
    let empty = broker.0.topology_bytes();
    let large = of_bytes(10_000);
    broker.queue("q", &large).unwrap();
    let with_queue = broker.0.topology_bytes();
    assert!(with_queue > empty + 10_000);
    broker.bind("k", &large).unwrap();
    broker.bind("k", &large).unwrap();
    broker.bind("l", &large).unwrap();
    broker.exchange("x").unwrap();
    let with_bindings = broker.0.topology_bytes();
    assert!((with_queue + 20_000..with_queue + 25_000).contains(&with_bindings), "each once");
    broker.unbind("k", &large).unwrap();
    assert!(broker.0.topology_bytes() < with_bindings - 10_000);
    let delete = DeleteQueue { queue: "q", if_unused: false, if_empty: false, nowait: true };
    broker.execute(Command::DeleteQueue(delete)).unwrap();
    broker
        .execute(Command::DeleteExchange { exchange: "x", if_unused: false, nowait: true })
        .unwrap();
    assert_eq!(broker.0.topology_bytes(), empty);
}

#[test]
fn topology_does_not_grow_beyond_its_share_under_the_memory_alarm() {
    let mut broker = Broker(Vhost::new("/", [3; 32], VhostOptions::default()));
    let (none, large) = (Table::default(), of_bytes(10_000));
    broker.queue("q", &none).unwrap();
    broker.0.set_topology_bytes_max(Some(broker.0.topology_bytes() + 25_000));
    broker.bind("1", &large).unwrap();
    broker.bind("2", &large).unwrap();
    let refused = broker.bind("3", &large).unwrap_err();
    assert_eq!(refused.code, ReplyCode::PreconditionFailed);
    assert!(refused.explanation.starts_with("memory alarm is on"), "{}", refused.explanation);
    assert!(broker.queue("r", &large).is_err());
    // What is there can be declared again, and removed.
    broker.bind("1", &large).unwrap();
    broker.queue("q", &none).unwrap();
    broker.exchange("small").unwrap();
    assert!((0..100).any(|number| broker.exchange(&number.to_string()).is_err()));
    broker.unbind("1", &large).unwrap();
    broker.bind("3", &large).unwrap();
    broker.0.set_topology_bytes_max(None);
    broker.bind("4", &large).unwrap();
}

#[test]
fn arguments_are_limited_in_size() {
    let mut broker = Broker(Vhost::new("/", [3; 32], VhostOptions::default()));
    broker.queue("q", &of_bytes(ARGUMENTS_BYTES_MAX - 100)).unwrap();
    let over = of_bytes(ARGUMENTS_BYTES_MAX);
    for refused in [broker.queue("r", &over), broker.bind("k", &over)] {
        let refused = refused.unwrap_err();
        assert!(refused.explanation.contains("at most 65536 are allowed"), "{refused}");
    }
}

//! The dead-letter map agrees with the real routes of dead letters in any topology, and reports problems as
//! sentences.

use std::collections::BTreeSet;
use std::sync::Arc;

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::access::Access;
use broker::time::{Now, Time};
use broker::{
    ApplyTo, Bind, ChannelNumber, Command, ConnectionId, Consume, Content, DeadLetterMap,
    DeadLetterMapBuilder, DeclareExchange, Definition, DelayPlace, Effect, MapEdge, Name, Outgoing,
    Pattern, Policy, PolicyKey, PolicyKind, PolicyValue, Publish, QueueId, Request, Severity,
    Source, Vhost, VhostOptions, WarningKind,
};
use proptest::prelude::*;

use crate::commands::declare_queue;

struct Broker {
    vhost: Vhost,
    connection: ConnectionId,
    now_ms: u64,
}

/// Arguments: a number, or a text.
type Arguments<'a> = &'a [(&'a str, &'a str)];

fn table(arguments: Arguments<'_>) -> Table {
    let mut table = TableBuilder::new();
    for (key, value) in arguments {
        match value.parse() {
            Ok(number) => table.insert(key, Value::I64(number)),
            Err(_) => table.insert(key, Value::LongStr(value.as_bytes())),
        };
    }
    table.finish()
}

impl Broker {
    fn new() -> Self {
        let mut vhost = Vhost::new("/", [3; 32], VhostOptions::default());
        let access = Access::matching("guest".into(), ".*").unwrap();
        let connection = vhost.open_connection(Arc::new(access), true);
        let mut broker = Self { vhost, connection, now_ms: 1_000_000 };
        broker.apply(Command::OpenChannel);
        broker
    }

    fn now(&self) -> Now {
        Now { time: Time::default().plus_ms(self.now_ms), wall_us: self.now_ms * 1000 }
    }

    fn apply(&mut self, command: Command<'_>) {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        self.vhost.apply(self.now(), self.connection, request);
        self.finish();
    }

    fn finish(&mut self) {
        self.vhost.durable(self.vhost.last_lsn());
        self.vhost.flush();
        for effect in self.vhost.drain_effects() {
            if let Effect::Send { outgoing: Outgoing::ChannelClose { refusal, .. }, .. } = effect {
                panic!("{refusal}");
            }
        }
    }

    fn queue(&mut self, queue: &str, arguments: Arguments<'_>) {
        self.apply(declare_queue(queue, &table(arguments)));
    }

    fn exchange(&mut self, exchange: &str, kind: &str, arguments: Arguments<'_>) {
        self.apply(Command::DeclareExchange(DeclareExchange {
            exchange,
            kind,
            passive: false,
            durable: true,
            auto_delete: false,
            internal: false,
            nowait: true,
            arguments: table(arguments).as_ref(),
        }));
    }

    fn bind(&mut self, source: &str, routing_key: &str, destination: &str) {
        self.bind_with(source, routing_key, destination, &[]);
    }

    fn bind_with(&mut self, source: &str, routing_key: &str, destination: &str, a: Arguments<'_>) {
        let arguments = table(a);
        let bind =
            Bind { destination, source, routing_key, nowait: true, arguments: arguments.as_ref() };
        let is_queue = self.vhost.queue(destination).is_some();
        self.apply(if is_queue { Command::BindQueue(bind) } else { Command::BindExchange(bind) });
    }

    fn publish(&mut self, exchange: &str, routing_key: &str, header: Option<&str>) {
        let headers: Vec<(&str, &str)> = header.map(|value| ("h", value)).into_iter().collect();
        self.publish_with(exchange, routing_key, &headers);
    }

    fn publish_with(&mut self, exchange: &str, routing_key: &str, headers: Arguments<'_>) {
        let is_empty = headers.is_empty();
        let headers = table(headers);
        let headers = (!is_empty).then(|| headers.as_ref());
        let properties = Properties { headers, ..Properties::default() };
        let mut bytes = Vec::new();
        properties.encode(&mut bytes);
        let properties_len = bytes.len();
        self.apply(Command::Publish(Publish {
            exchange: exchange.as_bytes().into(),
            routing_key: routing_key.as_bytes().into(),
            mandatory: false,
            content: Content::Framed { bytes: &bytes, properties_len, body_start: properties_len },
        }));
    }

    fn policy(&mut self, kind: PolicyKind, name: &str, on: &str, key: &str, value: &str) {
        let value = value
            .parse()
            .map_or_else(|_| PolicyValue::Text(value.to_owned()), PolicyValue::Integer);
        let definition = Definition::parse(vec![(key.to_owned(), value)], kind).unwrap();
        let pattern = Pattern::new(on).unwrap();
        let policy = Policy {
            name: name.into(),
            pattern,
            apply_to: ApplyTo::All,
            priority: 0.0,
            definition,
        };
        self.vhost.set_policy(self.now(), kind, policy);
        self.finish();
    }

    fn consume(&mut self, queue: &str) {
        self.apply(Command::Consume(Consume {
            queue,
            consumer_tag: "",
            no_ack: false,
            exclusive: false,
            nowait: true,
            arguments: table(&[]).as_ref(),
        }));
    }

    fn map(&self) -> DeadLetterMap {
        let queues: Vec<QueueId> = self.vhost.queues().map(|(id, _)| id).collect();
        let mut taking = DeadLetterMapBuilder::default();
        let mut rest = queues.as_slice();
        while !rest.is_empty() {
            rest = &rest[taking.sources(&self.vhost, rest)..];
        }
        let exchanges: Vec<Name> =
            self.vhost.exchanges().map(|(_, exchange)| exchange.name.clone()).collect();
        let mut rest = exchanges.as_slice();
        while !rest.is_empty() {
            rest = &rest[taking.delayed_exchanges(&self.vhost, rest)..];
        }
        taking.targets(&self.vhost, &taking.missing());
        taking.end()
    }

    /// The warnings, as `severity kind: text`.
    fn told(&self) -> Vec<String> {
        let warnings = self.map().warnings.into_iter();
        warnings
            .map(|w| format!("{} {}: {}", w.severity.as_str(), w.kind.as_str(), w.text))
            .collect()
    }

    fn told_of(&self, kind: WarningKind) -> Vec<String> {
        let kind = format!(" {}: ", kind.as_str());
        self.told().into_iter().filter(|told| told.contains(&kind)).collect()
    }
}

/// The edge of a queue: the queues it leads to, and whether that is certain.
fn edge<'a>(map: &'a DeadLetterMap, from: &str) -> (&'a MapEdge, Vec<&'a str>, bool) {
    let edge = map.edges.iter().find(|edge| *map.from(edge).unwrap().name == *from).unwrap();
    let route = map.route(edge).unwrap();
    (edge, route.to.iter().map(|to| &*map.queues[*to].name).collect(), route.is_certain)
}

fn leads(broker: &Broker, from: &str) -> (Vec<String>, bool) {
    let map = broker.map();
    let (_, to, is_certain) = edge(&map, from);
    (to.into_iter().map(str::to_owned).collect(), is_certain)
}

const DLX: &str = "x-dead-letter-exchange";
const DLRK: &str = "x-dead-letter-routing-key";
const TTL: &str = "x-message-ttl";

#[test]
fn map_names_sources_and_leaves_out_other_queues() {
    let mut broker = Broker::new();
    broker.exchange("x", "fanout", &[]);
    for queue in ["dead", "other"] {
        broker.queue(queue, &[]);
    }
    broker.bind("x", "", "dead");
    broker.queue("argument", &[(DLX, "x"), (DLRK, "k")]);
    broker.queue("policy", &[]);
    broker.policy(PolicyKind::User, "p", "^policy$", "dead-letter-exchange", "x");
    let map = broker.map();
    let names: Vec<&str> = map.queues.iter().map(|queue| &*queue.name).collect();
    assert_eq!(names, ["argument", "dead", "policy"]);
    let given = |from| -> Vec<_> {
        let given = edge(&map, from).0.given.iter();
        given.map(|by| (by.key, by.source, by.name.as_deref())).collect()
    };
    assert_eq!(
        given("argument"),
        [
            (PolicyKey::DeadLetterExchange, Source::Argument, None),
            (PolicyKey::DeadLetterRoutingKey, Source::Argument, None),
        ]
    );
    assert_eq!(given("policy"), [(PolicyKey::DeadLetterExchange, Source::Policy, Some("p"))]);
    // Both have the same route, with any key.
    assert_eq!((map.routes.len(), map.exchanges.len()), (1, 1));
    assert_eq!(leads(&broker, "policy"), (vec!["dead".to_owned()], true));
    assert_eq!(map.sources(1)[1], (vec![0], 2));
    assert_eq!(map.sources(5)[1], (vec![0, 1], 2));
}

/// The delays, as `place -> queues, messages, milliseconds from now to the next`.
fn delays(broker: &Broker) -> Vec<String> {
    let map = broker.map();
    let name = |at: usize| map.queues[at].name.to_string();
    let told = map.delays.iter().map(|delay| {
        let place = match &delay.at {
            DelayPlace::Exchange(exchange) => exchange.to_string(),
            DelayPlace::Retry(queue) | DelayPlace::Schedule(queue) => name(*queue),
        };
        let to: Vec<String> = delay.to.iter().map(|to| name(*to)).collect();
        let next_ms = delay.next_at.map(|at| at.micros_since(broker.now().time) / 1000);
        let certain = if delay.is_certain { "" } else { "?" };
        let anywhere = if delay.is_anywhere { " anywhere" } else { "" };
        let kind = delay.at.as_str();
        format!("{kind} {place} -> {to:?}{certain}{anywhere}, {}, {next_ms:?}", delay.messages)
    });
    told.collect()
}

#[test]
fn delayed_exchanges_lead_to_what_is_bound() {
    let mut broker = Broker::new();
    broker.exchange("direct", "x-delayed-message", &[("x-delayed-type", "direct")]);
    broker.exchange("fanout", "x-delayed-message", &[("x-delayed-type", "fanout")]);
    broker.exchange("plain", "fanout", &[]);
    for queue in ["a", "b", "other"] {
        broker.queue(queue, &[]);
        broker.bind("direct", queue, queue);
    }
    broker.bind("fanout", "", "plain");
    broker.bind("plain", "", "b");
    for delay_ms in ["900", "300", "0"] {
        broker.publish_with("direct", "a", &[("x-delay", delay_ms)]);
    }
    assert_eq!(
        delays(&broker),
        [
            r#"exchange direct -> ["a", "b", "other"]?, 2, Some(300)"#,
            r#"exchange fanout -> ["b"], 0, None"#
        ]
    );
    // Nothing dies.
    let map = broker.map();
    assert_eq!((map.routes.len(), map.edges.len(), map.warnings.len()), (0, 0, 0));
    assert_eq!(map.queues.len(), 3);
}

#[test]
fn queues_with_retries_and_delivery_times_are_delays() {
    let mut broker = Broker::new();
    let retry = [("x-delayed-retry-type", "all"), ("x-delayed-retry-schedule", "1s,5s")];
    broker.queue("retry", &retry);
    broker.queue("plain", &[]);
    broker.queue("disabled", &[("x-delayed-retry-type", "disabled")]);
    broker.queue("dead", &[(DLX, ""), (DLRK, "retry"), (TTL, "5000")]);
    let nothing = r#"retry retry -> ["retry"], 0, None"#;
    assert_eq!(delays(&broker), [nothing]);
    broker.publish_with("", "plain", &[("x-opt-delivery-delay", "700")]);
    broker.publish_with("", "retry", &[("x-opt-delivery-delay", "200")]);
    broker.publish_with("", "retry", &[("x-opt-delivery-delay", "100")]);
    broker.publish("", "dead", None);
    assert_eq!(
        delays(&broker),
        [
            nothing,
            r#"schedule plain -> ["plain"], 1, Some(700)"#,
            r#"schedule retry -> ["retry"], 2, Some(100)"#
        ]
    );
    let map = broker.map();
    let first = edge(&map, "dead").0.from;
    let deadline = broker.now().time.plus_ms(5000);
    assert_eq!(map.queues[first].first_deadline, Some(deadline));
}

#[test]
fn own_keys_are_binding_keys_or_the_queue_name() {
    let mut broker = Broker::new();
    broker.exchange("in", "direct", &[]);
    broker.exchange("x", "direct", &[]);
    for queue in ["unbound", "bound", "anything"] {
        broker.queue(queue, &[(DLX, "x")]);
    }
    for queue in ["a", "b", "c"] {
        broker.queue(queue, &[]);
        broker.bind("x", queue, queue);
    }
    broker.queue("named", &[]);
    broker.bind("x", "unbound", "named");
    broker.bind("in", "a", "bound");
    broker.bind("in", "nothing", "bound");
    broker.bind("amq.topic", "any.*", "anything");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(leads(&broker, "unbound"), (names(&["named"]), false));
    assert_eq!(leads(&broker, "bound"), (names(&["a"]), false));
    assert_eq!(leads(&broker, "anything"), (names(&["a", "b", "c", "named"]), false));
    let map = broker.map();
    let own = |from| edge(&map, from).0.own_keys.as_ref().map(|keys| keys.len());
    assert_eq!((own("unbound"), own("bound"), own("anything")), (Some(1), Some(2), None));
    assert_eq!(
        broker.told_of(WarningKind::Unroutable),
        [
            "warning unroutable: Dead letters of 'bound' with the key 'nothing' are dropped: exchange \
         'x' routes this key to no queue."
        ]
    );
}

#[test]
fn dead_ends_are_reported() {
    let mut broker = Broker::new();
    broker.exchange("x", "direct", &[]);
    broker.exchange("bare", "fanout", &[]);
    broker.queue("other", &[]);
    broker.bind("x", "k", "other");
    broker.queue("a", &[(DLX, "gone")]);
    let keeps = [("x-queue-type", "quorum"), ("x-overflow", "reject-publish")];
    let keeps = [keeps[0], keeps[1], ("x-dead-letter-strategy", "at-least-once"), (DLX, "gone")];
    broker.queue("b", &keeps);
    broker.queue("c", &[(DLX, "x"), (DLRK, "wrong")]);
    broker.queue("d", &[(DLX, "x")]);
    broker.queue("e", &[(DLX, "bare")]);
    broker.queue("f", &[(DLX, ""), (DLRK, "nobody")]);
    broker.queue("right", &[(DLX, "x"), (DLRK, "k")]);
    broker.queue("anywhere", &[(DLX, "")]);
    broker.bind("amq.fanout", "", "anywhere");
    assert_eq!(
        broker.told()[..6],
        [
            "error exchange_missing: Dead letters of 'a' are dropped: the dead-letter exchange 'gone' \
         does not exist.",
            "error exchange_missing: Dead letters of 'b' wait in their queue: the dead-letter exchange \
         'gone' does not exist.",
            "error unroutable: Dead letters of 'c' are dropped: exchange 'x' routes the key 'wrong' to \
         no queue.",
            "error unroutable: Dead letters of 'd' are dropped: they keep their key, 'd', which \
         exchange 'x' routes to no queue.",
            "error unroutable: Dead letters of 'e' are dropped: exchange 'bare' has no route to any \
         queue.",
            "error unroutable: Dead letters of 'f' are dropped: the default exchange routes the key \
         'nobody' to no queue.",
        ]
    );
    assert_eq!(broker.told().len(), 6 + 1, "{:?}", broker.told());
    broker.queue("too", &[(DLX, "gone")]);
    broker.queue("two", &[(DLX, "gone")]);
    let missing = broker.map().warnings.swap_remove(0);
    assert_eq!(missing.queues.len(), 3);
    assert!(
        missing.text.starts_with("Dead letters of 'a' and 2 others are dropped: "),
        "{missing:?}"
    );
    broker.exchange("gone", "fanout", &[]);
    broker.bind("gone", "", "other");
    assert!(broker.told_of(WarningKind::ExchangeMissing).is_empty());
}

#[test]
fn loops_are_reported_by_cause() {
    let mut broker = Broker::new();
    broker.queue("circle", &[(TTL, "1"), (DLX, "")]);
    broker.queue("a", &[(TTL, "1"), (DLX, ""), (DLRK, "b")]);
    broker.queue("b", &[("x-max-length", "5"), (DLX, ""), (DLRK, "a")]);
    broker.queue("work", &[(DLX, ""), (DLRK, "wait")]);
    broker.queue("wait", &[(TTL, "1"), (DLX, ""), (DLRK, "work")]);
    let quorum = ("x-queue-type", "quorum");
    broker.queue("qwork", &[quorum, (DLX, ""), (DLRK, "qwait")]);
    broker.queue("qwait", &[quorum, (TTL, "1"), (DLX, ""), (DLRK, "qwork")]);
    broker.queue("straight", &[(TTL, "1"), (DLX, ""), (DLRK, "work")]);
    assert_eq!(
        broker.told_of(WarningKind::Loop),
        [
            "warning loop: Messages go in a cycle without a rejection ('a' \u{2192} 'b' \u{2192} 'a'); \
         messages that would return to a queue in which they died are dropped.",
            "warning loop: Messages may go in a cycle without a rejection ('circle' \u{2192} 'circle'); \
         messages that would return to a queue in which they died are dropped.",
            "info loop: Rejected messages go in a cycle ('qwait' \u{2192} 'qwork' \u{2192} 'qwait'); \
         messages that exceed a delivery limit are dropped if they would return to a queue in which \
         they died.",
            "info loop: Messages go in a cycle ('wait' \u{2192} 'work' \u{2192} 'wait') each time a \
         consumer rejects them.",
        ]
    );
    // With a limit of its own the loop is meant to end there.
    broker.policy(PolicyKind::User, "p", "^qwork$", "delivery-limit", "3");
    assert_eq!(
        broker
            .map()
            .warnings
            .iter()
            .filter(|w| w.kind == WarningKind::Loop)
            .map(|w| w.severity)
            .collect::<Vec<_>>(),
        [Severity::Warning, Severity::Warning, Severity::Warning, Severity::Info]
    );
}

#[test]
fn targets_with_shorter_ttl_limit_or_no_consumer_are_reported() {
    let mut broker = Broker::new();
    broker.queue("source", &[(TTL, "60000"), (DLX, ""), (DLRK, "short")]);
    broker.queue("endless", &[(DLX, ""), (DLRK, "short")]);
    broker.queue("short", &[(TTL, "1000")]);
    assert_eq!(
        broker.told(),
        [
            "warning shorter_ttl: Messages in 'short' are dropped after 1 s, sooner than the 1 min of \
         'source', whose dead letters arrive there."
        ]
    );
    broker.policy(PolicyKind::Operator, "o", "^source$", "message-ttl", "1000");
    assert_eq!(
        broker.told(),
        ["info shorter_ttl: Messages in 'short' are dropped after 1 s, also dead letters of \
         'endless' and another queue."]
    );
    broker.policy(PolicyKind::User, "p", "^endless$", "message-ttl", "500");
    assert!(broker.told().is_empty(), "{:?}", broker.told());
    broker.policy(PolicyKind::User, "p", "^short$", "max-length", "10");
    assert_eq!(
        broker.told_of(WarningKind::Limit),
        [
            "warning limit: With more than 10 messages in 'short', the oldest are dropped, also dead \
         letters of 'endless' and another queue."
        ]
    );
    // What is pushed out goes on.
    broker.policy(PolicyKind::User, "p", "^short$", "dead-letter-exchange", "amq.fanout");
    assert!(broker.told_of(WarningKind::Limit).is_empty());

    let mut broker = Broker::new();
    broker.queue("source", &[(DLX, ""), (DLRK, "dead")]);
    broker.queue("dead", &[("x-max-length", "1"), ("x-overflow", "reject-publish")]);
    assert_eq!(
        broker.told(),
        [
            "warning limit: 'dead' is full with 1 message and then refuses dead letters of 'source', \
         which are dropped.",
            "info no_consumer: 'dead' receives dead letters of 'source' and has no consumer.",
        ]
    );
    broker.publish("", "dead", None);
    assert_eq!(
        broker.told_of(WarningKind::NoConsumer),
        [
            "warning no_consumer: 1 message waits in 'dead', which receives dead letters of 'source' and \
         has no consumer."
        ]
    );
    broker.consume("dead");
    assert!(broker.told_of(WarningKind::NoConsumer).is_empty());
    // Quorum queues take dead letters over that limit.
    broker.queue("source2", &[(DLX, ""), (DLRK, "quorum")]);
    let limited = [("x-max-length", "1"), ("x-overflow", "reject-publish")];
    broker.queue("quorum", &[limited[0], limited[1], ("x-queue-type", "quorum")]);
    assert_eq!(broker.told_of(WarningKind::Limit).len(), 1);
}

#[test]
fn shared_dead_letter_exchange_is_routed_once() {
    let mut broker = Broker::new();
    broker.exchange("x", "fanout", &[]);
    for number in 0..1000 {
        let name = format!("q{number}");
        broker.queue(&name, &[(DLX, "x")]);
        broker.bind("x", "", &name);
    }
    let map = broker.map();
    assert_eq!((map.edges.len(), map.routes.len(), map.is_whole), (1000, 1, true));
    let loops = map.warnings.iter().filter(|w| w.kind == WarningKind::Loop).count();
    assert_eq!(loops, 1, "one loop for all");
}

#[test]
fn map_too_large_is_marked_as_cut() {
    let mut broker = Broker::new();
    broker.exchange("x", "headers", &[]);
    broker.exchange("in", "direct", &[]);
    for number in 0..1100 {
        let name = format!("q{number}");
        broker.queue(&name, &[]);
        broker.bind_with("x", "", &name, &[("h", &name)]);
    }
    // As many routes as there are keys: an exchange behind looks at them.
    broker.exchange("y", "direct", &[]);
    broker.bind("y", "#", "x");
    for number in 0..1000 {
        broker.queue(&format!("s{number}"), &[(DLX, "y"), (DLRK, "#")]);
    }
    assert!(broker.map().is_whole, "one key is one route");
    for number in 0..1000 {
        let key = format!("k{number}");
        broker.bind("y", &key, "x");
        broker.queue(&format!("t{number}"), &[(DLX, "y"), (DLRK, &key)]);
    }
    let map = broker.map();
    assert!(!map.is_whole);
    assert_eq!(map.edges.len(), 2000, "edges are all there");
    assert!(map.warnings.iter().all(|warning| warning.kind != WarningKind::Unroutable));
}

const EXCHANGES: [(&str, &str); 8] = [
    ("d", "direct"),
    ("e", "direct"),
    ("f", "fanout"),
    ("h", "headers"),
    ("t", "topic"),
    ("m", "x-modulus-hash"),
    ("c", "x-consistent-hash"),
    ("r", "x-local-random"),
];

const KEYS: [&str; 6] = ["", "a", "b", "a.b", "s0", "q1"];

#[derive(Clone, Debug)]
struct Topology {
    /// Alternate exchanges.
    alternates: Vec<Option<usize>>,
    /// From an exchange with a key to a queue, or to an exchange.
    bindings: Vec<(usize, usize, usize)>,
    /// Bindings of sources: exchange, key, source.
    entries: Vec<(usize, usize, usize)>,
    /// Dead-letter exchange and key of each source; beyond the exchanges are the default one and none.
    sources: Vec<(usize, Option<usize>)>,
}

fn topology() -> impl Strategy<Value = Topology> {
    let alternates = prop::collection::vec(prop::option::weighted(0.3, 0_usize..8), 8);
    let bindings = prop::collection::vec((0_usize..8, 0_usize..6, 0_usize..12), 0..20);
    let entries = prop::collection::vec((0_usize..8, 0_usize..6, 0_usize..3), 0..4);
    let source = (0_usize..10, prop::option::of(0_usize..6));
    let sources = prop::collection::vec(source, 3);
    (alternates, bindings, entries, sources).prop_map(|(alternates, bindings, entries, sources)| {
        Topology { alternates, bindings, entries, sources }
    })
}

impl Topology {
    fn build(&self) -> Broker {
        let mut broker = Broker::new();
        for ((name, kind), alternate) in EXCHANGES.iter().zip(&self.alternates) {
            let alternate = alternate.map(|at| ("alternate-exchange", EXCHANGES[at].0));
            broker.exchange(name, kind, &alternate.into_iter().collect::<Vec<_>>());
        }
        for queue in ["q0", "q1", "q2", "q3"] {
            broker.queue(queue, &[]);
        }
        for (at, (exchange, key)) in self.sources.iter().enumerate() {
            let exchange = EXCHANGES.get(*exchange).map_or_else(
                || if *exchange == EXCHANGES.len() { "" } else { "none" },
                |(name, _)| name,
            );
            let mut arguments = vec![(TTL, "5"), (DLX, exchange)];
            arguments.extend(key.map(|key| (DLRK, KEYS[key])));
            broker.queue(&format!("s{at}"), &arguments);
        }
        for (from, key, to) in &self.bindings {
            let to = EXCHANGES.get(*to).map_or_else(|| format!("q{}", to - 8), |x| x.0.to_owned());
            Self::bind(&mut broker, *from, *key, &to);
        }
        for (from, key, source) in &self.entries {
            Self::bind(&mut broker, *from, *key, &format!("s{source}"));
        }
        broker
    }

    /// A binding as its exchange can have it.
    fn bind(broker: &mut Broker, from: usize, key: usize, to: &str) {
        let (from, kind) = EXCHANGES[from];
        let arguments: &[(&str, &str)] = match (kind, key) {
            ("headers", 0) => &[],
            ("headers", 1) => &[("x-match", "any")],
            ("headers", _) => &[("h", "v")],
            _ => &[],
        };
        let key = match kind {
            "x-consistent-hash" => "1",
            "x-local-random" => "",
            "topic" => ["#", "a", "*", "a.#", "s0", "q1"][key],
            _ => KEYS[key],
        };
        broker.bind_with(from, key, to, arguments);
    }
}

fn check(topology: &Topology, published: &[(usize, usize, bool)]) -> Result<(), TestCaseError> {
    let mut broker = topology.build();
    let map = broker.map();
    prop_assert!(map.is_whole);
    let queues = ["q0", "q1", "q2", "q3", "s0", "s1", "s2"];
    let lengths = |broker: &Broker| {
        queues.map(|queue| {
            let queue = broker.vhost.queue(queue).unwrap();
            (queue.message_count(), queue.counters.entered)
        })
    };
    let sources = ["s0", "s1", "s2"];
    let all = published.iter().flat_map(|one| sources.map(|source| (one, source)));
    for ((exchange, key, has_header), source) in all {
        // Through an exchange, or straight to a source.
        let (exchange, key) = match EXCHANGES.get(*exchange) {
            Some((name, _)) => (*name, KEYS[*key]),
            None => ("", sources[key % 3]),
        };
        broker.publish(exchange, key, has_header.then_some("v"));
        if broker.vhost.queue(source).unwrap().message_count() > 0 {
            // One queue at a time: what reaches the others is purged before it dies.
            for other in queues.into_iter().filter(|other| *other != source) {
                broker.apply(Command::PurgeQueue { queue: other, nowait: true });
            }
            let before = lengths(&broker);
            let count = before[queues.iter().position(|q| *q == source).unwrap()].0;
            broker.now_ms += 6;
            broker.vhost.tick(broker.now());
            broker.finish();
            let after = lengths(&broker);
            let (edge, to, is_certain) = edge(&map, source);
            let route = map.route(edge).unwrap();
            let reached: BTreeSet<&str> = queues
                .into_iter()
                .enumerate()
                .filter(|(at, _)| after[*at].1 > before[*at].1)
                .map(|(_, queue)| queue)
                .collect();
            // A cycle leaves out the queue itself.
            let told: BTreeSet<&str> = to.iter().copied().filter(|to| *to != source).collect();
            let has_own_key = map.from(edge).unwrap().routing_key().is_none();
            // Messages that are published straight to a queue which is bound have another key.
            let is_foreign = has_own_key
                && edge.own_keys.as_ref().is_some_and(|keys| !keys.iter().any(|own| **own == *key));
            if count == 1 && !route.is_anywhere && !is_foreign {
                prop_assert!(reached.is_subset(&told), "{source}: {reached:?} of {told:?}");
                if is_certain {
                    prop_assert_eq!(&reached, &told, "{}", source);
                }
            }
        }
        for queue in queues {
            broker.apply(Command::PurgeQueue { queue, nowait: true });
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Dead letters go where the map says, and nowhere else.
    #[test]
    fn map_agrees_with_dead_lettering(
        topology in topology(),
        published in prop::collection::vec((0_usize..12, 0_usize..6, any::<bool>()), 1..12),
    ) {
        check(&topology, &published)?;
    }
}

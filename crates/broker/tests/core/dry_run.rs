//! Dry runs agree with the real effects of a policy: for any backlog and any policy, in memory and on disk.

use std::sync::Arc;

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::access::Access;
use broker::dead_letter::DeathReason;
use broker::page::Paging;
use broker::time::{Now, Time};
use broker::{
    ApplyTo, ChannelNumber, Command, ConnectionId, Content, Definition, DeliveryTag, DryRun,
    Effect, Fate, Outcome, Outgoing, Pattern, Policy, PolicyChange, PolicyKind, PolicyValue,
    Publish, Request, Span, Vhost, VhostOptions,
};
use proptest::prelude::*;

use crate::commands::declare_queue;
use crate::disk::{Disk, PageStore, SMALL_PAGES};

struct Broker {
    vhost: Vhost,
    connection: ConnectionId,
    now_ms: u64,
    page_store: PageStore,
    disk: Disk,
    got: Vec<DeliveryTag>,
}

impl Broker {
    fn new(paging: Paging) -> Self {
        let options = VhostOptions { paging, ..VhostOptions::default() };
        let mut vhost = Vhost::new("/", [3; 32], options);
        let access = Access::matching("guest".into(), ".*").unwrap();
        let connection = vhost.open_connection(Arc::new(access), true);
        let (page_store, disk, got) = (PageStore::default(), Disk::default(), Vec::new());
        let mut broker = Self { vhost, connection, now_ms: 1_000_000, page_store, disk, got };
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
        loop {
            self.vhost.durable(self.vhost.last_lsn());
            self.vhost.flush();
            let mut tasks = Vec::new();
            for effect in self.vhost.drain_effects() {
                self.disk.write(&effect);
                match effect {
                    Effect::Page(task) => tasks.push(task),
                    Effect::Send { outgoing: Outgoing::GetOk { delivery, .. }, .. } => {
                        self.got.push(delivery.tag);
                    }
                    Effect::Send { outgoing: Outgoing::ChannelClose { refusal, .. }, .. } => {
                        panic!("{refusal}");
                    }
                    _ => {}
                }
            }
            if tasks.is_empty() {
                return;
            }
            let now = self.now();
            for task in tasks {
                self.page_store.perform(task, &mut self.vhost, now, &mut self.disk);
            }
        }
    }

    /// Lets everything happen that is due by then.
    fn sleep(&mut self, millis: u64) {
        let end = self.now_ms + millis;
        loop {
            let end_time = Time::default().plus_ms(end);
            let Some(wake) = self.vhost.next_wake().filter(|wake| *wake <= end_time) else { break };
            self.now_ms = self.now_ms.max(wake.as_micros().div_ceil(1000));
            self.vhost.tick(self.now());
            self.finish();
        }
        self.now_ms = end;
    }

    fn declare(&mut self, queue: &str, arguments: &Table) {
        self.apply(declare_queue(queue, arguments));
    }

    fn publish(&mut self, expiration_ms: Option<u64>, size: usize, priority: Option<u8>) {
        let expiration = expiration_ms.map(|millis| millis.to_string());
        let properties = Properties {
            delivery_mode: Some(2),
            expiration: expiration.as_ref().map(|text| text.as_bytes()),
            priority,
            ..Properties::default()
        };
        let mut bytes = Vec::new();
        properties.encode(&mut bytes);
        let properties_len = bytes.len();
        bytes.resize(properties_len + size, b'x');
        self.apply(Command::Publish(Publish {
            exchange: b"".into(),
            routing_key: b"q".into(),
            mandatory: false,
            content: Content::Framed { bytes: &bytes, properties_len, body_start: properties_len },
        }));
    }

    fn get(&mut self) {
        self.apply(Command::Get { queue: "q", no_ack: false });
    }

    /// Gives the message back that was got last.
    fn requeue(&mut self) {
        if let Some(tag) = self.got.pop() {
            let outcome = Outcome::Requeue { failed: false };
            self.apply(Command::Settle { tag, multiple: false, outcome });
        }
    }

    fn set(&mut self, policy: Policy) {
        self.vhost.set_policy(self.now(), PolicyKind::User, policy);
        self.finish();
        self.sleep(0);
    }

    fn died(&self, reason: DeathReason) -> u64 {
        let deaths = self.vhost.queue("q").unwrap().counters.deaths();
        deaths.dead_lettered.get(reason) + deaths.dropped.get(reason).total()
    }
}

fn policy(entries: &[(&str, PolicyValue)]) -> Option<Policy> {
    let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
    let definition = Definition::parse(entries.collect(), PolicyKind::User).ok()?;
    let pattern = Pattern::new("^q$").unwrap();
    Some(Policy { name: "p".into(), pattern, apply_to: ApplyTo::All, priority: 0.0, definition })
}

#[derive(Clone, Debug)]
enum Step {
    Publish { expiration_ms: Option<u64>, size: usize, priority: Option<u8>, times: u64 },
    Get,
    Requeue,
    Sleep(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let expiration = prop::option::weighted(0.3, 0_u64..300);
    let priority = prop::option::of(0_u8..4);
    prop_oneof![
        8 => (expiration, 0_usize..40, priority, 1_u64..20).prop_map(
            |(expiration_ms, size, priority, times)| Step::Publish {
                expiration_ms, size, priority, times
            }
        ),
        2 => Just(Step::Get),
        1 => Just(Step::Requeue),
        3 => (1_u64..100).prop_map(Step::Sleep),
    ]
}

fn entries() -> impl Strategy<Value = Vec<(&'static str, PolicyValue)>> {
    let number = |key, range: std::ops::Range<i64>| {
        prop::option::of(range).prop_map(move |value| Some((key, PolicyValue::Integer(value?))))
    };
    let word = |key, words: &'static [&'static str]| {
        let word = prop::option::weighted(0.3, prop::sample::select(words));
        word.prop_map(move |word| Some((key, PolicyValue::Text(word?.to_owned()))))
    };
    let entries = (
        number("message-ttl", 0..400),
        number("max-length", 0..60),
        number("max-length-bytes", 0..1500),
        word("overflow", &["drop-head", "reject-publish"]),
        word("expiry-order", &["deadline", "head"]),
        word("dead-letter-exchange", &["", "nowhere"]),
        word("dead-letter-routing-key", &["dead"]),
    );
    entries.prop_map(|(a, b, c, d, e, f, g)| [a, b, c, d, e, f, g].into_iter().flatten().collect())
}

fn contains(span: Span, value: u64) -> bool {
    (span.least..=span.most).contains(&value)
}

fn compare(
    kind: u8,
    paging: Paging,
    steps: &[Step],
    before: &[(&'static str, PolicyValue)],
    after: &[(&'static str, PolicyValue)],
) -> Result<(), TestCaseError> {
    let mut broker = Broker::new(paging);
    let mut arguments = TableBuilder::new();
    match kind {
        0 => arguments.insert("x-queue-type", Value::LongStr(b"quorum")),
        1 => arguments.insert("x-max-priority", Value::I32(3)),
        _ => arguments.insert("x-queue-type", Value::LongStr(b"classic")),
    };
    broker.declare("q", &arguments.finish());
    broker.declare("dead", &Table::default());
    if let Some(policy) = policy(before) {
        broker.set(policy);
    }
    for step in steps {
        match step {
            Step::Publish { expiration_ms, size, priority, times } => {
                (0..*times).for_each(|_| broker.publish(*expiration_ms, *size, *priority));
            }
            Step::Get => broker.get(),
            Step::Requeue => broker.requeue(),
            Step::Sleep(millis) => broker.sleep(*millis),
        }
    }
    broker.sleep(0);
    let Some(policy) = policy(after) else { return Ok(()) };
    let change = PolicyChange::Set(policy.clone());
    let told = broker.vhost.dry_run(broker.now(), PolicyKind::User, change).unwrap();
    prop_assert_eq!(told.queues_matched, 1);
    let settings = broker.vhost.queue("q").unwrap().settings.clone();
    let died =
        |broker: &Broker| [DeathReason::Expired, DeathReason::Maxlen].map(|r| broker.died(r));
    let (died_before, dead_before) = (died(&broker), dead(&broker));
    broker.set(policy);
    let [expired, evicted] = died(&broker);
    let (expired, evicted) = (expired - died_before[0], evicted - died_before[1]);
    prop_assert!(contains(told.expired(), expired), "{expired} expired: {told:?}");
    prop_assert!(contains(told.evicted(), evicted), "{evicted} evicted: {told:?}");
    let dead_lettered = dead(&broker) - dead_before;
    let routed = broker.vhost.queue("q").unwrap().settings.dead_letter.as_ref();
    let has_way = routed.is_some_and(|to| to.routing_key.is_some());
    if has_way && told.leaving(Fate::DeadLettered).is_exact() {
        prop_assert_eq!(told.leaving(Fate::DeadLettered).least, dead_lettered);
    }
    let changed = settings != broker.vhost.queue("q").unwrap().settings;
    prop_assert_eq!(changed, told.queues.len() == 1);
    Ok(())
}

fn dead(broker: &Broker) -> u64 {
    broker.vhost.queue("dead").unwrap().message_count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..Default::default() })]

    #[test]
    fn dry_run_agrees_with_the_change(
        kind in 0_u8..3,
        steps in prop::collection::vec(step(), 1..30),
        before in entries(),
        after in entries(),
    ) {
        compare(kind, Paging::default(), &steps, &before, &after)?;
    }

    #[test]
    fn dry_run_bounds_messages_in_pages(
        steps in prop::collection::vec(step(), 1..60),
        before in entries(),
        after in entries(),
    ) {
        compare(2, Paging { page_messages: 4, ..SMALL_PAGES }, &steps, &before, &after)?;
    }
}

fn dry_run(broker: &Broker, entries: &[(&str, PolicyValue)]) -> DryRun {
    let change = PolicyChange::Set(policy(entries).unwrap());
    broker.vhost.dry_run(broker.now(), PolicyKind::User, change).unwrap()
}

/// Ten messages each millisecond, for so long.
fn with_backlog(paging: Paging, millis: u64) -> Broker {
    let mut broker = Broker::new(paging);
    broker.declare("q", &Table::default());
    for _ in 0..millis {
        (0..10).for_each(|_| broker.publish(None, 10, None));
        broker.sleep(1);
    }
    broker
}

#[test]
fn dry_run_is_exact_without_pages() {
    let broker = with_backlog(Paging::default(), 300);
    for (entries, expired, evicted) in [
        (vec![("message-ttl", PolicyValue::Integer(100))], 2010, 0),
        (vec![("max-length", PolicyValue::Integer(7))], 0, 2993),
        (vec![("max-length-bytes", PolicyValue::Integer(75))], 0, 2993),
        (
            vec![
                ("message-ttl", PolicyValue::Integer(100)),
                ("max-length", PolicyValue::Integer(7)),
            ],
            2010,
            983,
        ),
    ] {
        let told = dry_run(&broker, &entries);
        let exactly = |number| Span { least: number, most: number };
        assert_eq!((told.expired(), told.evicted()), (exactly(expired), exactly(evicted)));
    }
}

#[test]
fn dry_run_of_a_ttl_is_uncertain_by_one_page_at_most() {
    let paging = Paging::beyond(64 * 1024);
    let mut broker = with_backlog(paging, 2000);
    assert!(broker.page_store.written > 20, "{} pages", broker.page_store.written);
    let entries = [("message-ttl", PolicyValue::Integer(1000))];
    let expired = dry_run(&broker, &entries).expired();
    assert!(contains(expired, 10_010), "{expired:?}");
    assert!(expired.most - expired.least <= paging.page_messages as u64, "{expired:?}");
    broker.set(policy(&entries).unwrap());
    assert_eq!(broker.died(DeathReason::Expired), 10_010);
}

#[test]
fn dry_run_evicts_no_expired_messages() {
    let mut broker = with_backlog(Paging::default(), 300);
    broker.sleep(1000);
    let ttl = ("message-ttl", PolicyValue::Integer(100));
    broker.set(policy(&[ttl, ("max-length", PolicyValue::Integer(7))]).unwrap());
    assert_eq!(broker.died(DeathReason::Expired), 3000);
    assert_eq!(broker.died(DeathReason::Maxlen), 0);
}

#[test]
fn dry_run_covers_removed_policies() {
    let mut broker = with_backlog(Paging::default(), 1);
    let clear = |broker: &Broker| {
        let change = PolicyChange::Clear("p".into());
        broker.vhost.dry_run(broker.now(), PolicyKind::User, change)
    };
    assert_eq!(clear(&broker), None);
    broker.set(policy(&[("expires", PolicyValue::Integer(5000))]).unwrap());
    let told = clear(&broker).unwrap();
    assert_eq!((told.queues_matched, told.queues.len()), (1, 1));
    assert_eq!(told.queues[0].deleted_in_ms, None);
    let set = dry_run(&broker, &[("expires", PolicyValue::Integer(7000))]);
    assert_eq!(set.queues[0].deleted_in_ms, Some(7000));
}

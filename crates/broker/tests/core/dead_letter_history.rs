//! The history of dead letters: what it says of each death, and what it forgets.

use std::sync::Arc;

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::access::Access;
use broker::dead_letter::DeathReason;
use broker::limits::{DEATH_HEADERS_BYTES_MAX, DEATH_PROPERTIES_BYTES_MAX};
use broker::time::Now;
use broker::{
    ApplyTo, ChannelNumber, CircumstancesIds, Command, ConnectionId, Consume, Content,
    DeadLetterHistoryLimits, DeathCircumstances, DeathOutcome, Definition, DeliveryTag, DropCause,
    Effect, Outcome, Pattern, Policy, PolicyKind, PolicyValue, Publish, RecordedDeath,
    RecordedDeaths, Request, RestoredDeath, Vhost, VhostOptions,
};

use crate::commands::declare_queue;

/// A vhost with one client.
struct Broker {
    vhost: Vhost,
    connection: ConnectionId,
    now_ms: u64,
}

impl Broker {
    fn new(dead_letter_history: DeadLetterHistoryLimits) -> Self {
        let options = VhostOptions { dead_letter_history, ..VhostOptions::default() };
        let mut vhost = Vhost::new("/", [3; 32], options);
        let access = Access::matching("ann".into(), ".*").unwrap();
        let connection = vhost.open_connection(Arc::new(access), true);
        vhost.set_connection_name(connection, "10.0.0.1:1 -> 10.0.0.2:5672");
        let mut broker = Self { vhost, connection, now_ms: 1_000_000 };
        broker.apply(Command::OpenChannel);
        broker
    }

    fn now(&self) -> Now {
        Now::from_millis(self.now_ms)
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
            assert!(!matches!(effect, Effect::AwaitGet(_)), "no queue is long");
        }
        let broken = self.vhost.broken_invariants();
        assert!(broken.is_empty(), "{broken:?}");
    }

    /// Time passes.
    fn sleep(&mut self, millis: u64) {
        self.now_ms += millis;
        while self.vhost.next_wake().is_some_and(|wake| wake <= self.now().time) {
            self.vhost.tick(self.now());
            self.finish();
        }
    }

    /// Declares a queue whose dead letters go to the queue `to`.
    fn declare(&mut self, queue: &str, to: Option<&str>, more: &[(&str, Value<'_>)]) {
        let mut arguments = TableBuilder::new();
        if let Some(to) = to {
            arguments.insert("x-dead-letter-exchange", Value::LongStr(b""));
            arguments.insert("x-dead-letter-routing-key", Value::LongStr(to.as_bytes()));
        }
        for (key, value) in more {
            arguments.insert(key, *value);
        }
        let arguments: Table = arguments.finish();
        self.apply(declare_queue(queue, &arguments));
    }

    fn publish(&mut self, queue: &str, message_id: &str, headers: &[(&str, &[u8])]) {
        let mut table = TableBuilder::new();
        for (key, value) in headers {
            table.insert(key, Value::LongStr(value));
        }
        let headers = (!headers.is_empty()).then(|| table.as_ref());
        let message_id = (!message_id.is_empty()).then_some(message_id.as_bytes());
        let mut properties = Vec::new();
        Properties { headers, message_id, ..Properties::default() }.encode(&mut properties);
        self.apply(Command::Publish(Publish {
            exchange: b"".into(),
            routing_key: queue.as_bytes().into(),
            mandatory: false,
            content: Content::Assembled { properties: properties.into(), body: "m".into() },
        }));
    }

    fn get(&mut self, queue: &str) {
        self.apply(Command::Get { queue, no_ack: false });
    }

    fn settle(&mut self, outcome: Outcome) {
        self.apply(Command::Settle { tag: DeliveryTag(0), multiple: true, outcome });
    }

    fn read(&self) -> RecordedDeaths {
        self.vhost.recorded_deaths(self.now(), None, usize::MAX)
    }

    fn deaths(&self) -> Vec<RecordedDeath> {
        self.read().deaths
    }

    fn set_policy(&mut self, name: &str, ttl_ms: i64) {
        let ttl = ("message-ttl".to_owned(), PolicyValue::Integer(ttl_ms));
        let definition = Definition::parse(vec![ttl], PolicyKind::User).unwrap();
        let policy = Policy {
            name: name.into(),
            pattern: Pattern::new("q").unwrap(),
            apply_to: ApplyTo::Queues,
            priority: 0.0,
            definition,
        };
        self.vhost.set_policy(self.now(), PolicyKind::User, policy);
        self.finish();
    }
}

fn limits(entries_max: u64, bytes_max: u64) -> DeadLetterHistoryLimits {
    DeadLetterHistoryLimits { entries_max, bytes_max, age_max_ms: 3_600_000 }
}

fn id_of(death: &RecordedDeath) -> String {
    let properties = Properties::parse(death.properties()).unwrap();
    String::from_utf8(properties.message_id.unwrap_or_default().to_vec()).unwrap()
}

/// The history says who rejected a message, where it went, and what it was.
#[test]
fn death_by_reject_names_consumer_user_and_target() {
    let mut broker = Broker::new(limits(100, 1 << 20));
    broker.declare("dead", None, &[]);
    broker.declare("q", Some("dead"), &[]);
    broker.apply(Command::Consume(Consume {
        queue: "q",
        consumer_tag: "worker",
        no_ack: false,
        exclusive: false,
        nowait: true,
        arguments: Table::default().as_ref(),
    }));
    broker.publish("q", "m1", &[("order", b"7")]);
    broker.sleep(5);
    broker.settle(Outcome::Reject);
    let [death] = <[RecordedDeath; 1]>::try_from(broker.deaths()).unwrap();
    assert_eq!((death.number, death.time_ms), (1, 1_000_005));
    assert_eq!(id_of(&death), "m1");
    let found = &death.circumstances;
    assert_eq!((&*found.queue, found.reason), ("q", DeathReason::Rejected));
    assert_eq!(found.published.routing_key.as_bytes(), b"q");
    assert_eq!(found.dead_letter.as_ref().unwrap().routing_key.as_bytes(), b"dead");
    let by = found.settled_by.as_ref().unwrap();
    assert_eq!((&*by.user, by.consumer_tag.as_deref()), ("ann", Some("worker")));
    assert_eq!((&*by.connection, by.channel), ("10.0.0.1:1 -> 10.0.0.2:5672", ChannelNumber(1)));
    let queues = Box::new(["dead".into()]);
    let outcome = DeathOutcome::DeadLettered { queues, queues_total: 1, copies_dropped: 0 };
    assert_eq!(found.outcome, outcome);
    let headers = Properties::parse(death.properties()).unwrap().headers.unwrap();
    assert_eq!(headers.get("order"), Some(Value::LongStr(b"7")));
}

#[test]
fn chain_of_deaths_is_kept_after_the_message_is_gone() {
    let mut broker = Broker::new(limits(100, 1 << 20));
    broker.declare("last", None, &[("x-max-length", Value::I32(0))]);
    broker.declare("second", Some("last"), &[("x-message-ttl", Value::I32(10))]);
    broker.declare("first", Some("second"), &[("x-message-ttl", Value::I32(20))]);
    broker.publish("first", "m", &[]);
    broker.sleep(20);
    broker.sleep(10);
    let deaths = broker.deaths();
    let shown = deaths.iter().map(|death| {
        assert_eq!(id_of(death), "m");
        (&*death.circumstances.queue, death.circumstances.reason, death.time_ms)
    });
    let (expired, maxlen) = (DeathReason::Expired, DeathReason::Maxlen);
    let expected = [
        ("last", maxlen, 1_000_030),
        ("second", expired, 1_000_030),
        ("first", expired, 1_000_020),
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    let outcome = DeathOutcome::Dropped(DropCause::NoDeadLetterExchange);
    assert_eq!(deaths[0].circumstances.outcome, outcome);
    assert_eq!(deaths[0].circumstances.settled_by, None);
}

#[test]
fn delivery_limit_names_the_last_consumer() {
    let mut broker = Broker::new(limits(100, 1 << 20));
    broker.declare("dead", None, &[]);
    let quorum = Value::LongStr(b"quorum");
    let limit = Value::I32(1);
    broker.declare("q", Some("dead"), &[("x-queue-type", quorum), ("x-delivery-limit", limit)]);
    broker.publish("q", "m", &[]);
    for _ in 0..2 {
        broker.get("q");
        broker.settle(Outcome::Requeue { failed: true });
    }
    let deaths = broker.deaths();
    assert_eq!(deaths.len(), 1);
    assert_eq!(deaths[0].circumstances.reason, DeathReason::DeliveryLimit);
    let by = deaths[0].circumstances.settled_by.as_ref().unwrap();
    assert_eq!((&*by.user, &by.consumer_tag), ("ann", &None));
}

/// A dead letter without a target is offered again and again, and dies once for the history.
#[test]
fn kept_dead_letter_is_recorded_once_and_once_more_when_it_moves() {
    let mut broker = Broker::new(limits(100, 1 << 20));
    let arguments = [
        ("x-queue-type", Value::LongStr(b"quorum")),
        ("x-overflow", Value::LongStr(b"reject-publish")),
        ("x-dead-letter-strategy", Value::LongStr(b"at-least-once")),
        ("x-message-ttl", Value::I32(10)),
    ];
    broker.declare("q", Some("dead"), &arguments);
    broker.publish("q", "m", &[]);
    broker.sleep(50);
    for queue in ["a", "b", "c"] {
        broker.declare(queue, None, &[]);
        broker.sleep(50);
    }
    let outcomes = |broker: &Broker| {
        let deaths = broker.deaths();
        deaths.iter().map(|death| death.circumstances.outcome.clone()).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(&broker), [DeathOutcome::Kept(DropCause::Unroutable)]);
    broker.declare("dead", None, &[]);
    broker.sleep(50);
    let queues = Box::new(["dead".into()]);
    let moved = DeathOutcome::DeadLettered { queues, queues_total: 1, copies_dropped: 0 };
    assert_eq!(outcomes(&broker), [moved, DeathOutcome::Kept(DropCause::Unroutable)]);
}

#[test]
fn policy_in_force_is_named() {
    let mut broker = Broker::new(limits(100, 1 << 20));
    broker.declare("q", None, &[]);
    let policy = |broker: &Broker| {
        let circumstances = Arc::clone(&broker.deaths()[0].circumstances);
        circumstances.policy.as_deref().map(str::to_owned)
    };
    for name in ["short", "shorter"] {
        broker.set_policy(name, 10);
        broker.publish("q", "m", &[]);
        broker.sleep(10);
        assert_eq!(policy(&broker), Some(name.to_owned()));
    }
}

/// Deaths in two queues take turns, so that none shares its circumstances with the one before, then come in groups.
#[test]
fn oldest_deaths_are_forgotten_first_and_others_keep_their_circumstances() {
    let mut broker = Broker::new(limits(10, 1 << 20));
    for queue in ["q0", "q1", "q2"] {
        broker.declare(queue, Some(queue), &[("x-max-length", Value::I32(0))]);
    }
    for number in 0..100 {
        let group = if number < 50 { 1 } else { 7 };
        let queue = format!("q{}", number / group % 3);
        broker.publish(&queue, &format!("{queue}-{number}"), &[]);
        let read = broker.read();
        assert_eq!(read.forgotten, (number + 1_u64).saturating_sub(10));
        assert_eq!(read.forgotten_until_ms, (number >= 10).then_some(1_000_000));
        let numbers: Vec<u64> = read.deaths.iter().map(|death| death.number).collect();
        let expected: Vec<u64> = (read.forgotten + 1..=number + 1).rev().collect();
        assert_eq!(numbers, expected);
        for death in &read.deaths {
            let queue = &death.circumstances.queue;
            assert_eq!(id_of(death), format!("{queue}-{}", death.number - 1));
        }
    }
    // Read in slices, the same.
    let (mut before, mut numbers) = (None, Vec::new());
    loop {
        let read = broker.vhost.recorded_deaths(broker.now(), before, 3);
        numbers.extend(read.deaths.iter().map(|death| death.number));
        before = read.before;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(numbers, (91..=100).rev().collect::<Vec<u64>>());
    for before in [0, 1, 91] {
        let read = broker.vhost.recorded_deaths(broker.now(), Some(before), 3);
        assert!(read.deaths.is_empty() && read.before.is_none(), "before {before}");
    }
}

/// Huge headers and ids cannot take more memory than configured, nor make the history useless.
#[test]
fn huge_headers_are_cut_and_bounded_by_bytes() {
    const BYTES_MAX: u64 = 256 * 1024;
    let mut broker = Broker::new(limits(1_000_000, BYTES_MAX));
    broker.declare("dead", None, &[("x-max-length", Value::I32(1))]);
    broker.declare("q", Some("dead"), &[("x-message-ttl", Value::I32(0))]);
    let huge = vec![b'x'; 100_000];
    let long = vec![b'y'; DEATH_HEADERS_BYTES_MAX - 100];
    let id = "i".repeat(255);
    for number in 0..500_u64 {
        let order = number.to_string();
        let headers = [("huge", &*huge), ("order", order.as_bytes()), ("long", &long)];
        broker.publish("q", &id, &headers);
    }
    let read = broker.read();
    assert_eq!(read.forgotten + read.deaths.len() as u64, 999, "in q, and in dead but the last");
    assert!(read.deaths.len() > 20, "{} of them are cut to a few KiB", read.deaths.len());
    let bytes: usize = read.deaths.iter().map(|death| death.properties().len()).sum();
    assert!(bytes as u64 <= BYTES_MAX, "{bytes}");
    for death in &read.deaths {
        assert!(death.is_cut() && death.properties().len() < DEATH_PROPERTIES_BYTES_MAX);
        assert_eq!(id_of(death), id);
        let headers = Properties::parse(death.properties()).unwrap().headers.unwrap();
        assert!(headers.get("order").is_some() && headers.get("long").is_some());
        assert!(headers.get("huge").is_none() && headers.get("x-death").is_none());
    }
}

/// Circumstances count, too: keys of 255 bytes, each in thirty of its own.
#[test]
fn long_keys_count_against_the_bytes() {
    let mut broker = Broker::new(limits(1_000_000, 64 * 1024));
    let names: Vec<String> = (0..30).map(|at| format!("{at:0>250}")).collect();
    for name in &names {
        broker.declare(name, None, &[("x-max-length", Value::I32(0))]);
    }
    for name in names.iter().cycle().take(600) {
        broker.publish(name, "i", &[]);
        // No search could find such a message.
        broker.publish(name, "", &[]);
    }
    let read = broker.read();
    let kept = read.deaths.len();
    assert_eq!(read.forgotten + kept as u64, 600);
    assert!((60..100).contains(&kept), "{kept}");
    assert!(read.deaths.iter().all(|death| id_of(death) == "i"));
}

#[test]
fn history_smaller_than_a_death_keeps_nothing() {
    let mut broker = Broker::new(limits(10, 1));
    broker.declare("q", None, &[("x-max-length", Value::I32(0))]);
    for _ in 0..3 {
        broker.publish("q", "m", &[]);
    }
    assert!(broker.deaths().is_empty());
    assert_eq!(broker.read().forgotten, 3);
}

#[test]
fn death_is_forgotten_when_its_time_is_over() {
    let mut broker = Broker::new(limits(100, 1 << 20));
    broker.declare("q", None, &[("x-max-length", Value::I32(0))]);
    broker.publish("q", "old", &[]);
    broker.sleep(1_800_000);
    broker.publish("q", "new", &[]);
    broker.sleep(1_799_999);
    assert_eq!(broker.deaths().len(), 2);
    // The limit holds although the timer has not fired yet.
    broker.now_ms += 1;
    assert_eq!(broker.deaths().len(), 1);
    broker.sleep(0);
    let read = broker.read();
    assert_eq!((read.deaths.len(), read.forgotten), (1, 1));
    assert_eq!(read.forgotten_until_ms, Some(1_000_000));
    broker.sleep(3_600_000);
    assert_eq!(broker.read().forgotten, 2);
    assert_eq!(broker.vhost.next_wake(), None);
}

#[test]
fn history_is_off_without_entries() {
    let mut broker = Broker::new(limits(0, 1 << 20));
    broker.declare("q", None, &[("x-message-ttl", Value::I32(0))]);
    broker.publish("q", "m", &[]);
    broker.sleep(1);
    let read = broker.read();
    assert!(read.deaths.is_empty() && read.forgotten == 0);
    assert_eq!(broker.vhost.next_wake(), None);
}

/// Deaths of an earlier process keep their facts and their time; a death since then is not taken for one of them.
#[test]
fn restored_deaths_are_read_as_they_were() {
    let mut before = Broker::new(limits(100, 1 << 20));
    before.declare("q", None, &[("x-max-length", Value::I32(0))]);
    for id in ["a", "b"] {
        before.publish("q", id, &[]);
        before.sleep(1_000_000);
    }
    let restored: Vec<RestoredDeath> =
        before.vhost.recorded_deaths_after(0, 100).iter().map(restored).collect();
    let mut after = Broker::new(limits(100, 1 << 20));
    after.now_ms = before.now_ms + 1_000_000;
    assert_eq!(after.vhost.restore_deaths(after.now(), restored), 2);
    after.declare("q", None, &[("x-max-length", Value::I32(0))]);
    after.publish("q", "c", &[]);
    let read = after.read();
    let shown: Vec<_> =
        read.deaths.iter().map(|death| (death.number, id_of(death), death.time_ms)).collect();
    let expected = [
        (3, "c".to_owned(), 4_000_000),
        (2, "b".to_owned(), 2_000_000),
        (1, "a".to_owned(), 1_000_000),
    ];
    assert_eq!(shown, expected);
    assert_eq!((read.forgotten, read.forgotten_until_ms), (0, Some(1_000_000)));
    let [c, b, a] = [0, 1, 2].map(|at| &read.deaths[at].circumstances);
    assert!(Arc::ptr_eq(a, b) && !Arc::ptr_eq(b, c));
    assert_eq!((&a.outcome, &a.queue, a.reason), (&c.outcome, &c.queue, c.reason));
    // The age counts from the death, not from the restart.
    after.sleep(600_000);
    assert_eq!(after.deaths().len(), 2);
    let numbers = |number| {
        after
            .vhost
            .recorded_deaths_after(number, 100)
            .iter()
            .map(|death| death.number)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (numbers(0), numbers(2), numbers(3), numbers(9)),
        (vec![2, 3], vec![3], vec![], vec![])
    );
}

fn restored(death: &RecordedDeath) -> RestoredDeath {
    RestoredDeath {
        time_ms: death.time_ms,
        circumstances: DeathCircumstances {
            ids: CircumstancesIds::default(),
            ..DeathCircumstances::clone(&death.circumstances)
        },
        properties: death.properties().to_vec(),
        is_cut: death.is_cut(),
    }
}

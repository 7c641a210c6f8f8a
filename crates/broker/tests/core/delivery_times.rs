//! Delivery times over restarts and steps of the wall clock.

use std::sync::Arc;

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{TableBuilder, Value};
use broker::access::Access;
use broker::limits::SCHEDULES_PER_ID_MAX;
use broker::time::Now;
use broker::{
    Bind, ChannelNumber, Command, ConnectionId, Content, DeclareExchange, Outgoing, Publish,
    Request, ScheduleId, ScheduleOperation, ScheduleRequest, ScheduleSelector, ScheduleTarget,
    ScheduledContent, ScheduledFilter, Vhost, VhostOptions,
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
        self.now =
            Now { time: self.now.time.plus_ms(millis), wall_us: self.now.wall_us + millis * 1000 };
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
        self.publish_with(exchange, body, &[(header, value)]);
    }

    fn publish_with(
        &mut self,
        exchange: &str,
        body: &'static str,
        fields: &[(&str, Value<'_>)],
    ) -> Vec<Outgoing> {
        let mut headers = TableBuilder::new();
        for (key, value) in fields {
            headers.insert(*key, *value);
        }
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
        }))
    }

    /// Publishes a message that is ready after that many hours and has a schedule id, to the queue or through the
    /// exchange.
    fn publish_named(&mut self, exchange: &str, body: &'static str, hours: u64, id: &str) {
        let delay = if exchange.is_empty() { "x-opt-delivery-delay" } else { "x-delay" };
        let hours = Value::I64(i64::try_from(hours * HOUR_MS).unwrap());
        let id = ("x-schedule-id", Value::LongStr(id.as_bytes()));
        self.publish_with(exchange, body, &[(delay, hours), id]);
    }

    /// Performs an operation on the messages with that id in `target`; true if there are any.
    fn operate(&mut self, target: &str, id: &str, operation: ScheduleOperation) -> bool {
        let request = ScheduleRequest {
            target: target.parse().unwrap(),
            selector: ScheduleSelector::Id(ScheduleId::new(id).unwrap()),
            operation,
        };
        let access = Access::matching("guest".into(), ".*").unwrap();
        let changed = self.vhost.operate_on_schedules(self.now, &request, &access);
        self.finish();
        !changed.unwrap().0.is_empty()
    }

    /// The bodies of the scheduled messages in the order of delivery times, listed `count` at a time.
    fn listed(&self, filter: &ScheduledFilter, count: usize) -> String {
        let access = Access::matching("guest".into(), ".*").unwrap();
        let (mut bodies, mut behind) = (String::new(), None);
        loop {
            let page = self.vhost.scheduled_messages(filter, &access, behind, count);
            assert!(page.messages.len() <= count);
            for listed in page.messages {
                let ScheduledContent::Here(message) = listed.message else { panic!("on disk") };
                bodies.push_str(std::str::from_utf8(message.body()).unwrap());
            }
            behind = page.next;
            if behind.is_none() {
                return bodies;
            }
        }
    }

    /// Publishes three messages to the queue and three through the exchange, which are ready after one to six hours.
    fn publish_six(&mut self) {
        let hours = |hours: u64| Value::I64(i64::try_from(hours * HOUR_MS).unwrap());
        self.publish("", "6", "x-opt-delivery-delay", hours(6));
        self.publish("x", "5", "x-delay", hours(5));
        let at_ms = i64::try_from(self.now.wall_ms() + 4 * HOUR_MS).unwrap();
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

/// Messages that are published within some milliseconds and name one delivery time come in the order of their arrival.
#[test]
fn one_delivery_time_is_one_moment_also_after_a_restart() {
    const BODIES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let publish = || {
        let mut broker = Broker::new();
        for (place, body) in BODIES.into_iter().enumerate() {
            // The readings are at no particular place of their millisecond.
            let us = [0, 1700, 300, 900, 5100][place % 5];
            broker.now =
                Now { time: broker.now.time.plus_micros(us), wall_us: broker.now.wall_us + us };
            let at_ms = i64::try_from(START_MS + HOUR_MS).unwrap();
            broker.publish("", body, "x-opt-delivery-time", Value::I64(at_ms));
        }
        broker
    };
    let mut broker = publish();
    let left_us = (START_MS + HOUR_MS) * 1000 - broker.now.wall_us;
    broker.now = Now {
        time: broker.now.time.plus_micros(left_us - 1),
        wall_us: broker.now.wall_us + left_us - 1,
    };
    broker.sleep(0);
    assert_eq!(broker.ready(), "");
    broker.now = Now { time: broker.now.time.plus_micros(1), wall_us: broker.now.wall_us + 1 };
    broker.sleep(0);
    assert_eq!(broker.ready(), BODIES.concat());

    let mut broker = publish().restart_at(START_MS + HOUR_MS / 2);
    broker.sleep(HOUR_MS / 2 - 1);
    assert_eq!(broker.ready(), "");
    broker.sleep(1);
    assert_eq!(broker.ready(), BODIES.concat());
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
    broker.sleep(1);
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
    broker.now.wall_us += 10 * HOUR_MS * 1000;
    broker.sleep(HOUR_MS - 1);
    assert_eq!(broker.ready(), "");
    broker.now.wall_us -= 20 * HOUR_MS * 1000;
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

#[test]
fn schedule_ids_survive_a_restart() {
    let mut broker = Broker::new();
    broker.publish_named("", "a", 1, "s");
    broker.publish_named("x", "b", 1, "s");
    let mut broker = broker.restart_at(START_MS);
    broker.publish_named("", "c", 2, "s");
    broker.publish_named("x", "d", 3, "s");
    let mut broker = broker.restart_at(START_MS);
    assert_eq!(broker.listed(&ScheduledFilter::default(), 9), "cd");
    assert!(broker.operate("queue/q", "s", ScheduleOperation::Cancel));
    assert!(!broker.operate("queue/q", "s", ScheduleOperation::Cancel));
    let mut broker = broker.restart_at(START_MS);
    broker.sleep(10 * HOUR_MS);
    assert_eq!(broker.ready(), "d");
}

#[test]
fn new_delivery_times_survive_a_restart() {
    let mut broker = Broker::new();
    broker.publish_named("", "a", 1, "a");
    broker.publish_named("", "b", 2, "b");
    broker.publish_named("x", "c", 3, "c");
    let at =
        |hours: u64| ScheduleOperation::Reschedule { delivery_time_ms: START_MS + hours * HOUR_MS };
    assert!(broker.operate("queue/q", "a", at(9)));
    assert!(broker.operate("queue/q", "a", at(5)));
    assert!(broker.operate("exchange/x", "c", at(1)));
    let mut broker = broker.restart_at(START_MS);
    for (hours, ready) in [(1, "c"), (1, "b"), (2, ""), (1, "a")] {
        broker.sleep(hours * HOUR_MS);
        // The log has milliseconds.
        broker.sleep(2);
        assert_eq!(broker.ready(), ready, "{:?}", broker.now);
    }
}

#[test]
fn rescheduled_message_names_its_new_time_after_a_restart() {
    let mut broker = Broker::new();
    broker.publish_named("", "a", 1, "s");
    let delivery_time_ms = START_MS + 2 * HOUR_MS;
    assert!(broker.operate("queue/q", "s", ScheduleOperation::Reschedule { delivery_time_ms }));
    let mut broker = broker.restart_at(START_MS);
    broker.sleep(3 * HOUR_MS);
    let said = broker.apply(Command::Get { queue: "q", no_ack: true });
    let Some(Outgoing::GetOk { delivery, .. }) = said.into_iter().next() else {
        panic!("no message")
    };
    let properties = Properties::parse(delivery.message.properties()).unwrap();
    let scheduled_for = properties.headers.unwrap().get("x-scheduled-for");
    assert_eq!(scheduled_for, Some(Value::I64(i64::try_from(delivery_time_ms).unwrap())));
}

#[test]
fn delivery_now_survives_a_kill() {
    let mut broker = Broker::new();
    broker.publish_named("", "a", 1, "s");
    broker.publish_named("x", "b", 1, "s");
    assert!(broker.operate("queue/q", "s", ScheduleOperation::Deliver));
    assert!(broker.operate("exchange/x", "s", ScheduleOperation::Deliver));
    let mut broker = broker.restart_at(START_MS);
    // The log has milliseconds.
    broker.sleep(2);
    assert_eq!(broker.ready(), "ab");
}

#[test]
fn list_of_scheduled_messages_is_in_the_order_of_times() {
    let mut broker = Broker::new();
    broker.publish_six();
    broker.publish_named("", "7", 6, "s");
    broker.publish_named("x", "8", 6, "s");
    let all = ScheduledFilter::default();
    for count in 1..9 {
        let mut bodies = broker.listed(&all, count);
        // The last three have one time, in the order of their places.
        let last = bodies.split_off(5);
        assert_eq!(bodies, "12345");
        let mut last: Vec<char> = last.chars().collect();
        last.sort_unstable();
        assert_eq!(last, ['6', '7', '8']);
    }
    let target = ScheduleTarget::of("exchange", "x");
    assert_eq!(broker.listed(&ScheduledFilter { target, ..all.clone() }, 2), "1358");
    let id = ScheduleId::new("s");
    let named = broker.listed(&ScheduledFilter { id, ..all.clone() }, 1);
    assert!(["78", "87"].contains(&&*named), "{named}");
    let after = |hours: u64| Some(broker.now.time.plus_ms(hours * HOUR_MS));
    let times = ScheduledFilter { from: after(2), before: after(4), ..all };
    assert_eq!(broker.listed(&times, 1), "23");
}

#[test]
fn list_of_scheduled_messages_leaves_out_what_the_user_may_not_read() {
    let mut broker = Broker::new();
    broker.publish_six();
    let access = Access::matching("bob".into(), "^q$").unwrap();
    let page = broker.vhost.scheduled_messages(&ScheduledFilter::default(), &access, None, 100);
    assert_eq!(page.messages.len(), 3);
}

#[test]
fn schedule_id_has_a_limit_in_mode_add() {
    let mut broker = Broker::new();
    broker.apply(Command::ConfirmSelect { nowait: true });
    let fields = [
        ("x-opt-delivery-delay", Value::I32(1000)),
        ("x-schedule-id", Value::LongStr(b"s")),
        ("x-schedule-mode", Value::LongStr(b"add")),
    ];
    for _ in 0..SCHEDULES_PER_ID_MAX {
        let said = broker.publish_with("", "m", &fields);
        assert!(matches!(said[..], [Outgoing::Ack { .. }]), "{said:?}");
    }
    let said = broker.publish_with("", "m", &fields);
    assert!(matches!(said[..], [Outgoing::Nack { .. }]), "{said:?}");
    assert!(broker.operate("queue/q", "s", ScheduleOperation::Cancel));
    assert_eq!(broker.listed(&ScheduledFilter::default(), 10), "");
}

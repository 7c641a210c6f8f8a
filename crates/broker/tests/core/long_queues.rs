//! Long queues: what waits on disk comes back in order and in time, and memory stays bounded.

use std::sync::Arc;

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::access::Access;
use broker::limits::UNACKED_BYTES_PER_CHANNEL_MIN;
use broker::page::Paging;
use broker::time::{Now, Time};
use broker::{
    BrowsedMessage, ChannelNumber, Command, ConnectionId, Consume, Content, DeliveryTag, Effect,
    Event, MessageState, Outcome, Outgoing, PersistentMessages, Publish, Request, Vhost,
    VhostOptions,
};

use crate::commands::declare_queue;

use crate::disk::look::browse_all;
use crate::disk::{Disk, PageStore, SMALL_PAGES};

/// Memory that waiting messages may take.
const RESIDENT_BYTES_MAX: u64 = 512 * 1024;

/// A vhost with one client on one channel, whose pages are kept on a page_store.
pub(crate) struct Broker {
    pub(crate) vhost: Vhost,
    pub(crate) connection: ConnectionId,
    pub(crate) now_us: u64,
    pub(crate) page_store: PageStore,
    pub(crate) disk: Disk,
    /// Deliveries: time, tag, and the number in the body.
    pub(crate) delivered: Vec<(u64, DeliveryTag, u64)>,
    pub(crate) resident_most: u64,
    told: Vec<Event>,
}

impl Broker {
    pub(crate) fn new() -> Self {
        Self::with(Paging::beyond(RESIDENT_BYTES_MAX))
    }

    pub(crate) fn with(paging: Paging) -> Self {
        Self::with_options(VhostOptions { paging, ..VhostOptions::default() })
    }

    fn with_options(options: VhostOptions) -> Self {
        let mut vhost = Vhost::new("/", [3; 32], options);
        let access = Access::matching("guest".into(), ".*").unwrap();
        let connection = vhost.open_connection(Arc::new(access), true);
        let mut broker = Self {
            vhost,
            connection,
            now_us: 1_000_000_000,
            page_store: PageStore::default(),
            disk: Disk::default(),
            delivered: Vec::new(),
            resident_most: 0,
            told: Vec::new(),
        };
        broker.apply(Command::OpenChannel);
        broker
    }

    pub(crate) fn now(&self) -> Now {
        Now { time: Time::from_micros(self.now_us), wall_us: self.now_us }
    }

    pub(crate) fn apply(&mut self, command: Command<'_>) {
        self.apply_on(1, command);
    }

    fn apply_on(&mut self, channel: u16, command: Command<'_>) {
        let channel = ChannelNumber(channel);
        let request = Request { channel, method: MethodId::NONE, command };
        self.vhost.apply(self.now(), self.connection, request);
        self.finish();
    }

    pub(crate) fn finish(&mut self) {
        loop {
            self.vhost.set_backlog(self.now(), self.connection, 0);
            self.vhost.durable(self.vhost.last_lsn());
            self.vhost.flush();
            let (mut tasks, mut is_done) = (Vec::new(), true);
            for effect in self.vhost.drain_effects() {
                is_done = false;
                self.disk.write(&effect);
                match effect {
                    Effect::Page(task) => tasks.push(task),
                    Effect::Event(event) => self.told.push(event),
                    Effect::Send { outgoing: Outgoing::Deliver { delivery, .. }, .. } => {
                        let body = delivery.message.body().try_into().unwrap();
                        let number = u64::from_le_bytes(body);
                        self.delivered.push((self.now_us, delivery.tag, number));
                    }
                    Effect::Send { outgoing: Outgoing::ChannelClose { refusal, .. }, .. } => {
                        panic!("{refusal}");
                    }
                    _ => {}
                }
            }
            self.resident_most = self.resident_most.max(self.vhost.resident_bytes());
            if is_done {
                return;
            }
            let now = self.now();
            for task in tasks {
                self.page_store.perform(task, &mut self.vhost, now, &mut self.disk);
            }
        }
    }

    /// Ends as by a crash, if `crashes`, or well, and comes back from the log.
    pub(crate) fn restart(&mut self, crashes: bool) {
        let now = self.now();
        (self.vhost, self.page_store) = if crashes {
            self.disk.restart_after_crash(now, &self.vhost)
        } else {
            self.disk.restart(now, &self.vhost)
        };
        let access = Access::matching("guest".into(), ".*").unwrap();
        self.connection = self.vhost.open_connection(Arc::new(access), true);
        self.apply(Command::OpenChannel);
    }

    pub(crate) fn sleep_until(&mut self, end_us: u64) {
        while let Some(wake) = self.vhost.next_wake().filter(|wake| wake.as_micros() <= end_us) {
            self.now_us = self.now_us.max(wake.as_micros());
            self.vhost.tick(self.now());
            self.finish();
        }
        self.now_us = end_us;
    }

    pub(crate) fn declare(&mut self, queue: &str, arguments: &Table) {
        self.apply(declare_queue(queue, arguments));
    }

    fn publish(&mut self, number: u64, expiration_ms: Option<u64>) {
        let expiration = expiration_ms.map(|millis| millis.to_string());
        let properties = Properties {
            delivery_mode: Some(2),
            expiration: expiration.as_ref().map(|text| text.as_bytes()),
            ..Properties::default()
        };
        self.publish_with("", &properties, number);
    }

    pub(crate) fn publish_with(
        &mut self,
        exchange: &str,
        properties: &Properties<'_>,
        number: u64,
    ) {
        let mut bytes = Vec::new();
        properties.encode(&mut bytes);
        let properties_len = bytes.len();
        bytes.extend(number.to_le_bytes());
        self.apply(Command::Publish(Publish {
            exchange: exchange.as_bytes().into(),
            routing_key: b"q".into(),
            mandatory: false,
            content: Content::Framed { bytes: &bytes, properties_len, body_start: properties_len },
        }));
    }

    pub(crate) fn consume(&mut self, queue: &str, no_ack: bool, prefetch_count: u16) {
        self.apply(Command::Qos { prefetch_count, global: false });
        self.apply(Command::Consume(Consume {
            queue,
            consumer_tag: queue,
            no_ack,
            exclusive: false,
            nowait: true,
            arguments: Table::default().as_ref(),
        }));
    }

    /// Of the pages that a long queue keeps at either end.
    pub(crate) fn assert_memory_was_bounded(&self) {
        let most = RESIDENT_BYTES_MAX + 6 * Paging::beyond(RESIDENT_BYTES_MAX).page_bytes;
        assert!(self.resident_most < most, "{} of {most} bytes", self.resident_most);
    }
}

#[test]
fn long_queue_is_delivered_in_order_from_bounded_memory() {
    const COUNT: u64 = 30_000;
    let mut broker = Broker::new();
    broker.declare("q", &Table::default());
    (0..COUNT).for_each(|number| broker.publish(number, None));
    assert!(broker.page_store.written > 100, "{} pages", broker.page_store.written);
    assert_eq!(broker.vhost.queue("q").unwrap().ready_count(), COUNT);
    broker.consume("q", false, 300);
    while let Some((_, tag, _)) = broker.delivered.last().copied()
        && broker.vhost.queue("q").unwrap().unacked_count() > 0
    {
        broker.apply(Command::Settle { tag, multiple: true, outcome: Outcome::Ack });
    }
    let numbers: Vec<u64> = broker.delivered.iter().map(|(_, _, number)| *number).collect();
    assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>());
    assert!(broker.vhost.pages().is_empty());
    assert_eq!(broker.vhost.resident_bytes(), 0);
    broker.assert_memory_was_bounded();
}

#[test]
fn longest_queue_keeps_no_more_in_memory_than_others_with_pages() {
    let mut broker = Broker::new();
    broker.declare("q", &Table::default());
    let mut resident = [10_000, 30_000].map(|until| {
        (until - 10_000..until).for_each(|number| broker.publish(number, None));
        broker.vhost.resident_bytes()
    });
    // It stayed in memory until too much was.
    assert!(broker.resident_most > RESIDENT_BYTES_MAX / 10 * 9, "{}", broker.resident_most);
    resident.sort_unstable();
    let [less, more] = resident;
    let page_bytes = Paging::beyond(RESIDENT_BYTES_MAX).page_bytes;
    assert!(more < 12 * page_bytes, "{more} bytes, pages of {page_bytes}");
    assert!(more - less < 2 * page_bytes, "{less} and {more} bytes");
    broker.assert_memory_was_bounded();
}

#[test]
fn page_is_kept_while_one_of_its_messages_is_left() {
    const COUNT: u64 = 400;
    let mut broker = Broker::with(Paging { page_messages: 4, ..SMALL_PAGES });
    broker.declare("q", &Table::default());
    (0..COUNT).for_each(|number| broker.publish(number, None));
    broker.consume("q", false, 0);
    // Every tenth stays, and the ends of the others are recorded for messages that the log no longer has.
    for (_, tag, number) in broker.delivered.clone() {
        if number % 10 != 0 {
            broker.apply(Command::Settle { tag, multiple: false, outcome: Outcome::Ack });
        }
    }
    broker.disk.compact();
    broker.vhost.close_connection(broker.now(), broker.connection);
    broker.finish();
    let (back, pages) = broker.disk.restart(broker.now(), &broker.vhost);
    assert!(pages.written > 0);
    assert_eq!(back.queue("q").unwrap().ready_count(), COUNT / 10);
    broker.page_store.assert_same(&broker.vhost, &(back, pages));
}

#[test]
fn browsing_passes_pages_whose_last_messages_have_left() {
    let mut broker = Broker::with(Paging { page_messages: 4, ..SMALL_PAGES });
    broker.declare("q", &Table::default());
    // Of each page the last message expires, or the last two.
    let expiration = |number: u64| (number % 4 == 3 || number % 8 == 2).then_some(1000);
    (0..80).for_each(|number| broker.publish(number, expiration(number)));
    broker.sleep_until(broker.now_us + 2_000_000);
    let left = (0..80).filter(|number| expiration(*number).is_none());
    let left: Vec<u64> = left.collect();
    assert!(broker.vhost.pages().len() > 3);
    for count in 1..6 {
        let ready = ("q", MessageState::Ready);
        let browsed = browse_all(&broker.vhost, &mut broker.page_store, ready, count);
        let number = |message: &BrowsedMessage| {
            u64::from_le_bytes(message.entry.message.body().try_into().unwrap())
        };
        assert_eq!(browsed.iter().map(number).collect::<Vec<_>>(), left);
    }
}

#[test]
fn due_work_is_over_while_a_page_is_read() {
    let mut broker = Broker::with(SMALL_PAGES);
    broker.declare("q", &Table::default());
    // In memory; in two pages, one due before it and one behind.
    broker.publish(0, Some(20_000));
    (1..9)
        .for_each(|number| broker.publish(number, Some(if number == 4 { 10_000 } else { 30_000 })));
    assert!(broker.vhost.pages().len() > 3);
    broker.now_us += 100_000_000;
    let mut tasks = Vec::new();
    let has_more =
        |broker: &Broker| broker.vhost.next_wake().is_some_and(|wake| wake <= broker.now().time);
    for _ in 0..10 {
        broker.vhost.tick(broker.now());
        tasks.extend(broker.vhost.drain_effects().filter_map(|effect| match effect {
            Effect::Page(task) => Some(task),
            _ => None,
        }));
    }
    assert!(!tasks.is_empty() && !has_more(&broker), "the timer has nothing to do until {tasks:?}");
    let now = broker.now();
    for task in tasks {
        broker.page_store.perform(task, &mut broker.vhost, now, &mut broker.disk);
        broker.finish();
    }
    broker.sleep_until(broker.now_us + 1_000_000);
    assert_eq!(broker.vhost.queues().map(|(_, queue)| queue.message_count()).sum::<u64>(), 0);
}

#[test]
fn empty_pages_count_no_bytes_after_a_restart() {
    const COUNT: u64 = 400;
    const LEFT: u64 = 10;
    let mut broker = Broker::with(Paging { page_messages: 4, ..SMALL_PAGES });
    broker.declare("q", &Table::default());
    (0..COUNT).for_each(|number| broker.publish(number, None));
    broker.consume("q", false, 0);
    let (_, tag, _) = broker.delivered[usize::try_from(COUNT - LEFT).unwrap() - 1];
    broker.apply(Command::Settle { tag, multiple: true, outcome: Outcome::Ack });
    broker.vhost.close_connection(broker.now(), broker.connection);
    broker.finish();
    let (back, _) = broker.disk.restart(broker.now(), &broker.vhost);
    let queue = back.queue("q").unwrap();
    // A body is a number of eight bytes.
    let expected = PersistentMessages { messages: LEFT, bytes: LEFT * 8 };
    assert_eq!((queue.persistent(), queue.ready_bytes()), (expected, expected.bytes));
}

/// The TTL of a message.
fn ttl_ms(number: u64) -> u64 {
    1000 + number.wrapping_mul(7919) % 60_000
}

/// A long queue of so many messages with deadlines of their own, and a consumer of the dead letters.
fn mortals(count: u64) -> Broker {
    let mut broker = Broker::new();
    let mut arguments = TableBuilder::new();
    arguments.insert("x-dead-letter-exchange", Value::LongStr(b""));
    arguments.insert("x-dead-letter-routing-key", Value::LongStr(b"dead"));
    broker.declare("q", &arguments.finish());
    broker.declare("dead", &Table::default());
    broker.consume("dead", true, 0);
    (0..count).for_each(|number| broker.publish(number, Some(ttl_ms(number))));
    assert!(broker.page_store.written > 100, "{} pages", broker.page_store.written);
    broker.assert_memory_was_bounded();
    broker
}

#[test]
fn paged_messages_expire_at_their_own_deadlines() {
    const COUNT: u64 = 20_000;
    let mut broker = mortals(COUNT);
    let published_us = broker.now_us;
    broker.sleep_until(published_us + 70_000_000);
    assert_eq!(broker.delivered.len() as u64, COUNT);
    for (at_us, _, number) in &broker.delivered {
        assert_eq!(*at_us, published_us + ttl_ms(*number) * 1000, "message {number}");
    }
    assert!(broker.vhost.pages().is_empty());
    assert_eq!(broker.vhost.resident_bytes(), 0);
    broker.assert_memory_was_bounded();
}

#[test]
fn overdue_messages_expire_in_the_order_of_deadlines() {
    const COUNT: u64 = 20_000;
    let mut broker = mortals(COUNT);
    // The timer comes much too late, as after a restart.
    broker.now_us += 100_000_000;
    broker.sleep_until(broker.now_us);
    let order: Vec<u64> = broker.delivered.iter().map(|(_, _, number)| ttl_ms(*number)).collect();
    assert_eq!(order.len() as u64, COUNT);
    assert!(order.is_sorted(), "the order of deadlines");
}

/// Memory that unacknowledged deliveries may take.
const UNACKED_BYTES_MAX: u64 = 1024 * 1024;

#[test]
fn consumer_that_never_acknowledges_gets_its_share_only() {
    const COUNT: u64 = 30_000;
    let mut broker = Broker::with_options(VhostOptions {
        paging: Paging::beyond(RESIDENT_BYTES_MAX),
        unacked_bytes_max: UNACKED_BYTES_MAX,
        ..VhostOptions::default()
    });
    broker.declare("q", &Table::default());
    (0..COUNT).for_each(|number| broker.publish(number, None));
    broker.consume("q", false, 0);
    let taken = broker.delivered.len();
    let most = UNACKED_BYTES_MAX + 64 * 1024;
    assert!((1000..10_000).contains(&taken), "{taken} deliveries");
    assert!(broker.vhost.unacked_bytes() < most, "{}", broker.vhost.unacked_bytes());
    assert!(broker.told.iter().any(|event| matches!(event, Event::DeliveriesWait { .. })));
    assert!(broker.vhost.broken_invariants().is_empty(), "{:?}", broker.vhost.broken_invariants());

    // Another channel that acknowledges gets all the others.
    broker.apply_on(2, Command::OpenChannel);
    broker.apply_on(2, Command::Qos { prefetch_count: 100, global: false });
    broker.apply_on(
        2,
        Command::Consume(Consume {
            queue: "q",
            consumer_tag: "other",
            no_ack: false,
            exclusive: false,
            nowait: true,
            arguments: Table::default().as_ref(),
        }),
    );
    let mut seen = taken;
    while broker.delivered.len() > seen {
        seen = broker.delivered.len();
        let (tag, outcome) = (DeliveryTag(0), Outcome::Ack);
        broker.apply_on(2, Command::Settle { tag, multiple: true, outcome });
    }
    assert_eq!(broker.delivered.len() as u64, COUNT);
    assert_eq!(broker.vhost.queue("q").unwrap().unacked_count(), taken as u64);
    assert!(broker.vhost.unacked_bytes() < most);

    // What it acknowledges makes room for more.
    (0..COUNT).for_each(|number| broker.publish(number, None));
    broker.apply_on(2, Command::CloseChannel);
    let before = broker.delivered.len();
    let (tag, outcome) = (DeliveryTag(taken as u64), Outcome::Ack);
    broker.apply(Command::Settle { tag, multiple: true, outcome });
    assert!(broker.delivered.len() >= before + taken / 2);
    assert!(broker.vhost.unacked_bytes() < most);
    assert!(broker.vhost.broken_invariants().is_empty(), "{:?}", broker.vhost.broken_invariants());
}

#[test]
fn channels_that_never_acknowledge_share_the_memory() {
    let mut broker = Broker::with_options(VhostOptions {
        paging: Paging::beyond(RESIDENT_BYTES_MAX),
        unacked_bytes_max: UNACKED_BYTES_MAX,
        ..VhostOptions::default()
    });
    broker.declare("q", &Table::default());
    (0..40_000).for_each(|number| broker.publish(number, None));
    for channel in 2..12 {
        broker.apply_on(channel, Command::OpenChannel);
        broker.apply_on(
            channel,
            Command::Consume(Consume {
                queue: "q",
                consumer_tag: "c",
                no_ack: false,
                exclusive: false,
                nowait: true,
                arguments: Table::default().as_ref(),
            }),
        );
    }
    let least = UNACKED_BYTES_PER_CHANNEL_MIN;
    let unacked = broker.vhost.unacked_bytes();
    assert!(unacked < UNACKED_BYTES_MAX + 11 * (least + 1024), "{unacked}");
    assert!(unacked > UNACKED_BYTES_MAX + 8 * least, "each has what is its own: {unacked}");
    assert!(broker.vhost.broken_invariants().is_empty());
    // Who has its share is refused more in the other way, too.
    let get = Command::Get { queue: "q", no_ack: false };
    let request = Request { channel: ChannelNumber(2), method: MethodId::NONE, command: get };
    broker.vhost.apply(broker.now(), broker.connection, request);
    let refused = broker.vhost.drain_effects().any(|effect| {
        matches!(effect, Effect::Send { outgoing: Outgoing::ChannelClose { .. }, .. })
    });
    assert!(refused);
}

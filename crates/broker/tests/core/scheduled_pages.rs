//! Many scheduled messages: those on disk are ready in time and in order, and can be cancelled and rescheduled there.

use amqp::properties::Properties;
use amqp::table::{Table, TableBuilder, Value};
use broker::access::Access;
use broker::limits::{SCHEDULED_LONG_MS, SCHEDULED_LONG_SHARE};
use broker::page::{PageSelection, Pages, Paging};
use broker::{
    Bind, Command, DeclareExchange, DeleteQueue, MessageState, PolicyKind, ScheduleOperation,
    ScheduleRequest, ScheduleSelector, ScheduleTarget, ScheduledContent, ScheduledFilter,
};

use crate::commands::queue_policy;
use crate::disk::SMALL_PAGES;
use crate::disk::look::browse_all;
use crate::long_queues::Broker;

/// The delay of a message: from 2 to 62 seconds.
fn delay_ms(number: u64) -> u64 {
    2000 + number.wrapping_mul(7919) % 60_000
}

/// The numbers of so many messages by delivery time.
fn by_time(count: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..count).collect();
    numbers.sort_by_key(|number| (delay_ms(*number), *number));
    numbers
}

/// The exchange that holds messages, or the default exchange.
const HOLDERS: [&str; 2] = ["", "later"];

/// A broker with so many scheduled messages, in a queue or in a delayed exchange.
fn scheduled(paging: Paging, exchange: &str, count: u64) -> Broker {
    let mut broker = Broker::with(paging);
    broker.declare("q", &dead_letters_to("dead"));
    broker.declare("dead", &Table::default());
    declare_delayed(&mut broker);
    (0..count).for_each(|number| publish(&mut broker, exchange, number));
    assert!(!broker.vhost.pages().is_empty());
    assert_sound(&broker);
    broker
}

fn dead_letters_to(queue: &str) -> Table {
    let mut arguments = TableBuilder::new();
    arguments.insert("x-dead-letter-exchange", Value::LongStr(b""));
    arguments.insert("x-dead-letter-routing-key", Value::LongStr(queue.as_bytes()));
    arguments.finish()
}

fn declare_delayed(broker: &mut Broker) {
    let mut arguments = TableBuilder::new();
    arguments.insert("x-delayed-type", Value::LongStr(b"direct"));
    let arguments = arguments.finish();
    broker.apply(Command::DeclareExchange(DeclareExchange {
        exchange: "later",
        kind: "x-delayed-message",
        passive: false,
        durable: true,
        auto_delete: false,
        internal: false,
        nowait: true,
        arguments: arguments.as_ref(),
    }));
    broker.apply(Command::BindQueue(Bind {
        destination: "q",
        source: "later",
        routing_key: "q",
        nowait: true,
        arguments: Table::default().as_ref(),
    }));
}

fn publish(broker: &mut Broker, exchange: &str, number: u64) {
    publish_delayed(broker, exchange, number, delay_ms(number));
}

fn publish_delayed(broker: &mut Broker, exchange: &str, number: u64, delay_ms: u64) {
    let header = if exchange.is_empty() { "x-opt-delivery-delay" } else { "x-delay" };
    let mut headers = TableBuilder::new();
    headers.insert(header, Value::I64(i64::try_from(delay_ms).unwrap()));
    let headers = headers.finish();
    let properties = Properties {
        delivery_mode: Some(2),
        headers: Some(headers.as_ref()),
        ..Properties::default()
    };
    broker.publish_with(exchange, &properties, number);
}

fn small_pages() -> Paging {
    Paging { page_messages: 4, page_bytes: 1024, ..SMALL_PAGES }
}

fn assert_sound(broker: &Broker) {
    let broken = broker.vhost.broken_invariants();
    assert!(broken.is_empty(), "{broken:?}");
}

fn target(exchange: &str) -> ScheduleTarget {
    match exchange {
        "" => ScheduleTarget::Queue("q".into()),
        name => ScheduleTarget::Exchange(name.into()),
    }
}

fn operate(
    broker: &mut Broker,
    exchange: &str,
    handle: u64,
    operation: ScheduleOperation,
) -> usize {
    let access = Access::matching("guest".into(), ".*").unwrap();
    let selector = ScheduleSelector::Handle(handle);
    let request = ScheduleRequest { target: target(exchange), selector, operation };
    let now = broker.now();
    let (handles, _) = broker.vhost.operate_on_schedules(now, &request, &access).unwrap();
    broker.finish();
    handles.len()
}

/// The numbers of the messages delivered so far.
fn delivered(broker: &Broker) -> Vec<u64> {
    broker.delivered.iter().map(|(_, _, number)| *number).collect()
}

#[test]
fn scheduled_messages_that_wait_for_long_are_on_disk_where_memory_has_room() {
    const COUNT: u64 = 1000;
    let long_ms = |number: u64| SCHEDULED_LONG_MS + 1000 + delay_ms(number);
    for exchange in HOLDERS {
        let paging = Paging { resident_bytes_max: 1 << 20, ..small_pages() };
        let mut broker = Broker::with(paging);
        broker.declare("q", &Table::default());
        declare_delayed(&mut broker);
        for number in 0..COUNT {
            publish(&mut broker, exchange, number);
        }
        assert!(broker.vhost.pages().is_empty(), "these do not wait for long");
        assert!(broker.vhost.resident_bytes() > paging.resident_bytes_max / SCHEDULED_LONG_SHARE);
        for number in COUNT..2 * COUNT {
            publish_delayed(&mut broker, exchange, number, long_ms(number));
        }
        let written = broker.page_store.written;
        assert!(written > 200, "{written} pages");
        let published_us = broker.now_us;
        broker.consume("q", true, 0);
        broker.sleep_until(published_us + 2 * SCHEDULED_LONG_MS * 1000);
        let mut numbers = by_time(COUNT);
        let mut long: Vec<u64> = (COUNT..2 * COUNT).collect();
        long.sort_by_key(|number| (long_ms(*number), *number));
        numbers.append(&mut long);
        assert_eq!(delivered(&broker), numbers);
        assert!(broker.vhost.pages().is_empty());
        assert_sound(&broker);
    }
}

#[test]
fn scheduled_messages_on_disk_are_ready_at_their_own_times() {
    const COUNT: u64 = 20_000;
    for exchange in HOLDERS {
        let paging = Paging::beyond(512 * 1024);
        let mut broker = scheduled(paging, exchange, COUNT);
        assert!(broker.page_store.written > 100, "{} pages", broker.page_store.written);
        let published_us = broker.now_us;
        broker.consume("q", true, 0);
        broker.sleep_until(published_us + 70_000_000);
        assert_eq!(delivered(&broker), by_time(COUNT));
        for (at_us, _, number) in &broker.delivered {
            assert_eq!(*at_us, published_us + delay_ms(*number) * 1000, "message {number}");
        }
        assert!(broker.vhost.pages().is_empty());
        assert_eq!(broker.vhost.resident_bytes(), 0);
        broker.assert_memory_was_bounded();
        assert_sound(&broker);
    }
}

#[test]
fn overdue_messages_on_disk_are_ready_in_the_order_of_their_times() {
    const COUNT: u64 = 10_000;
    for exchange in HOLDERS {
        let mut broker = scheduled(Paging::beyond(512 * 1024), exchange, COUNT);
        broker.consume("q", true, 0);
        broker.now_us += 100_000_000;
        broker.sleep_until(broker.now_us);
        assert_eq!(delivered(&broker), by_time(COUNT));
        broker.assert_memory_was_bounded();
    }
}

#[test]
fn scheduled_messages_on_disk_come_back_after_a_restart() {
    const COUNT: u64 = 500;
    for exchange in HOLDERS {
        let mut broker = scheduled(small_pages(), exchange, COUNT);
        // Some were ready, cancelled or rescheduled before.
        broker.sleep_until(broker.now_us + 20_000_000);
        let left = by_time(COUNT).into_iter().filter(|number| delay_ms(*number) > 20_000);
        let left: Vec<u64> = left.collect();
        let delivery_time_ms = broker.now().wall_ms() + 100_000;
        let reschedule = ScheduleOperation::Reschedule { delivery_time_ms };
        // The numbers of messages begin with 1.
        assert_eq!(operate(&mut broker, exchange, left[7] + 1, reschedule), 1);
        assert_eq!(operate(&mut broker, exchange, left[9] + 1, ScheduleOperation::Cancel), 1);
        for compacts in [false, true] {
            if compacts {
                broker.disk.compact();
            }
            let (back, pages) = broker.disk.restart(broker.now(), &broker.vhost);
            assert!(pages.written > 0);
            broker.page_store.assert_same(&broker.vhost, &(back, pages));
        }
        broker.restart(false);
        broker.consume("q", true, 0);
        broker.delivered.clear();
        broker.sleep_until(broker.now_us + 110_000_000);
        let mut expected: Vec<u64> =
            left.iter().copied().filter(|number| ![left[7], left[9]].contains(number)).collect();
        expected.push(left[7]);
        assert_eq!(delivered(&broker), expected);
        assert!(broker.vhost.pages().is_empty());
    }
}

#[test]
fn scheduled_messages_on_disk_are_marked_after_a_crash_if_their_time_had_come() {
    const COUNT: u64 = 100;
    for exchange in HOLDERS {
        let mut broker = scheduled(small_pages(), exchange, COUNT);
        // Their records may be lost: the first were perhaps delivered.
        broker.now_us += 30_000_000;
        let now_ms = broker.now_us / 1000;
        let published_ms = now_ms - 30_000;
        broker.restart(true);
        assert!(!broker.vhost.pages().is_empty());
        broker.sleep_until(broker.now_us + 60_000_000);
        let ready = ("q", MessageState::Ready);
        let browsed = browse_all(&broker.vhost, &mut broker.page_store, ready, 50);
        assert_eq!(browsed.len() as u64, COUNT);
        for message in browsed {
            let number = u64::from_le_bytes(message.entry.message.body().try_into().unwrap());
            let was_due = published_ms + delay_ms(number) <= now_ms;
            assert_eq!(message.is_redelivered(), was_due, "message {number}");
        }
    }
}

#[test]
fn messages_on_disk_are_cancelled_and_rescheduled_by_their_numbers() {
    const COUNT: u64 = 300;
    for exchange in HOLDERS {
        let mut broker = scheduled(small_pages(), exchange, COUNT);
        let wall_ms = broker.now().wall_ms();
        let order = by_time(COUNT);
        let (cancelled, later, at_once) = (order[100], order[101], order[299]);
        let cancel = ScheduleOperation::Cancel;
        assert_eq!(operate(&mut broker, exchange, cancelled + 1, cancel), 1);
        assert_eq!(operate(&mut broker, exchange, cancelled + 1, cancel), 0);
        for delivery_time_ms in [wall_ms + 90_000, wall_ms + 80_000] {
            let reschedule = ScheduleOperation::Reschedule { delivery_time_ms };
            assert_eq!(operate(&mut broker, exchange, later + 1, reschedule), 1);
        }
        assert_eq!(operate(&mut broker, exchange, at_once + 1, ScheduleOperation::Deliver), 1);
        broker.consume("q", true, 0);
        broker.sleep_until(broker.now_us);
        assert_eq!(delivered(&broker), [at_once]);
        assert_sound(&broker);
        broker.sleep_until(broker.now_us + 100_000_000);
        let mut expected = vec![at_once];
        expected.extend(order.iter().filter(|n| ![cancelled, later, at_once].contains(n)));
        expected.push(later);
        assert_eq!(delivered(&broker), expected);
        assert_eq!(broker.delivered.last().unwrap().0 / 1000, wall_ms + 80_000);
        assert!(broker.vhost.pages().is_empty());
        assert_sound(&broker);
    }
}

#[test]
fn lists_have_the_messages_on_disk_in_their_places() {
    const COUNT: u64 = 200;
    for exchange in HOLDERS {
        let mut broker = scheduled(small_pages(), exchange, COUNT);
        let order = by_time(COUNT);
        let delivery_time_ms = broker.now().wall_ms() + 100_000;
        let reschedule = ScheduleOperation::Reschedule { delivery_time_ms };
        operate(&mut broker, exchange, order[150] + 1, reschedule);
        let expected = order.iter().filter(|number| **number != order[150]);
        let expected: Vec<u64> = expected.chain([&order[150]]).map(|number| number + 1).collect();
        let access = Access::matching("guest".into(), ".*").unwrap();
        let (mut handles, mut paged, mut behind) = (Vec::new(), 0, None);
        loop {
            let filter = ScheduledFilter::default();
            let page = broker.vhost.scheduled_messages(&filter, &access, behind, 17);
            for message in &page.messages {
                handles.push(message.handle);
                if let ScheduledContent::Paged(at) = message.message {
                    paged += 1;
                    let wanted = PageSelection::Listed(vec![message.handle]);
                    let read = broker.page_store.read(at.page, wanted);
                    let [read] = &read.messages[..] else { panic!("{read:?}") };
                    assert_eq!(read.message.body(), (message.handle - 1).to_le_bytes());
                }
            }
            behind = page.next;
            if behind.is_none() {
                break;
            }
        }
        assert_eq!(handles, expected);
        assert!(paged > 100, "{paged} of {COUNT} messages are on disk");
    }
    let mut broker = scheduled(small_pages(), "", COUNT);
    for count in [3, 50, 500] {
        let delayed = ("q", MessageState::Delayed);
        let browsed = browse_all(&broker.vhost, &mut broker.page_store, delayed, count);
        let numbers = browsed
            .iter()
            .map(|one| u64::from_le_bytes(one.entry.message.body().try_into().unwrap()));
        assert_eq!(numbers.collect::<Vec<_>>(), by_time(COUNT));
    }
}

#[test]
fn messages_on_disk_leave_when_the_limit_falls() {
    const COUNT: u64 = 300;
    const LEFT: u64 = 5;
    let mut broker = scheduled(small_pages(), "", COUNT);
    let policy = queue_policy("short", "^q$", "max-length", LEFT.cast_signed());
    broker.vhost.set_policy(broker.now(), PolicyKind::User, policy);
    broker.finish();
    broker.sleep_until(broker.now_us + 1000);
    assert_eq!(broker.vhost.queue("q").unwrap().delayed_count(), LEFT);
    broker.consume("dead", true, 0);
    let order = by_time(COUNT);
    assert_eq!(delivered(&broker), order[..order.len() - usize::try_from(LEFT).unwrap()]);
    assert_sound(&broker);
}

#[test]
fn pages_of_scheduled_messages_end_with_their_queue_or_exchange() {
    const COUNT: u64 = 200;
    let without_messages = {
        let mut broker = Broker::with(small_pages());
        broker.declare("q", &dead_letters_to("dead"));
        broker.declare("dead", &Table::default());
        declare_delayed(&mut broker);
        broker.disk.references()
    };
    let delete_queue = Command::DeleteQueue(DeleteQueue {
        queue: "q",
        if_unused: false,
        if_empty: false,
        nowait: true,
    });
    let delete_exchange =
        Command::DeleteExchange { exchange: "later", if_unused: false, nowait: true };
    // The binding and one of its ends are gone.
    for (exchange, command, gone) in [
        ("", Command::PurgeQueue { queue: "q", nowait: true }, 0),
        ("", delete_queue, 2),
        ("later", delete_exchange, 2),
    ] {
        let mut broker = scheduled(small_pages(), exchange, COUNT);
        broker.apply(command);
        assert!(broker.vhost.pages().is_empty());
        assert_eq!(broker.vhost.resident_bytes(), 0);
        assert_eq!(broker.disk.references(), without_messages - gone);
        assert_sound(&broker);
        let (back, pages) = broker.disk.restart(broker.now(), &broker.vhost);
        broker.page_store.assert_same(&broker.vhost, &(back, pages));
    }
}

#[test]
fn arrivals_cut_pages_one_by_one_when_memory_becomes_scarce() {
    const COUNT: u64 = 2000;
    for exchange in HOLDERS {
        let paging = Paging { resident_bytes_max: 64 * 1024, ..small_pages() };
        let mut broker = Broker::with(paging);
        broker.declare("q", &Table::default());
        declare_delayed(&mut broker);
        let mut most = 0;
        for number in 0..COUNT {
            let before = broker.vhost.pages().len();
            publish(&mut broker, exchange, number);
            most = most.max(broker.vhost.pages().len() - before);
        }
        assert_eq!(most, 1);
        assert!(broker.vhost.resident_bytes() <= paging.resident_bytes_max + paging.page_bytes);
        assert_sound(&broker);
    }
}

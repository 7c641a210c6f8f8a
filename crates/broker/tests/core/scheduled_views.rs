//! Scheduled messages as operators find them: by name and number, behind a position, and as the places of a publish.

use std::sync::Arc;

use amqp::method::MethodId;
use amqp::properties::Properties;
use amqp::reply_code::ReplyCode;
use amqp::table::{TableBuilder, Value};
use broker::access::{Access, PermissionPattern, Permissions};
use broker::time::{Now, Time};
use broker::{
    ChannelNumber, Command, ConnectionId, Content, Publish, Request, ScheduleId, ScheduleSelector,
    ScheduleTarget, ScheduledCursor, ScheduledFilter, ScheduledPlace, Vhost, VhostOptions,
};

use crate::commands::declare_queue;

const NOW: Now = Now::from_millis(1_000_000);

/// A vhost with the queues `q` and `p`.
struct Broker {
    vhost: Vhost,
    connection: ConnectionId,
    access: Arc<Access>,
}

impl Broker {
    fn new() -> Self {
        let mut vhost = Vhost::new("/", [3; 32], VhostOptions::default());
        let access = Arc::new(Access::matching("guest".into(), ".*").unwrap());
        let connection = vhost.open_connection(Arc::clone(&access), true);
        let mut broker = Self { vhost, connection, access };
        broker.apply(Command::OpenChannel);
        for queue in ["q", "p"] {
            broker.apply(declare_queue(queue, &TableBuilder::new().finish()));
        }
        broker
    }

    fn apply(&mut self, command: Command<'_>) -> Vec<ScheduledPlace> {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        let places = self.vhost.apply_and_collect_places(NOW, self.connection, request);
        drop(self.vhost.drain_effects());
        places
    }

    /// Publishes a message to a queue, to be ready after `delay_ms`.
    fn schedule(&mut self, queue: &str, delay_ms: i64, id: Option<&str>) -> Vec<ScheduledPlace> {
        let mut headers = TableBuilder::new();
        let now_ms = i64::try_from(NOW.wall_ms()).unwrap();
        headers.insert("x-opt-delivery-time", Value::I64(now_ms + delay_ms));
        if let Some(id) = id {
            headers.insert("x-schedule-id", Value::LongStr(id.as_bytes()));
            headers.insert("x-schedule-mode", Value::LongStr(b"add"));
        }
        let headers = headers.finish();
        let mut properties = Vec::new();
        Properties { headers: Some(headers.as_ref()), ..Properties::default() }
            .encode(&mut properties);
        self.apply(Command::Publish(Publish {
            exchange: b"".as_slice().into(),
            routing_key: queue.as_bytes().into(),
            mandatory: false,
            content: Content::Assembled { properties: properties.into(), body: "m".into() },
        }))
    }

    /// Target and handle of the messages behind a position, `count` at a time.
    fn listed(&self, filter: &ScheduledFilter, behind: ScheduledCursor, count: usize) -> String {
        let (mut found, mut behind) = (Vec::new(), Some(behind));
        while behind.is_some() {
            let page = self.vhost.scheduled_messages(filter, &self.access, behind, count);
            found.extend(
                page.messages.iter().map(|one| format!("{}{}", one.target.name(), one.handle)),
            );
            behind = page.next;
        }
        found.join(" ")
    }
}

fn id(name: &str) -> ScheduleId {
    ScheduleId::new(name).unwrap()
}

#[test]
fn publish_tells_where_its_message_waits() {
    let mut broker = Broker::new();
    let places = broker.schedule("q", 500, Some("a"));
    let target = ScheduleTarget::Queue("q".into());
    let ready_at = NOW.time.plus_ms(500);
    let [place] = &places[..] else { panic!("{places:?}") };
    assert_eq!((&place.target, &place.id, place.ready_at), (&target, &Some(id("a")), ready_at));
    let found = broker.vhost.find_scheduled(
        &target,
        &ScheduleSelector::Handle(place.handle),
        &broker.access,
    );
    assert_eq!(found.unwrap()[0].ready_at, ready_at);
    assert_eq!(broker.schedule("q", 0, None), []);
    assert_eq!(broker.schedule("q", 0, Some("b")), []);
    assert_eq!(broker.schedule("none", 500, None), []);
}

#[test]
fn messages_are_found_by_name_in_the_order_of_delivery_times() {
    let mut broker = Broker::new();
    for (delay_ms, name) in [(900, "a"), (300, "a"), (600, "a"), (100, "b")] {
        broker.schedule("q", delay_ms, Some(name));
    }
    let target = ScheduleTarget::Queue("q".into());
    let find = |selector: &ScheduleSelector, access: &Access| {
        let found = broker.vhost.find_scheduled(&target, selector, access)?;
        let ms = |at: Time| at.micros_since(NOW.time) / 1000;
        Ok::<_, broker::refusal::Refusal>(found.iter().map(|one| ms(one.ready_at)).collect())
    };
    let named = |name: &str| ScheduleSelector::Id(id(name));
    assert_eq!(find(&named("a"), &broker.access), Ok(vec![300, 600, 900]));
    assert_eq!(find(&named("c"), &broker.access), Ok(vec![]));
    assert_eq!(find(&ScheduleSelector::Handle(999), &broker.access), Ok(vec![]));
    let permissions = Permissions {
        configure: PermissionPattern::nothing(),
        write: PermissionPattern::new(".*").unwrap(),
        read: PermissionPattern::nothing(),
    };
    let writer = Access { permissions, ..Access::matching("ann".into(), ".*").unwrap() };
    assert_eq!(find(&named("a"), &writer).unwrap_err().code, ReplyCode::AccessRefused);
    let missing = ScheduleTarget::Exchange("q".into());
    let missing = broker.vhost.find_scheduled(&missing, &named("a"), &broker.access);
    assert_eq!(missing.unwrap_err().code, ReplyCode::NotFound);
}

#[test]
fn lists_by_name_and_behind_a_time_are_complete() {
    let mut broker = Broker::new();
    for queue in ["q", "p"] {
        for (delay_ms, name) in [(300, "a"), (100, "b"), (300, "a"), (200, "a")] {
            broker.schedule(queue, delay_ms, Some(name));
        }
    }
    let start = ScheduledCursor::default();
    let all = ScheduledFilter::default();
    let named = ScheduledFilter { id: Some(id("a")), ..ScheduledFilter::default() };
    let behind = |ms| ScheduledCursor::behind(NOW.time.plus_ms(ms));
    for count in [1, 2, 3, 100] {
        assert_eq!(broker.listed(&all, start, count), "q2 p2 q4 p4 q1 q3 p1 p3", "{count}");
        assert_eq!(broker.listed(&named, start, count), "q4 p4 q1 q3 p1 p3", "{count}");
        assert_eq!(broker.listed(&named, behind(199), count), "q4 p4 q1 q3 p1 p3", "{count}");
        assert_eq!(broker.listed(&named, behind(200), count), "q1 q3 p1 p3", "{count}");
        assert_eq!(broker.listed(&all, behind(300), count), "", "{count}");
    }
    let one = ScheduledFilter {
        target: Some(ScheduleTarget::Queue("p".into())),
        before: Some(NOW.time.plus_ms(300)),
        ..ScheduledFilter::default()
    };
    assert_eq!(broker.listed(&one, start, 1), "p2 p4");
}

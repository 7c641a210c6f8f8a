//! Families of queues.

use server::snapshot::queue_levels::{LEVELS, Level, LevelGroup};
use server::snapshot::scrape::QueueScrape;

use crate::metrics::family::{Family, Objects, counter, gauge, whole};
use crate::metrics::text::{Kind, Namespace, Text, Value};

/// Writes the levels of a group.
pub(super) fn write_levels(
    text: &mut Text,
    namespace: Namespace,
    group: LevelGroup,
    objects: &Objects<'_, QueueScrape>,
) {
    for row in LEVELS {
        if let Some((_, name)) = row.family.filter(|(of, _)| *of == group) {
            let value = |queue: &QueueScrape| shown((row.value)(&queue.levels));
            let mut samples = text.family(namespace, name, Kind::Gauge, row.meaning);
            objects.put_all(&mut samples, value);
        }
    }
}

fn shown(level: Level) -> Option<Value> {
    match level {
        Level::Whole(number) => Some(Value::Whole(number)),
        Level::Millionths(share) => Some(Value::Micros(share)),
        Level::Missing => None,
    }
}

/// Families of `queue_delivery_metrics`.
pub(super) const DELIVERIES: [Family<QueueScrape>; 7] = [
    counter("queue_get_ack_total", "Answers to gets that are to be acknowledged", |q| {
        whole(q.counters.deliveries.got())
    }),
    counter("queue_get_total", "Answers to gets that need no acknowledgement", |q| {
        whole(q.counters.deliveries.got_no_ack())
    }),
    counter(
        "queue_messages_delivered_ack_total",
        "Messages delivered to consumers that acknowledge",
        |q| whole(q.counters.deliveries.delivered()),
    ),
    counter(
        "queue_messages_delivered_total",
        "Messages delivered to consumers that need not acknowledge",
        |q| whole(q.counters.deliveries.delivered_no_ack()),
    ),
    counter(
        "queue_messages_redelivered_total",
        "Deliveries of messages that had been delivered before",
        |q| whole(q.counters.deliveries.redelivered),
    ),
    counter("queue_messages_acked_total", "Messages acknowledged", |q| {
        whole(q.counters.deliveries.acknowledged)
    }),
    counter("queue_get_empty_total", "Gets that found nothing", |q| {
        whole(q.counters.deliveries.got_nothing)
    }),
];

/// Families of `channel_queue_exchange_metrics`. RabbitMQ also separates them by channel and exchange.
pub(super) const PUBLISHED: [Family<QueueScrape>; 1] =
    [counter("queue_messages_published_total", "Publishes that were routed to the queue", |q| {
        whole(q.counters.published)
    })];

/// Families of `queue_time_metrics`: next expiry, and the time that messages have waited.
pub(super) const TIMES: [Family<QueueScrape>; 4] = [
    gauge("queue_oldest_message_age_seconds", "Age of the oldest ready message", |q| {
        q.oldest_age_us.map(Value::Micros)
    }),
    gauge(
        "queue_next_deadline_timestamp_seconds",
        "When the next waiting message expires, in seconds of the epoch",
        |q| q.first_deadline_us.map(Value::Micros),
    ),
    gauge(
        "queue_next_delivery_timestamp_seconds",
        "When the next scheduled message is ready, in seconds of the epoch",
        |q| q.next_delivery_us.map(Value::Micros),
    ),
    gauge(
        "queue_lease_ends_timestamp_seconds",
        "When the unused queue expires, in seconds of the epoch",
        |q| q.lease_ends_us.map(Value::Micros),
    ),
];

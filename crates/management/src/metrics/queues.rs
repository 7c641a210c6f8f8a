//! Families of queues.

use crate::metrics::family::{Family, counter, gauge, whole};
use crate::metrics::text::Value;
use crate::snapshot::scrape::QueueScrape;

/// Families of `queue_coarse_metrics`.
pub(super) const COARSE: [Family<QueueScrape>; 3] = [
    gauge("queue_messages_ready", "Messages that wait for a consumer", |q| whole(q.ready.messages)),
    gauge("queue_messages_unacked", "Messages delivered and not acknowledged", |q| {
        whole(q.unacked.messages)
    }),
    gauge("queue_messages", "Messages in the queue, in whichever state", |q| {
        whole(q.total().messages)
    }),
];

/// The family of `queue_consumer_count`, also part of `queue_metrics`.
pub(super) const CONSUMER_COUNT: [Family<QueueScrape>; 1] =
    [gauge("queue_consumers", "Consumers of the queue", |q| whole(q.consumers))];

/// Families of `queue_metrics`, without the number of consumers.
pub(super) const METRICS: [Family<QueueScrape>; 17] = [
    gauge(
        "queue_consumer_capacity",
        "Share of time in which a consumer could take a message",
        capacity,
    ),
    gauge("queue_consumer_utilisation", "The same as queue_consumer_capacity", capacity),
    gauge("queue_messages_ram", "Ready and unacknowledged messages in memory", |q| {
        whole(q.ready_in_memory().messages + q.unacked.messages)
    }),
    gauge(
        "queue_messages_ram_bytes",
        "Bytes of ready and unacknowledged messages in memory",
        |q| whole(q.ready_in_memory().bytes + q.unacked.bytes),
    ),
    gauge("queue_messages_ready_ram", "Ready messages in memory", |q| {
        whole(q.ready_in_memory().messages)
    }),
    gauge("queue_messages_unacked_ram", "Unacknowledged messages, which are all in memory", |q| {
        whole(q.unacked.messages)
    }),
    gauge("queue_messages_persistent", "Messages that outlive a restart", |q| {
        whole(q.persistent.messages)
    }),
    gauge("queue_messages_persistent_bytes", "Bytes of messages that outlive a restart", |q| {
        whole(q.persistent.bytes)
    }),
    gauge("queue_messages_bytes", "Bytes of all messages in the queue", |q| whole(q.total().bytes)),
    gauge("queue_messages_ready_bytes", "Bytes of ready messages", |q| whole(q.ready.bytes)),
    gauge("queue_messages_unacked_bytes", "Bytes of unacknowledged messages", |q| {
        whole(q.unacked.bytes)
    }),
    gauge("queue_messages_paged_out", "Ready messages that wait on disk", |q| {
        whole(q.paged_out.messages)
    }),
    gauge("queue_messages_paged_out_bytes", "Bytes of ready messages that wait on disk", |q| {
        whole(q.paged_out.bytes)
    }),
    gauge(
        "queue_head_message_timestamp",
        "The timestamp property of the message that is delivered next, in seconds of the epoch",
        |q| q.head_timestamp_s.map(Value::Whole),
    ),
    gauge("queue_messages_delayed", "Messages that wait before they are ready", |q| {
        whole(q.delayed.messages)
    }),
    gauge("queue_messages_dlx_pending", "Dead messages that are kept", |q| {
        whole(q.pending.messages)
    }),
    gauge("queue_messages_dlx_pending_bytes", "Bytes of dead messages that are kept", |q| {
        whole(q.pending.bytes)
    }),
];

fn capacity(queue: &QueueScrape) -> Option<Value> {
    Some(Value::Micros(queue.consumer_capacity_ppm))
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

//! Families of exchanges.

use server::snapshot::scrape::ExchangeScrape;

use crate::metrics::family::{Family, counter, gauge, whole};
use crate::metrics::text::Value;

/// Families of `exchange_metrics`, without confirms, which are counted by vhost.
pub(super) const METRICS: [Family<ExchangeScrape>; 6] = [
    counter("exchange_messages_published_total", "Messages published to the exchange", |e| {
        whole(e.counters.published_in)
    }),
    counter(
        "exchange_messages_unroutable_returned_total",
        "Publishes that no queue got and that came back",
        |e| whole(e.counters.returned_unroutable),
    ),
    counter(
        "exchange_messages_unroutable_dropped_total",
        "Publishes that no queue got and that were dropped",
        |e| whole(e.counters.dropped_unroutable),
    ),
    counter("exchange_messages_refused_total", "Publishes that a full queue refused", |e| {
        whole(e.counters.refused)
    }),
    gauge("exchange_messages_delayed", "Messages that wait in a delayed exchange", |e| {
        whole(e.delayed)
    }),
    gauge(
        "exchange_next_delivery_timestamp_seconds",
        "When the delayed exchange routes its next message, in seconds of the epoch",
        |e| e.next_delivery_us.map(Value::Micros),
    ),
];

/// Families of `queue_exchange_metrics`. RabbitMQ also separates them by queue.
pub(super) const ROUTED: [Family<ExchangeScrape>; 1] = [counter(
    "queue_exchange_messages_published_total",
    "Queues that publishes to the exchange were routed to, in all",
    |e| whole(e.counters.published_out),
)];

/// The family of `exchange_names`.
pub(super) const NAMES: [Family<ExchangeScrape>; 1] =
    [gauge("exchange_name", "1 for every exchange", |_| whole(1))];

/// The family of `exchange_bindings`.
pub(super) const BINDINGS: [Family<ExchangeScrape>; 1] =
    [gauge("exchange_bindings", "Bindings that lead away from the exchange", |e| {
        whole(e.bindings)
    })];

//! Families of exchanges.

use crate::metrics::family::{Family, counter, gauge, whole};
use crate::snapshot::scrape::ExchangeScrape;

/// `exchange_metrics`, but for confirms, which are counted by vhost.
pub(super) const METRICS: [Family<ExchangeScrape>; 3] = [
    counter("exchange_messages_published_total", "Messages published to the exchange", |e| {
        whole(e.published_in)
    }),
    counter(
        "exchange_messages_unroutable_returned_total",
        "Publishes that no queue got and that came back",
        |e| whole(e.returned_unroutable),
    ),
    counter(
        "exchange_messages_unroutable_dropped_total",
        "Publishes that no queue got and that were dropped",
        |e| whole(e.dropped_unroutable),
    ),
];

/// `queue_exchange_metrics`, which RabbitMQ tells apart by queue, too.
pub(super) const ROUTED: [Family<ExchangeScrape>; 1] = [counter(
    "queue_exchange_messages_published_total",
    "Queues that publishes to the exchange were routed to, in all",
    |e| whole(e.published_out),
)];

/// `exchange_names`.
pub(super) const NAMES: [Family<ExchangeScrape>; 1] =
    [gauge("exchange_name", "1 for every exchange", |_| whole(1))];

/// `exchange_bindings`.
pub(super) const BINDINGS: [Family<ExchangeScrape>; 1] =
    [gauge("exchange_bindings", "Bindings that lead away from the exchange", |e| {
        whole(e.bindings)
    })];

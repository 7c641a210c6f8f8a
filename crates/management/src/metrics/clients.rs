//! Families of channels and connections.

use server::snapshot::scrape::{ChannelScrape, ConnectionScrape};

use crate::metrics::family::{Family, counter, gauge, whole};

/// Families of `channel_metrics`.
pub(super) const CHANNEL: [Family<ChannelScrape>; 7] = [
    gauge("channel_consumers", "Consumers on the channel", |c| whole(c.consumers)),
    gauge("channel_messages_unacked", "Messages delivered and not acknowledged", |c| {
        whole(c.unacked)
    }),
    gauge("channel_messages_unconfirmed", "Publishes that wait for their confirm", |c| {
        whole(c.unconfirmed)
    }),
    gauge("channel_messages_uncommitted", "Publishes that wait for the commit", |c| {
        whole(c.uncommitted)
    }),
    gauge("channel_acks_uncommitted", "Settled deliveries that wait for the commit", |c| {
        whole(c.acks_uncommitted)
    }),
    gauge("consumer_prefetch", "Deliveries that each consumer may have; 0 is unlimited", |c| {
        whole(c.prefetch)
    }),
    gauge("channel_prefetch", "Deliveries that all consumers may have; 0 is unlimited", |c| {
        whole(c.global_prefetch)
    }),
];

/// Families of `channel_exchange_metrics`. RabbitMQ also separates them by exchange.
pub(super) const PUBLISHES: [Family<ChannelScrape>; 5] = [
    counter("channel_messages_published_total", "Messages published", |c| {
        whole(c.counters.published)
    }),
    counter("channel_messages_confirmed_total", "Publishes confirmed", |c| {
        whole(c.counters.confirmed)
    }),
    counter(
        "channel_messages_unroutable_returned_total",
        "Publishes that no queue got and that came back",
        |c| whole(c.counters.returned_unroutable),
    ),
    counter(
        "channel_messages_unroutable_dropped_total",
        "Publishes that no queue got and that were dropped",
        |c| whole(c.counters.dropped_unroutable),
    ),
    counter("channel_messages_refused_total", "Publishes that a full queue refused", |c| {
        whole(c.counters.refused)
    }),
];

/// Families of `channel_queue_metrics`. RabbitMQ also separates them by queue.
pub(super) const DELIVERIES: [Family<ChannelScrape>; 7] = [
    counter("channel_get_ack_total", "Answers to gets that are to be acknowledged", |c| {
        whole(c.counters.deliveries.got())
    }),
    counter("channel_get_total", "Answers to gets that need no acknowledgement", |c| {
        whole(c.counters.deliveries.got_no_ack())
    }),
    counter(
        "channel_messages_delivered_ack_total",
        "Messages delivered to consumers that acknowledge",
        |c| whole(c.counters.deliveries.delivered()),
    ),
    counter(
        "channel_messages_delivered_total",
        "Messages delivered to consumers that need not acknowledge",
        |c| whole(c.counters.deliveries.delivered_no_ack() + c.direct_replies),
    ),
    counter(
        "channel_messages_redelivered_total",
        "Deliveries of messages that had been delivered before",
        |c| whole(c.counters.deliveries.redelivered),
    ),
    counter("channel_messages_acked_total", "Messages acknowledged", |c| {
        whole(c.counters.deliveries.acknowledged)
    }),
    counter("channel_get_empty_total", "Gets that found nothing", |c| {
        whole(c.counters.deliveries.got_nothing)
    }),
];

/// Families of `connection_coarse_metrics`.
pub(super) const TRAFFIC: [Family<ConnectionScrape>; 2] = [
    counter("connection_incoming_bytes_total", "Bytes received", |c| {
        whole(c.traffic.received_bytes)
    }),
    counter("connection_outgoing_bytes_total", "Bytes sent", |c| whole(c.traffic.sent_bytes)),
];

/// Families of `connection_metrics`.
pub(super) const CONNECTION: [Family<ConnectionScrape>; 4] = [
    counter("connection_incoming_packets_total", "Reads that brought bytes", |c| {
        whole(c.traffic.reads)
    }),
    counter("connection_outgoing_packets_total", "Writes that took bytes", |c| {
        whole(c.traffic.writes)
    }),
    gauge("connection_pending_packets", "1 if bytes wait for the socket", |c| whole(c.pending)),
    gauge("connection_channels", "Open channels", |c| whole(c.channels)),
];

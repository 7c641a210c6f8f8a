//! Sums over all objects of a kind. Counters come from the vhosts, which keep counting for deleted objects,
//! so that sums only grow while the broker runs.

use broker::statistics::VhostCounters;
use broker::{Deliveries, ExchangeCounters, ExchangeType, Name};
use server::snapshot::queue::QueueView;
use server::snapshot::scrape::{ChannelScrape, ConnectionScrape, ExchangeScrape, VhostScrape};

fn deliveries(vhosts: &[VhostScrape]) -> Deliveries {
    let mut sum = Deliveries::default();
    vhosts.iter().flat_map(|vhost| &vhost.deliveries).for_each(|of_type| sum.add(of_type));
    sum
}

/// The sum over all queues.
pub(super) fn queues(vhosts: &[VhostScrape]) -> QueueView {
    let mut sum = QueueView::sum();
    vhosts.iter().flat_map(|vhost| &vhost.queues).for_each(|queue| sum.levels.add(&queue.levels));
    sum.counters.published = vhosts.iter().map(|vhost| vhost.counters.routed).sum();
    sum.counters.deliveries = deliveries(vhosts);
    sum
}

/// The sum over all channels.
pub(super) fn channels(vhosts: &[VhostScrape]) -> ChannelScrape {
    let mut sum = ChannelScrape::default();
    sum.counters.deliveries = deliveries(vhosts);
    for channel in vhosts.iter().flat_map(|vhost| &vhost.channels) {
        sum.consumers += channel.consumers;
        sum.unacked += channel.unacked;
        sum.unconfirmed += channel.unconfirmed;
        sum.uncommitted += channel.uncommitted;
        sum.acks_uncommitted += channel.acks_uncommitted;
        sum.prefetch += channel.prefetch;
        sum.global_prefetch += channel.global_prefetch;
    }
    for counters in vhosts.iter().map(|vhost| &vhost.counters) {
        sum.counters.published += counters.published;
        sum.counters.confirmed += counters.confirmed;
        sum.counters.returned_unroutable += counters.returned_unroutable;
        sum.counters.dropped_unroutable += counters.dropped_unroutable;
        sum.counters.refused += counters.publishes_refused;
        sum.direct_replies += counters.direct_replies;
    }
    sum
}

/// The sum over all connections.
pub(super) fn connections(vhosts: &[VhostScrape]) -> ConnectionScrape {
    let mut sum = ConnectionScrape::default();
    for vhost in vhosts {
        sum.traffic.add(&vhost.traffic);
        for connection in &vhost.connections {
            sum.channels += connection.channels;
            sum.pending += connection.pending;
        }
    }
    sum
}

/// The sum over all exchanges.
pub(super) fn exchanges(vhosts: &[VhostScrape]) -> ExchangeScrape {
    let sum =
        |count: fn(&VhostCounters) -> u64| vhosts.iter().map(|v| count(&v.counters)).sum::<u64>();
    let exchanges = || vhosts.iter().flat_map(|vhost| &vhost.exchanges);
    ExchangeScrape {
        name: Name::default(),
        kind: ExchangeType::Direct,
        bindings: exchanges().map(|exchange| exchange.bindings).sum(),
        counters: ExchangeCounters {
            published_in: sum(|v| v.published),
            published_out: sum(|v| v.routed),
            returned_unroutable: sum(|v| v.returned_unroutable),
            dropped_unroutable: sum(|v| v.dropped_unroutable),
            refused: sum(|v| v.publishes_refused),
        },
        delayed: exchanges().map(|exchange| exchange.delayed).sum(),
        next_delivery_us: exchanges().filter_map(|exchange| exchange.next_delivery_us).min(),
    }
}

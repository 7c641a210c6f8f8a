//! Sums over all objects of a kind. Counters come from the vhosts, which keep counting for deleted objects,
//! so that sums only grow while the broker runs.

use broker::{Deliveries, ExchangeType, Name};

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
    let mut sum = ChannelScrape { deliveries: deliveries(vhosts), ..ChannelScrape::default() };
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
        sum.published += counters.published;
        sum.confirmed += counters.confirmed;
        sum.returned_unroutable += counters.returned_unroutable;
        sum.dropped_unroutable += counters.dropped_unroutable;
        sum.refused += counters.publishes_refused;
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
    let counters = || vhosts.iter().map(|vhost| &vhost.counters);
    let exchanges = || vhosts.iter().flat_map(|vhost| &vhost.exchanges);
    ExchangeScrape {
        name: Name::default(),
        kind: ExchangeType::Direct,
        bindings: exchanges().map(|exchange| exchange.bindings).sum(),
        published_in: counters().map(|counters| counters.published).sum(),
        published_out: counters().map(|counters| counters.routed).sum(),
        returned_unroutable: counters().map(|counters| counters.returned_unroutable).sum(),
        dropped_unroutable: counters().map(|counters| counters.dropped_unroutable).sum(),
        refused: counters().map(|counters| counters.publishes_refused).sum(),
        delayed: exchanges().map(|exchange| exchange.delayed).sum(),
        next_delivery_us: exchanges().filter_map(|exchange| exchange.next_delivery_us).min(),
    }
}

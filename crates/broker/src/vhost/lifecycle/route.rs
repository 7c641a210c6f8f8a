//! Routing: from an exchange and keys to queues, through exchange-to-exchange bindings, alternate exchanges and the
//! default exchange. Each exchange is visited once and each queue found once. The default exchange also routes to
//! the addresses of direct replies.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use crate::exchange::{Destination, Keys, Routable};
use crate::ids::ExchangeId;
use crate::message::{Envelope, RoutingKey};
use crate::publish_properties::delivery_time::ExchangeDelay;
use crate::route::Route;
use crate::vhost::Vhost;

impl Vhost {
    /// The queues that a message with this envelope and these properties reaches from `exchange`, and the delayed
    /// exchanges that hold it.
    pub(in crate::vhost) fn route(
        &mut self,
        exchange: ExchangeId,
        envelope: &Envelope,
        properties: &[u8],
    ) -> Route {
        self.route_delayed(exchange, envelope, properties, |properties| {
            ExchangeDelay::of(properties).millis().is_some()
        })
    }

    /// The queues that a message would reach if no exchange delayed it.
    pub(in crate::vhost) fn route_at_once(
        &mut self,
        exchange: ExchangeId,
        envelope: &Envelope,
        properties: &[u8],
    ) -> Route {
        self.route_delayed(exchange, envelope, properties, |_| false)
    }

    fn route_delayed(
        &mut self,
        exchange: ExchangeId,
        envelope: &Envelope,
        properties: &[u8],
        is_delayed: impl Fn(&[u8]) -> bool,
    ) -> Route {
        let mut route = Route { can_be_remembered: envelope.has_one_key(), ..Route::default() };
        let mut keys = Keys::new(envelope.routing_keys().map(RoutingKey::as_bytes));
        let mut to_visit: SmallVec<[ExchangeId; 4]> = SmallVec::new();
        to_visit.push(exchange);
        let first = exchange;
        let mut others = BTreeSet::new();
        let mut is_new = |exchange| exchange != first && others.insert(exchange);
        let mut visited = 0;
        while let Some(id) = to_visit.get(visited).copied() {
            visited += 1;
            // Bindings and names lead to existing exchanges.
            let exchange = self.topology.known_exchange(id);
            route.can_be_remembered &= exchange.kind.routes_by_key_alone();
            if exchange.held.is_some() {
                route.reaches_delayed = true;
                if is_delayed(properties) {
                    route.holders.push(id);
                    continue;
                }
            }
            let mut matched = false;
            if exchange.is_default() {
                for key in &keys.list {
                    let name = std::str::from_utf8(key).unwrap_or_default();
                    let queue = self.topology.queue_id(name);
                    let requester = self.connections.replies_at(name);
                    route.queues.extend(queue);
                    route.requesters.extend(requester);
                    route.can_be_remembered &= requester.is_none();
                    matched |= queue.is_some() || requester.is_some();
                }
            } else {
                let mut found = |destination| {
                    matched = true;
                    match destination {
                        Destination::Queue(queue) => route.queues.push(queue),
                        Destination::Exchange(next) if is_new(next) => to_visit.push(next),
                        Destination::Exchange(_) => {}
                    }
                };
                if let [routing_key] = *keys.list {
                    exchange.route(
                        Routable { routing_key, properties },
                        &mut self.random,
                        &mut found,
                    );
                } else {
                    exchange.route_all(&mut keys, properties, &mut self.random, &mut found);
                }
            }
            if !matched
                && let Some(alternate) = &exchange.alternate.in_force
                && let Some(alternate) = self.topology.exchange_id(alternate)
                && is_new(alternate)
            {
                to_visit.push(alternate);
            }
        }
        sort_and_dedup(&mut route.queues);
        sort_and_dedup(&mut route.requesters);
        route
    }
}

fn sort_and_dedup<T: Ord, const N: usize>(list: &mut SmallVec<[T; N]>) {
    if list.len() > 1 {
        list.sort_unstable();
        list.dedup();
    }
}

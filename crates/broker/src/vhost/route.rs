//! From an exchange and keys to queues: exchange-to-exchange bindings, alternate exchanges and the
//! default exchange included, each exchange visited once, each queue found once (spec C-4).

use smallvec::SmallVec;

use super::Vhost;
use crate::exchange::{Destination, Routable};
use crate::ids::{ExchangeId, QueueId};
use crate::message::Envelope;

/// Where a message goes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Route {
    /// Its queues, each once, in a stable order.
    pub(super) queues: SmallVec<[QueueId; 4]>,
    /// It depends on nothing but the exchange, the key and the topology.
    pub(super) can_be_remembered: bool,
}

impl Vhost {
    /// The queues that a message with this envelope and these properties reaches from `exchange`.
    pub(super) fn route(
        &mut self,
        exchange: ExchangeId,
        envelope: &Envelope,
        properties: &[u8],
    ) -> Route {
        let mut route =
            Route { queues: SmallVec::new(), can_be_remembered: envelope.has_one_key() };
        let mut to_visit: SmallVec<[ExchangeId; 4]> = SmallVec::new();
        to_visit.push(exchange);
        let mut visited = 0;
        while let Some(id) = to_visit.get(visited).copied() {
            visited += 1;
            let Self { exchanges, queue_names, random, .. } = self;
            let Some(exchange) = exchanges.get(id) else {
                continue;
            };
            route.can_be_remembered &= exchange.kind.routes_by_key_alone();
            let mut matched = false;
            for key in envelope.routing_keys() {
                if exchange.is_default() {
                    let queue = key.as_str().and_then(|name| queue_names.get(name));
                    route.queues.extend(queue.copied());
                    matched |= queue.is_some();
                    continue;
                }
                let message = Routable { routing_key: key.as_bytes(), properties };
                exchange.route(message, random, &mut |destination| {
                    matched = true;
                    match destination {
                        Destination::Queue(queue) => route.queues.push(queue),
                        Destination::Exchange(next) if to_visit.contains(&next) => {}
                        Destination::Exchange(next) => to_visit.push(next),
                    }
                });
            }
            if !matched
                && let Some(alternate) = &exchange.alternate
                && let Some(alternate) = self.exchange_names.get(&**alternate)
                && !to_visit.contains(alternate)
            {
                to_visit.push(*alternate);
            }
        }
        if route.queues.len() > 1 {
            route.queues.sort_unstable();
            route.queues.dedup();
        }
        route
    }
}

//! Queues that are reachable from an exchange when the message is not known. The walk is that of `route`, but each
//! queue is marked as certain or possible.

use std::collections::BTreeMap;

use crate::exchange::{Certainty, Destination};
use crate::ids::{ExchangeId, QueueId};
use crate::message::Name;
use crate::vhost::Vhost;

/// Queues that messages can reach from an exchange.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(in crate::vhost) struct ReachableQueues {
    /// The queues; certain ones get every message.
    pub(in crate::vhost) queues: BTreeMap<QueueId, Certainty>,
    /// Exchanges on the way, without the first.
    pub(in crate::vhost) via: Vec<Name>,
    /// Any queue may be reachable: the default exchange is reached with unknown keys.
    pub(in crate::vhost) is_anywhere: bool,
    /// The queues depend on the routing key.
    pub(in crate::vhost) depends_on_key: bool,
    /// The walk was cut short: there may be more queues.
    pub(in crate::vhost) is_cut: bool,
}

impl ReachableQueues {
    /// Adds the queues that other messages from the same queue reach.
    pub(in crate::vhost) fn or(mut self, other: Self) -> Self {
        for (queue, certainty) in &mut self.queues {
            *certainty = (*certainty).min(*other.queues.get(queue).unwrap_or(&Certainty::Possible));
        }
        for (queue, _) in other.queues {
            self.queues.entry(queue).or_insert(Certainty::Possible);
        }
        self.via.extend(other.via);
        self.via.sort_unstable();
        self.via.dedup();
        self.is_anywhere |= other.is_anywhere;
        self.depends_on_key |= other.depends_on_key;
        self.is_cut |= other.is_cut;
        self
    }
}

impl Vhost {
    /// The queues that messages with this key can reach from `exchange`; without a key, messages with any
    /// key. `steps` bounds the destinations to visit and is reduced by those visited.
    pub(in crate::vhost) fn reach(
        &self,
        exchange: ExchangeId,
        key: Option<&[u8]>,
        steps: &mut usize,
    ) -> ReachableQueues {
        let mut reach = ReachableQueues::default();
        let mut visited: BTreeMap<ExchangeId, Certainty> = BTreeMap::new();
        let mut to_visit = vec![(exchange, Certainty::Certain)];
        while let Some((id, certainty)) = to_visit.pop() {
            // What is certain makes more certain than what was only possible.
            if visited.get(&id).is_some_and(|before| *before >= certainty) {
                continue;
            }
            let exchange = self.topology.known_exchange(id);
            if visited.insert(id, certainty).is_none() && visited.len() > 1 {
                reach.via.push(exchange.name.clone());
            }
            if *steps == 0 {
                reach.is_cut = true;
                continue;
            }
            let mut found = |queue, of: Certainty| {
                let known = reach.queues.entry(queue).or_insert(Certainty::Possible);
                *known = (*known).max(of.min(certainty));
            };
            let matched = if exchange.is_default() {
                reach.depends_on_key = true;
                let text = key.map(|key| std::str::from_utf8(key).unwrap_or_default());
                let queue = text.and_then(|name| self.topology.queue_id(name));
                queue.into_iter().for_each(|queue| found(queue, Certainty::Certain));
                reach.is_anywhere |= key.is_none();
                *steps = steps.saturating_sub(1);
                match key {
                    None => Some(Certainty::Possible),
                    Some(_) => queue.map(|_| Certainty::Certain),
                }
            } else {
                reach.depends_on_key |= exchange.looks_at_keys();
                exchange.reach(key, &mut |destination, of| {
                    *steps = steps.saturating_sub(1);
                    match destination {
                        Destination::Queue(queue) => found(queue, of),
                        Destination::Exchange(next) => to_visit.push((next, of.min(certainty))),
                    }
                })
            };
            if matched != Some(Certainty::Certain)
                && let Some(alternate) = &exchange.alternate.in_force
                && let Some(alternate) = self.topology.exchange_id(alternate)
            {
                let of = if matched.is_none() { Certainty::Certain } else { Certainty::Possible };
                to_visit.push((alternate, of.min(certainty)));
            }
        }
        reach.via.sort_unstable();
        reach
    }
}

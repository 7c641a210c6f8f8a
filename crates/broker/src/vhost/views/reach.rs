//! Where messages can go from an exchange, told without a message: the walk of `route`, with what is
//! certain kept apart from what depends on messages.

use std::collections::BTreeMap;

use crate::exchange::{Chance, Destination};
use crate::ids::{ExchangeId, QueueId};
use crate::message::Name;
use crate::vhost::Vhost;

/// Where messages can go.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(in crate::vhost) struct Reach {
    /// Queues, with whether every message goes there.
    pub(in crate::vhost) queues: BTreeMap<QueueId, Chance>,
    /// Exchanges on the way, without the first.
    pub(in crate::vhost) via: Vec<Name>,
    /// Any queue may be one of them: the default exchange is asked for keys that are not known.
    pub(in crate::vhost) is_anywhere: bool,
    /// It depends on the routing key.
    pub(in crate::vhost) depends_on_key: bool,
    /// There was too much to look at, and there may be more.
    pub(in crate::vhost) is_cut: bool,
}

impl Reach {
    /// Also what other messages reach, with which these have their place in common.
    pub(in crate::vhost) fn or(mut self, other: Self) -> Self {
        for (queue, chance) in &mut self.queues {
            *chance = (*chance).min(*other.queues.get(queue).unwrap_or(&Chance::Possible));
        }
        for (queue, _) in other.queues {
            self.queues.entry(queue).or_insert(Chance::Possible);
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
    /// The queues that messages with this key can reach from `exchange`; without a key, messages with
    /// any. `steps` is how many destinations may be looked at, and shrinks by those that were.
    pub(in crate::vhost) fn reach(
        &self,
        exchange: ExchangeId,
        key: Option<&[u8]>,
        steps: &mut usize,
    ) -> Reach {
        let mut reach = Reach::default();
        let mut visited: BTreeMap<ExchangeId, Chance> = BTreeMap::new();
        let mut to_visit = vec![(exchange, Chance::Certain)];
        while let Some((id, chance)) = to_visit.pop() {
            // What is certain makes more certain than what was only possible.
            if visited.get(&id).is_some_and(|before| *before >= chance) {
                continue;
            }
            let exchange = self.topology.known_exchange(id);
            if visited.insert(id, chance).is_none() && visited.len() > 1 {
                reach.via.push(exchange.name.clone());
            }
            if *steps == 0 {
                reach.is_cut = true;
                continue;
            }
            let mut found = |queue, of: Chance| {
                let known = reach.queues.entry(queue).or_insert(Chance::Possible);
                *known = (*known).max(of.min(chance));
            };
            let matched = if exchange.is_default() {
                reach.depends_on_key = true;
                let text = key.map(|key| std::str::from_utf8(key).unwrap_or_default());
                let queue = text.and_then(|name| self.topology.queue_id(name));
                queue.into_iter().for_each(|queue| found(queue, Chance::Certain));
                reach.is_anywhere |= key.is_none();
                *steps = steps.saturating_sub(1);
                match key {
                    None => Some(Chance::Possible),
                    Some(_) => queue.map(|_| Chance::Certain),
                }
            } else {
                reach.depends_on_key |= exchange.looks_at_keys();
                exchange.reach(key, &mut |destination, of| {
                    *steps = steps.saturating_sub(1);
                    match destination {
                        Destination::Queue(queue) => found(queue, of),
                        Destination::Exchange(next) => to_visit.push((next, of.min(chance))),
                    }
                })
            };
            if matched != Some(Chance::Certain)
                && let Some(alternate) = &exchange.alternate
                && let Some(alternate) = self.topology.exchange_id(alternate)
            {
                let of = if matched.is_none() { Chance::Certain } else { Chance::Possible };
                to_visit.push((alternate, of.min(chance)));
            }
        }
        reach.via.sort_unstable();
        reach
    }
}

//! The dead-letter map: the queues that dead letters come from, the exchanges they pass through, the queues
//! they reach, and the problems on these routes.
//!
//! [`DeadLetterMapBuilder`](crate::DeadLetterMapBuilder) copies the topology from a vhost in slices; evaluating the copy does not need the
//! vhost any more. `warnings` reports dead ends, `loops` reports cycles, and `targets` checks the queues that
//! dead letters reach.

mod components;
mod delay;
mod loops;
mod targets;
mod warning;
mod warnings;

use std::sync::Arc;

use crate::exchange::ExchangeType;
use crate::ids::QueueNumber;
use crate::message::{Name, RoutingKey};
use crate::policy::Source;
use crate::queue::{DeathCounters, QueueType, Settings};
use crate::setting::PolicyKey;
use crate::time::Time;
pub use delay::{DelayPlace, MapDelay};
pub use warning::{MapWarning, Severity, WarningKind};

/// The part of a vhost's topology that takes part in dead-lettering. Queues, exchanges and routes refer to
/// each other by index into these lists.
#[derive(Clone, PartialEq, Debug)]
pub struct DeadLetterMap {
    /// Queues that have a dead-letter exchange or a delay, or that dead letters or delayed messages can reach, sorted by
    /// name.
    pub queues: Vec<MapQueue>,
    /// The dead-letter exchanges, including those that do not exist, sorted by name.
    pub exchanges: Vec<MapExchange>,
    /// Routes from the dead-letter exchanges to queues.
    pub routes: Vec<MapRoute>,
    /// One edge for each queue with a dead-letter exchange, sorted by name of the queue.
    pub edges: Vec<MapEdge>,
    /// Delayed exchanges, queues with delayed retry, and queues in which messages wait for their delivery time, sorted
    /// by kind and name.
    pub delays: Vec<MapDelay>,
    /// Problems found in the map, the most severe first.
    pub warnings: Vec<MapWarning>,
    /// True if the map is complete; false if the topology exceeds the limit of a map.
    pub is_whole: bool,
}

/// A queue of the map.
#[derive(Clone, PartialEq, Debug)]
pub struct MapQueue {
    /// The queue name.
    pub name: Name,
    /// The number of the queue, which identifies its samples.
    pub number: QueueNumber,
    /// The queue type.
    pub kind: QueueType,
    /// The settings in force.
    pub settings: Settings,
    /// Messages in the queue.
    pub messages: u64,
    /// Consumers of the queue.
    pub consumers: u32,
    /// Counters of the messages that died in the queue.
    pub deaths: DeathCounters,
    /// The first deadline of a message that waits in the queue, if known.
    pub first_deadline: Option<Time>,
}

/// A dead-letter exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapExchange {
    /// The exchange name.
    pub name: Name,
    /// The exchange type; none if the exchange does not exist.
    pub kind: Option<ExchangeType>,
}

/// The destinations of dead letters that are routed alike, shared by all queues that send them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the route")]
pub struct MapRoute {
    /// Index of the dead-letter exchange.
    pub exchange: usize,
    /// Indices of the queues that can be reached, sorted by name.
    pub to: Vec<usize>,
    /// Further exchanges on the way, sorted by name.
    pub via: Vec<Name>,
    /// True if every dead letter reaches all of these queues, and no other.
    pub is_certain: bool,
    /// True if the route can reach any queue, because a message's key may be a queue name.
    pub is_anywhere: bool,
    /// True if the destinations depend on the routing key.
    pub(crate) depends_on_key: bool,
    /// Known routing keys that reach no queue.
    pub(crate) lost_keys: Vec<Name>,
    /// True if no message can reach a queue, as far as is known.
    pub(crate) is_nowhere: bool,
}

/// The link from a queue to its dead-letter route.
#[derive(Clone, PartialEq, Debug)]
pub struct MapEdge {
    /// Index of the queue.
    pub from: usize,
    /// Index of the route of its dead letters.
    pub route: usize,
    /// The routing keys that messages of the queue keep when they die, if the bindings determine them.
    pub own_keys: Option<Arc<[Name]>>,
    /// The sources of the dead-letter exchange, routing key and strategy; unset keys are left out.
    pub given: Vec<GivenBy>,
    /// True if the queue has an explicit delivery limit; false if the default of quorum queues applies.
    pub(crate) has_own_delivery_limit: bool,
}

/// The source of a setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenBy {
    /// The setting.
    pub key: PolicyKey,
    /// The kind of source, such as an argument or a policy.
    pub source: Source,
    /// The name of the policy, if the source is one.
    pub name: Option<Name>,
}

impl DeadLetterMap {
    /// Adds the warnings for this map.
    pub(crate) fn with_warnings(mut self) -> Self {
        self.warnings = warnings::all(&self);
        self
    }

    /// The queue at the start of an edge.
    pub fn from(&self, edge: &MapEdge) -> Option<&MapQueue> {
        self.queues.get(edge.from)
    }

    /// The route of an edge.
    pub fn route(&self, edge: &MapEdge) -> Option<&MapRoute> {
        self.routes.get(edge.route)
    }

    /// The dead-letter exchange of an edge.
    pub fn exchange(&self, edge: &MapEdge) -> Option<&MapExchange> {
        self.exchanges.get(self.route(edge)?.exchange)
    }

    /// For each queue, the indices of up to `most` edges that lead to it, and the number of all such edges.
    pub fn sources(&self, most: usize) -> Vec<(Vec<usize>, u64)> {
        let mut of_route: Vec<Vec<usize>> = vec![Vec::new(); self.routes.len()];
        for (at, edge) in self.edges.iter().enumerate() {
            of_route.get_mut(edge.route).into_iter().for_each(|edges| edges.push(at));
        }
        let mut sources: Vec<(Vec<usize>, u64)> = vec![(Vec::new(), 0); self.queues.len()];
        for (route, edges) in self.routes.iter().zip(&of_route) {
            for to in &route.to {
                let Some((shown, count)) = sources.get_mut(*to) else { continue };
                shown.extend(edges.iter().take(most.saturating_sub(shown.len())));
                *count += edges.len() as u64;
            }
        }
        sources.iter_mut().for_each(|(shown, _)| shown.sort_unstable());
        sources
    }
}

impl MapQueue {
    /// The routing key that replaces the keys of the queue's dead letters.
    pub fn routing_key(&self) -> Option<&RoutingKey> {
        self.settings.dead_letter.as_ref()?.routing_key.as_ref()
    }
}

//! The dead-letter map: which queues dead letters come from, through which exchanges they go, which
//! queues they reach, and where something is wrong with that.
//!
//! [`DeadLetterMapTaking`] copies what is the case out of a vhost, in slices; what is made of it here
//! needs the vhost no more. `warnings` says in words what people should know: of dead ends itself, of
//! dead letters that come back in `loops`, of the queues that they come to in `targets`.

mod components;
mod loops;
mod targets;
mod warnings;

use std::sync::Arc;

use crate::exchange::ExchangeType;
use crate::ids::QueueNumber;
use crate::message::{Name, RoutingKey};
use crate::policy::Source;
use crate::queue::{Deaths, QueueType, Settings};
use crate::setting::PolicyKey;
pub use crate::vhost::DeadLetterMapTaking;
pub use warnings::{MapWarning, Severity, WarningKind};

/// Everything in a vhost that takes part in dead-lettering. Numbers of queues, exchanges and routes are
/// places in these lists.
#[derive(Clone, PartialEq, Debug)]
pub struct DeadLetterMap {
    /// Queues that have a dead-letter exchange or that dead letters can reach, by name.
    pub queues: Vec<MapQueue>,
    /// The dead-letter exchanges, those that do not exist, too, by name.
    pub exchanges: Vec<MapExchange>,
    /// What leads from an exchange on.
    pub routes: Vec<MapRoute>,
    /// One for each queue with a dead-letter exchange, by name of the queue.
    pub edges: Vec<MapEdge>,
    /// What people should know, the worst first.
    pub warnings: Vec<MapWarning>,
    /// There was no more to look at than a map may have.
    pub is_whole: bool,
}

/// A queue of the map.
#[derive(Clone, PartialEq, Debug)]
pub struct MapQueue {
    /// Its name.
    pub name: Name,
    /// Its number, under which its samples are kept.
    pub number: QueueNumber,
    /// Its type.
    pub kind: QueueType,
    /// What is in force for it.
    pub settings: Settings,
    /// Messages in it.
    pub messages: u64,
    /// Its consumers.
    pub consumers: u32,
    /// What became of the messages that died in it.
    pub deaths: Deaths,
}

/// A dead-letter exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapExchange {
    /// Its name.
    pub name: Name,
    /// Its type; none if there is no such exchange.
    pub kind: Option<ExchangeType>,
}

/// Where dead letters go that are alike, whichever queue they come from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the route")]
pub struct MapRoute {
    /// The dead-letter exchange.
    pub exchange: usize,
    /// The queues that can be reached, by name.
    pub to: Vec<usize>,
    /// Other exchanges on the way, by name.
    pub via: Vec<Name>,
    /// Every dead letter reaches all of these queues, and no other.
    pub is_certain: bool,
    /// Any queue can be reached, by a message whose key is its name.
    pub is_anywhere: bool,
    /// Where a message goes depends on its key.
    pub(crate) depends_on_key: bool,
    /// Keys of messages that reach nothing, of those that are known.
    pub(crate) lost_keys: Vec<Name>,
    /// No message reaches anything, as far as can be known.
    pub(crate) is_nowhere: bool,
}

/// A queue has a dead-letter exchange.
#[derive(Clone, PartialEq, Debug)]
pub struct MapEdge {
    /// The queue.
    pub from: usize,
    /// Where its dead letters go.
    pub route: usize,
    /// The keys that its messages have as far as bindings tell, if they keep them and that can be told.
    pub own_keys: Option<Arc<[Name]>>,
    /// Who has set the exchange, the routing key and the strategy; keys that nobody has set are left out.
    pub given: Vec<GivenBy>,
    /// Somebody has set the delivery limit; otherwise it is what all quorum queues have.
    pub(crate) has_own_delivery_limit: bool,
}

/// Who has set something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenBy {
    /// What.
    pub key: PolicyKey,
    /// Who.
    pub source: Source,
    /// The policy's name, if it was one.
    pub name: Option<Name>,
}

impl DeadLetterMap {
    /// Says what is wrong with what was copied.
    pub(crate) fn with_warnings(mut self) -> Self {
        self.warnings = warnings::all(&self);
        self
    }

    /// The queue that an edge comes from.
    pub fn from(&self, edge: &MapEdge) -> Option<&MapQueue> {
        self.queues.get(edge.from)
    }

    /// Where an edge leads.
    pub fn route(&self, edge: &MapEdge) -> Option<&MapRoute> {
        self.routes.get(edge.route)
    }

    /// The exchange that an edge goes through.
    pub fn exchange(&self, edge: &MapEdge) -> Option<&MapExchange> {
        self.exchanges.get(self.route(edge)?.exchange)
    }

    /// For each queue the edges that lead there, as numbers: at most `most` of them, and how many there
    /// are.
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
    /// The routing key that its dead letters get.
    pub fn routing_key(&self) -> Option<&RoutingKey> {
        self.settings.dead_letter.as_ref()?.routing_key.as_ref()
    }
}

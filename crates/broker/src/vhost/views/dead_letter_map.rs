//! Copies the topology for a dead-letter map from a vhost, in slices, so that clients of the vhost need not
//! wait for the whole copy.
//!
//! The first slices copy the queues that have a dead-letter exchange and route their dead letters; equal
//! routes are computed once. The same slices, and those of the delayed exchanges, find delays (`map_delays`). Later
//! slices copy the queues that routes and delays reach. A change between two slices shows in its old or its new state.
//!
//! A dead letter without a dead-letter routing key keeps the keys of its message. These keys are not known in
//! advance, but a message usually needs a certain key to be in this queue at all: the key of a binding to the
//! queue or, without bindings, the queue's own name. `CC` and `BCC` may add keys, so a route that depends on
//! the key is never certain.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::map_delay::Delay;
use super::reach::ReachableQueues;
use crate::dead_letter_map::{
    DeadLetterMap, GivenBy, MapDelay, MapEdge, MapExchange, MapQueue, MapRoute,
};
use crate::exchange::Certainty;
use crate::ids::QueueId;
use crate::limits::{MAP_OWN_KEYS_MAX, MAP_STEPS_MAX, MAP_STEPS_PER_SLICE};
use crate::message::{Name, RoutingKey};
use crate::policy::PolicyKind;
use crate::policy::Source;
use crate::policy::decision::Decision;
use crate::queue::Queue;
use crate::queue::resolved_keys::ResolvedKeys;
use crate::setting::PolicyKey;
use crate::vhost::Vhost;

/// The known facts about the routing keys of dead letters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Keys {
    /// The keys do not matter.
    Any,
    /// All dead letters have this key.
    Given(RoutingKey),
    /// Each dead letter has one of these keys, as far as bindings show.
    Own(Arc<[Name]>),
    /// The keys are not known.
    Unknown,
}

/// A route with the ids of the queues that it reaches.
#[derive(Debug)]
struct Routed {
    to: Vec<QueueId>,
    route: MapRoute,
}

/// A dead-letter map under construction.
#[derive(Debug)]
pub struct DeadLetterMapBuilder {
    pub(super) queues: BTreeMap<QueueId, MapQueue>,
    exchanges: BTreeMap<Name, MapExchange>,
    routes: Vec<Routed>,
    known_routes: BTreeMap<(Name, Keys), usize>,
    edges: Vec<(QueueId, MapEdge)>,
    pub(super) delays: Vec<Delay>,
    /// The number of destinations that may still be visited.
    pub(super) steps: usize,
    pub(super) is_whole: bool,
}

impl Default for DeadLetterMapBuilder {
    fn default() -> Self {
        Self {
            queues: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            routes: Vec::new(),
            known_routes: BTreeMap::new(),
            edges: Vec::new(),
            delays: Vec::new(),
            steps: MAP_STEPS_MAX,
            is_whole: true,
        }
    }
}

impl DeadLetterMapBuilder {
    /// Copies queues of the vhost, each once; stops early to keep the slice short. Returns the number of
    /// queues done.
    pub fn sources(&mut self, vhost: &Vhost, queues: &[QueueId]) -> usize {
        let enough = self.steps.saturating_sub(MAP_STEPS_PER_SLICE);
        let mut done = 0;
        for id in queues {
            done += 1;
            if let Some(queue) = vhost.queue_of(*id) {
                self.source(vhost, *id, queue);
                self.delays_in(*id, queue);
            }
            if self.steps <= enough && self.steps > 0 {
                break;
            }
        }
        done
    }

    /// The queues that are reached but not yet copied.
    pub fn missing(&self) -> Vec<QueueId> {
        let reached = self.routes.iter().flat_map(|routed| &routed.to);
        let reached = reached.chain(self.delays.iter().flat_map(|delay| &delay.to));
        let mut missing: Vec<QueueId> =
            reached.filter(|id| !self.queues.contains_key(id)).copied().collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Copies some of the missing queues; deleted ones are left out.
    pub fn targets(&mut self, vhost: &Vhost, queues: &[QueueId]) {
        for id in queues {
            if let Some(queue) = vhost.queue_of(*id) {
                self.queues.insert(*id, copied(queue));
            }
        }
    }

    fn source(&mut self, vhost: &Vhost, id: QueueId, queue: &Queue) {
        let Some(target) = &queue.settings.dead_letter else { return };
        let keys = match &target.routing_key {
            Some(key) => Keys::Given(key.clone()),
            None => own_keys(vhost, queue).map_or(Keys::Unknown, Keys::Own),
        };
        let own_keys = if let Keys::Own(keys) = &keys { Some(Arc::clone(keys)) } else { None };
        let resolved =
            ResolvedKeys::of(&queue.arguments, &queue.policies, vhost.options.queue_defaults);
        let about = [
            PolicyKey::DeadLetterExchange,
            PolicyKey::DeadLetterRoutingKey,
            PolicyKey::DeadLetterStrategy,
        ];
        let edge = MapEdge {
            // `end` fills in the indices.
            from: 0,
            route: self.route(vhost, &target.exchange, keys),
            own_keys,
            given: about.into_iter().filter_map(|key| given_by(queue, resolved.get(key))).collect(),
            has_own_delivery_limit: resolved
                .get(PolicyKey::DeliveryLimit)
                .won
                .as_ref()
                .is_some_and(|won| won.source != Source::Default),
        };
        self.edges.push((id, edge));
        self.queues.insert(id, copied(queue));
    }

    /// The index of the route of dead letters with these keys through this exchange.
    fn route(&mut self, vhost: &Vhost, exchange: &Name, keys: Keys) -> usize {
        let known = |keys: Keys| self.known_routes.get(&(Arc::clone(exchange), keys)).copied();
        if let Some(known) = known(Keys::Any).or_else(|| known(keys.clone())) {
            return known;
        }
        let found = vhost.exchange(exchange);
        let described =
            MapExchange { name: Arc::clone(exchange), kind: found.map(|exchange| exchange.kind) };
        self.exchanges.insert(Arc::clone(exchange), described);
        let (reach, lost_keys) = match vhost.exchange_id(exchange) {
            None => (ReachableQueues::default(), Vec::new()),
            Some(id) => {
                let mut reach = |key: Option<&[u8]>| vhost.reach(id, key, &mut self.steps);
                match &keys {
                    Keys::Any | Keys::Unknown => (reach(None), Vec::new()),
                    Keys::Given(key) => (reach(Some(key.as_bytes())), Vec::new()),
                    Keys::Own(keys) => each_of(keys, |key| reach(Some(key.as_bytes()))),
                }
            }
        };
        self.is_whole &= !reach.is_cut;
        let keys = if reach.depends_on_key { keys } else { Keys::Any };
        let is_told = !reach.depends_on_key || matches!(keys, Keys::Given(_));
        let is_certain = reach.queues.values().all(|certainty| *certainty == Certainty::Certain);
        let route = MapRoute {
            exchange: 0,
            to: Vec::new(),
            via: reach.via,
            is_certain: is_certain && is_told && !reach.is_anywhere && !reach.is_cut,
            is_anywhere: reach.is_anywhere,
            depends_on_key: reach.depends_on_key,
            lost_keys: if reach.depends_on_key { lost_keys } else { Vec::new() },
            is_nowhere: found.is_some()
                && reach.queues.is_empty()
                && !reach.is_anywhere
                && !reach.is_cut,
        };
        let at = self.routes.len();
        self.routes.push(Routed { to: reach.queues.into_keys().collect(), route });
        self.known_routes.insert((Arc::clone(exchange), keys), at);
        at
    }

    /// Completes the map and adds its warnings; the vhost is not needed any more.
    pub fn end(self) -> DeadLetterMap {
        let Self { queues, exchanges, routes, known_routes, edges, delays, is_whole, .. } = self;
        let mut queues: Vec<(QueueId, MapQueue)> = queues.into_iter().collect();
        queues.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        let places = queues.iter().enumerate().map(|(at, (id, _))| (*id, at));
        let places: BTreeMap<QueueId, usize> = places.collect();
        let exchange_at: BTreeMap<&Name, usize> =
            exchanges.keys().enumerate().map(|(at, name)| (name, at)).collect();
        let mut routes: Vec<MapRoute> = routes
            .into_iter()
            .map(|routed| {
                let mut to: Vec<usize> =
                    routed.to.iter().filter_map(|id| places.get(id)).copied().collect();
                to.sort_unstable();
                MapRoute { to, ..routed.route }
            })
            .collect();
        for ((exchange, _), at) in &known_routes {
            if let (Some(route), Some(place)) = (routes.get_mut(*at), exchange_at.get(exchange)) {
                route.exchange = *place;
            }
        }
        let edges = edges.into_iter();
        let mut edges: Vec<MapEdge> = edges
            .filter_map(|(id, edge)| Some(MapEdge { from: *places.get(&id)?, ..edge }))
            .collect();
        edges.sort_by_key(|edge| edge.from);
        let delays = delays.into_iter().filter_map(|delay| delay.placed(&places));
        let mut delays: Vec<MapDelay> = delays.collect();
        delays.sort_by(|a, b| a.at.cmp(&b.at));
        DeadLetterMap {
            queues: queues.into_iter().map(|(_, queue)| queue).collect(),
            exchanges: exchanges.into_values().collect(),
            routes,
            edges,
            delays,
            warnings: Vec::new(),
            is_whole,
        }
        .with_warnings()
    }
}

/// The combined reach of these keys, and the keys that reach nothing.
fn each_of(
    keys: &[Name],
    mut reach: impl FnMut(&Name) -> ReachableQueues,
) -> (ReachableQueues, Vec<Name>) {
    let mut all: Option<ReachableQueues> = None;
    let mut lost = Vec::new();
    for key in keys {
        let reached = reach(key);
        if reached.queues.is_empty() && !reached.is_anywhere && !reached.is_cut {
            lost.push(Arc::clone(key));
        }
        all = Some(match all {
            Some(all) => all.or(reached),
            None => reached,
        });
    }
    (all.unwrap_or_default(), lost)
}

/// The keys that a message must have to be in this queue, if the bindings determine them.
fn own_keys(vhost: &Vhost, queue: &Queue) -> Option<Arc<[Name]>> {
    let mut keys: Vec<Name> = Vec::new();
    for (exchange, binding) in queue.bindings() {
        let key = vhost.exchange_of(*exchange)?.key_through(binding)?;
        if !keys.iter().any(|known| **known == *key) {
            if keys.len() == MAP_OWN_KEYS_MAX {
                return None;
            }
            keys.push(key.into());
        }
    }
    if keys.is_empty() {
        keys.push(Arc::clone(&queue.name));
    }
    keys.sort_unstable();
    Some(keys.into())
}

pub(super) fn copied(queue: &Queue) -> MapQueue {
    MapQueue {
        name: Arc::clone(&queue.name),
        number: queue.number,
        kind: queue.kind(),
        settings: queue.settings.clone(),
        messages: queue.message_count(),
        consumers: queue.consumer_count(),
        deaths: queue.counters.deaths(),
        first_deadline: queue.first_deadline(),
    }
}

/// The source of the value that was decided for; none for a default.
fn given_by(queue: &Queue, decision: &Decision) -> Option<GivenBy> {
    let source = decision.won.as_ref()?.source;
    let kind = match source {
        Source::Default => return None,
        Source::Argument => None,
        Source::Policy => Some(PolicyKind::User),
        Source::OperatorPolicy => Some(PolicyKind::Operator),
    };
    let policy = kind.and_then(|kind| queue.policies.of_kind(kind));
    Some(GivenBy { key: decision.key, source, name: policy.map(|policy| Arc::clone(&policy.name)) })
}

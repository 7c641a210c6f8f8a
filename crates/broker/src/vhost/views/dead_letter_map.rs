//! Copies out of a vhost what its dead-letter map is made of, a slice at a time, so that its clients need
//! not wait for all of it.
//!
//! First come the queues that have a dead-letter exchange, with where their dead letters go; alike ones are
//! routed once. Then come the queues that these reach. What changes between two slices is told as it was
//! before or as it is after.
//!
//! A dead letter without a dead-letter routing key keeps the keys of its message. Which these are is not
//! known before it comes, but mostly what it must be for a message to be in this queue at all: the key
//! of a binding that leads there, or, if none does, the queue's own name. `CC` and `BCC` may add others, so
//! that such a route is never certain if it depends on the key.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::reach::Reach;
use crate::dead_letter_map::{DeadLetterMap, GivenBy, MapEdge, MapExchange, MapQueue, MapRoute};
use crate::exchange::Chance;
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

/// What is known of the keys of dead letters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Keys {
    /// They do not matter.
    Any,
    /// All have this one.
    Given(RoutingKey),
    /// They have one of these, as far as bindings tell.
    Own(Arc<[Name]>),
    /// Nothing.
    Unknown,
}

/// A route with the queues it reaches by their ids.
#[derive(Debug)]
struct Routed {
    to: Vec<QueueId>,
    route: MapRoute,
}

/// A dead-letter map that is being made.
#[derive(Debug)]
pub struct DeadLetterMapTaking {
    queues: BTreeMap<QueueId, MapQueue>,
    exchanges: BTreeMap<Name, MapExchange>,
    routes: Vec<Routed>,
    known_routes: BTreeMap<(Name, Keys), usize>,
    edges: Vec<(QueueId, MapEdge)>,
    /// Destinations that may still be looked at.
    steps: usize,
    is_whole: bool,
}

impl Default for DeadLetterMapTaking {
    fn default() -> Self {
        Self {
            queues: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            routes: Vec::new(),
            known_routes: BTreeMap::new(),
            edges: Vec::new(),
            steps: MAP_STEPS_MAX,
            is_whole: true,
        }
    }
}

impl DeadLetterMapTaking {
    /// Looks at some queues of the vhost, each once; to be short it may stop before the last. How many it
    /// has looked at.
    pub fn sources(&mut self, vhost: &Vhost, queues: &[QueueId]) -> usize {
        let enough = self.steps.saturating_sub(MAP_STEPS_PER_SLICE);
        let mut done = 0;
        for id in queues {
            done += 1;
            if let Some(queue) = vhost.queue_of(*id)
                && queue.settings.dead_letter.is_some()
            {
                self.source(vhost, *id, queue);
            }
            if self.steps <= enough && self.steps > 0 {
                break;
            }
        }
        done
    }

    /// The queues that are reached and that it has not looked at.
    pub fn missing(&self) -> Vec<QueueId> {
        let reached = self.routes.iter().flat_map(|routed| &routed.to);
        let mut missing: Vec<QueueId> =
            reached.filter(|id| !self.queues.contains_key(id)).copied().collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Looks at some of these; those that have gone since are left out.
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
            // Both are known at the end.
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

    /// The route of dead letters with these keys from this exchange.
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
            None => (Reach::default(), Vec::new()),
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
        let is_certain = reach.queues.values().all(|chance| *chance == Chance::Certain);
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

    /// The map, with what is wrong with it; this needs the vhost no more.
    pub fn end(self) -> DeadLetterMap {
        let Self { queues, exchanges, routes, known_routes, edges, is_whole, .. } = self;
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
        DeadLetterMap {
            queues: queues.into_iter().map(|(_, queue)| queue).collect(),
            exchanges: exchanges.into_values().collect(),
            routes,
            edges,
            warnings: Vec::new(),
            is_whole,
        }
        .with_warnings()
    }
}

/// What each of these keys reaches, together, and the keys that reach nothing.
fn each_of(keys: &[Name], mut reach: impl FnMut(&Name) -> Reach) -> (Reach, Vec<Name>) {
    let mut all: Option<Reach> = None;
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

/// The keys that a message must have to be in this queue, if bindings tell them all.
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

fn copied(queue: &Queue) -> MapQueue {
    MapQueue {
        name: Arc::clone(&queue.name),
        number: queue.number,
        kind: queue.kind(),
        settings: queue.settings.clone(),
        messages: queue.message_count(),
        consumers: queue.consumer_count(),
        deaths: queue.counters.deaths(),
    }
}

/// Who has given the value that was decided for; none if nobody has.
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

//! `/api/dead-letter-map`: where dead letters come from and go to, how many, and where something is wrong
//! with that. RabbitMQ has no such thing.
//!
//! There is a page of edges, those with something wrong first, then those with most dead letters; queues
//! and exchanges are those of the page. Warnings are the worst of all that the filter wants.

use std::collections::BTreeSet;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use broker::dead_letter::DeathReason;
use broker::{DeadLetterMap, GivenBy, MapEdge, MapQueue, MapWarning, Severity};
use serde_json::{Map, Value, json};

use crate::api::list_query::{PagedQuery, Query};
use crate::history::TimeRanges;
use crate::http::access::{Management, check_can_enter};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::limits::{MAP_WARNINGS_MAX, NAMED_TOGETHER_MAX};
use crate::node::Caller;
use crate::snapshot::fields::{QUEUE, dead_lettered_by};

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    Router::new()
        .route("/api/dead-letter-map", get(show))
        .route("/api/dead-letter-map/{vhost}", get(show_vhost))
}

/// The map of a vhost with the rates of its queues.
pub(crate) struct Mapped {
    pub(crate) vhost: String,
    pub(crate) map: DeadLetterMap,
    /// The change of each queue's numbers.
    pub(crate) rates: Vec<[f64; QUEUE.len()]>,
}

async fn show(
    State(node): State<SharedNode>,
    Management(caller): Management,
    PagedQuery(query): PagedQuery,
) -> Result<Json, ApiError> {
    answer(&Mapped::all(&node, &caller), &query)
}

async fn show_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    PagedQuery(query): PagedQuery,
) -> Result<Json, ApiError> {
    answer(&[Mapped::one(&node, &caller, vhost)?], &query)
}

impl Mapped {
    /// The maps of the vhosts that the caller sees.
    pub(crate) fn all(node: &SharedNode, caller: &Caller) -> Vec<Self> {
        let seen = node.vhost_names().into_iter().filter(|vhost| caller.can_enter(vhost));
        // A vhost deleted meanwhile has no map.
        seen.filter_map(|vhost| Self::of(node, vhost)).collect()
    }

    /// The map of one vhost, if the caller may look into it.
    pub(crate) fn one(node: &SharedNode, caller: &Caller, vhost: String) -> Result<Self, ApiError> {
        check_can_enter(caller, &vhost)?;
        Self::of(node, vhost).ok_or_else(ApiError::not_found)
    }

    fn of(node: &SharedNode, vhost: String) -> Option<Self> {
        let map = node.dead_letter_map(&vhost)?;
        let rates = node.history().read(|history| {
            let of = |queue: &MapQueue| {
                history.of_queue(&vhost, queue.number, &TimeRanges::default()).rates
            };
            map.queues.iter().map(of).collect()
        });
        Some(Self { vhost, map, rates })
    }

    /// The name of a queue.
    pub(crate) fn name(&self, queue: usize) -> &str {
        self.map.queues.get(queue).map(|queue| &*queue.name).unwrap_or_default()
    }

    /// The rate of a number of a queue.
    pub(crate) fn rate(&self, queue: usize, number: &str) -> f64 {
        let at = QUEUE.iter().position(|field| field.name == number);
        let rates = self.rates.get(queue);
        at.and_then(|at| rates?.get(at)).copied().unwrap_or_default()
    }

    fn exchange_name(&self, exchange: usize) -> &str {
        self.map.exchanges.get(exchange).map(|exchange| &*exchange.name).unwrap_or_default()
    }

    /// True if the filter matches a queue or exchange of an edge.
    fn matches_edge(&self, edge: &MapEdge, query: &Query) -> bool {
        let Some(route) = self.map.route(edge) else { return false };
        query.matches_name(self.name(edge.from))
            || query.matches_name(self.exchange_name(route.exchange))
            || route.to.iter().any(|to| query.matches_name(self.name(*to)))
    }

    fn matches_warning(&self, warning: &MapWarning, query: &Query) -> bool {
        let mut queues = warning.queues.iter().chain([&warning.queue]).chain(&warning.to_queue);
        queues.any(|queue| query.matches_name(self.name(*queue)))
            || query.matches_name(self.exchange_name(warning.exchange))
    }

    /// For each edge the worst that is said of it.
    fn severities(&self) -> Vec<Severity> {
        let map = &self.map;
        let mut of_source = vec![Severity::Info; map.queues.len()];
        let mut of_target = of_source.clone();
        for warning in &map.warnings {
            let (list, queues) = match &warning.to_queue {
                Some(to) if warning.queues.is_empty() => (&mut of_target, std::slice::from_ref(to)),
                _ => (&mut of_source, warning.queues.as_slice()),
            };
            for queue in queues {
                if let Some(severity) = list.get_mut(*queue) {
                    *severity = (*severity).min(warning.severity);
                }
            }
        }
        let of = |list: &[Severity], queue: usize| list.get(queue).copied();
        let of_route = map.routes.iter().map(|route| {
            let of_targets = route.to.iter().filter_map(|to| of(&of_target, *to));
            of_targets.min().unwrap_or(Severity::Info)
        });
        let of_route: Vec<Severity> = of_route.collect();
        let of_edge = map.edges.iter().map(|edge| {
            let both = of(&of_source, edge.from).into_iter().chain(of(&of_route, edge.route));
            both.min().unwrap_or(Severity::Info)
        });
        of_edge.collect()
    }
}

fn answer(vhosts: &[Mapped], query: &Query) -> Result<Json, ApiError> {
    let mut edges = Vec::new();
    for mapped in vhosts {
        for (edge, severity) in mapped.map.edges.iter().zip(mapped.severities()) {
            edges.push((severity, mapped.rate(edge.from, "dead_lettered"), mapped, edge));
        }
    }
    let total_edges = edges.len();
    edges.retain(|(.., mapped, edge)| mapped.matches_edge(edge, query));
    // The sort is stable: equal edges stay ordered by vhost, then by queue.
    edges.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let (page, place) = query.cut(edges, total_edges)?;
    let mut queues = Vec::new();
    let mut exchanges = Vec::new();
    for mapped in vhosts {
        let of_vhost = || {
            let of = page.iter().filter(|(.., of, _)| std::ptr::eq(*of, mapped));
            of.filter_map(|(.., edge)| Some((edge, mapped.map.route(edge)?)))
        };
        let all = of_vhost().flat_map(|(edge, route)| {
            std::iter::once(edge.from).chain(route.to.iter().copied().take(NAMED_TOGETHER_MAX))
        });
        let all: BTreeSet<usize> = all.collect();
        let targets: BTreeSet<usize> =
            mapped.map.routes.iter().flat_map(|route| route.to.iter().copied()).collect();
        queues.extend(all.into_iter().filter_map(|at| queue(mapped, at, targets.contains(&at))));
        let through: BTreeSet<usize> = of_vhost().map(|(_, route)| route.exchange).collect();
        exchanges.extend(through.into_iter().filter_map(|at| exchange(mapped, at)));
    }
    let (warnings, total_warnings) = warnings(vhosts, query);
    let edges: Vec<Value> = page.iter().filter_map(|(.., mapped, one)| edge(mapped, one)).collect();
    let mut json = Map::new();
    let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
    put("queues", json!(queues));
    put("exchanges", json!(exchanges));
    put("edges", json!(edges));
    put("warnings", json!(warnings));
    put("total_edges", json!(total_edges));
    put("total_warnings", json!(total_warnings));
    put("whole", json!(vhosts.iter().all(|mapped| mapped.map.is_whole)));
    json.extend(place);
    Ok(Json::ok(Value::Object(json)))
}

fn queue(mapped: &Mapped, at: usize, is_target: bool) -> Option<Value> {
    let queue = mapped.map.queues.get(at)?;
    let settings = &queue.settings;
    let rates = ["publish", "deliver_get", "ack", "expired", "dead_lettered", "dropped"];
    let rates = rates.map(|name| (name.to_owned(), json!(mapped.rate(at, name))));
    Some(json!({
        "vhost": mapped.vhost,
        "name": *queue.name,
        "type": queue.kind.as_str(),
        "messages": queue.messages,
        "consumers": queue.consumers,
        "message_ttl_ms": settings.message_ttl_ms,
        "max_length": settings.max_length,
        "max_length_bytes": settings.max_length_bytes,
        "overflow": settings.overflow.as_str(),
        "is_dead_letter_queue": is_target,
        "rates": Map::from_iter(rates),
    }))
}

fn exchange(mapped: &Mapped, at: usize) -> Option<Value> {
    let exchange = mapped.map.exchanges.get(at)?;
    Some(json!({
        "vhost": mapped.vhost,
        "name": *exchange.name,
        "type": exchange.kind.map(broker::ExchangeType::as_str),
        "exists": exchange.kind.is_some(),
    }))
}

fn edge(mapped: &Mapped, edge: &MapEdge) -> Option<Value> {
    let map = &mapped.map;
    let (queue, route) = (map.from(edge)?, map.route(edge)?);
    let to = route.to.iter().take(NAMED_TOGETHER_MAX).map(|to| mapped.name(*to));
    let by_reason = |number: fn(&Mapped, &MapEdge, DeathReason) -> Value| -> Value {
        let reasons = DeathReason::ALL.into_iter();
        reasons.map(|of| (of.as_str().to_owned(), number(mapped, edge, of))).collect()
    };
    Some(json!({
        "vhost": mapped.vhost,
        "from_queue": *queue.name,
        "exchange": mapped.exchange_name(route.exchange),
        "routing_key": queue.routing_key().map(ToString::to_string),
        "own_keys": edge.own_keys.as_ref().map(|keys| keys.iter().map(|key| &**key).collect::<Vec<_>>()),
        "to_queues": to.collect::<Vec<&str>>(),
        "to_queues_total": route.to.len(),
        "via": route.via.iter().take(NAMED_TOGETHER_MAX).map(|name| &**name).collect::<Vec<&str>>(),
        "certain": route.is_certain,
        "anywhere": route.is_anywhere,
        "source": edge.given.iter().map(given).collect::<Map<String, Value>>(),
        "strategy": queue.settings.dead_letter_strategy.as_str(),
        "count_by_reason": by_reason(|mapped, edge, reason| {
            json!(mapped.map.from(edge).map(|queue| queue.deaths.dead_lettered.get(reason)))
        }),
        "rate_by_reason": by_reason(|mapped, edge, reason| {
            let rates = mapped.rates.get(edge.from);
            let rate = rates.and_then(|of| of.get(dead_lettered_by(reason)));
            json!(rate.copied().unwrap_or_default())
        }),
        "dropped_by_reason": by_reason(|mapped, edge, reason| {
            json!(mapped.map.from(edge).map(|queue| queue.deaths.dropped.get(reason).total()))
        }),
    }))
}

fn given(given: &GivenBy) -> (String, Value) {
    let by = json!({"source": given.source.as_str(), "name": given.name.as_deref()});
    (given.key.as_str().to_owned(), by)
}

/// The worst warnings that the filter wants, and how many it wants.
fn warnings(vhosts: &[Mapped], query: &Query) -> (Vec<Value>, usize) {
    let all = vhosts.iter().flat_map(|mapped| {
        let wanted = mapped.map.warnings.iter().filter(|one| mapped.matches_warning(one, query));
        wanted.map(move |warning| (mapped, warning))
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(_, warning)| (warning.severity, warning.kind));
    let json = all.iter().take(MAP_WARNINGS_MAX).map(|(mapped, warning)| {
        let queues = warning.queues.iter().take(NAMED_TOGETHER_MAX);
        let queues = queues.map(|queue| mapped.name(*queue));
        json!({
            "kind": warning.kind.as_str(),
            "severity": warning.severity.as_str(),
            "vhost": mapped.vhost,
            "queue": mapped.name(warning.queue),
            "exchange": mapped.exchange_name(warning.exchange),
            "to_queue": warning.to_queue.map(|to| mapped.name(to)),
            "queues": queues.collect::<Vec<&str>>(),
            "queues_total": warning.queues.len(),
            "text": warning.text,
        })
    });
    (json.collect(), all.len())
}

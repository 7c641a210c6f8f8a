//! `/api/dead-letter-map`: where dead letters come from and go to, how many, and where something is wrong
//! with that. RabbitMQ has no such thing.
//!
//! There is a page of edges, those with something wrong first, then those with most dead letters; queues
//! and exchanges are those of the page. Warnings are the worst of all that the filter wants, and delays those with most
//! messages.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::routing::get;
use broker::dead_letter::DeathReason;
use broker::{GivenBy, MapEdge, MapQueue, MapWarning, Severity};
use serde_json::{Map, Value, json};
use server::snapshot::fields::dead_lettered_by;

use crate::api::dead_letters::delays::Delays;
use crate::api::dead_letters::mapped::Mapped;
use crate::api::dead_letters::selection::{Entry, MapQuery, Selection, select};
use crate::api::dead_letters::warning_groups::{self, Warned};
use crate::api::list_query::Query;
use crate::http::access::Management;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::limits::{MAP_WARNINGS_MAX, NAMED_TOGETHER_MAX};

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/dead-letter-map", Scope::DeadLetterMap, get(show)).route(
        "/api/dead-letter-map/{vhost}",
        Scope::Vhost("vhost"),
        get(show_vhost),
    )
}

async fn show(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: MapQuery,
) -> Result<Json, ApiError> {
    let _turn = node.http_budget().long_answer().await;
    answer(&Mapped::all(&node, &caller), &query, caller.only_vhosts.is_some())
}

async fn show_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    query: MapQuery,
) -> Result<Json, ApiError> {
    let _turn = node.http_budget().long_answer().await;
    answer(&[Mapped::one(&node, &caller, vhost)?], &query, false)
}

/// The map of some vhosts, or a part that [`merge`](super::merge::merge) puts together with those of other nodes.
fn answer(vhosts: &[Mapped], query: &MapQuery, is_part: bool) -> Result<Json, ApiError> {
    let Selection { entries, total_edges, filtered_edges } = select(vhosts, query);
    let delays = Delays::of(vhosts, query);
    let query = &query.list;
    let entries = query.order_by_json(entries, |one| edge(one).unwrap_or_default());
    let (page, place) =
        if is_part { query.part(entries) } else { query.cut(entries, total_edges)? };
    let mut queues = Vec::new();
    let mut exchanges = Vec::new();
    for mapped in vhosts {
        let of_vhost = || {
            let of = page.iter().filter(|entry| std::ptr::eq(entry.mapped, mapped));
            of.filter_map(|entry| Some((entry.first, mapped.map.route(entry.first)?)))
        };
        let all = of_vhost().flat_map(|(edge, route)| {
            std::iter::once(edge.from).chain(route.to.iter().copied().take(NAMED_TOGETHER_MAX))
        });
        let all: BTreeSet<usize> = all.chain(delays.queues_in(mapped)).collect();
        let targets = mapped.targets();
        queues.extend(all.into_iter().filter_map(|at| queue(mapped, at, targets.contains(&at))));
        let through: BTreeSet<usize> = of_vhost().map(|(_, route)| route.exchange).collect();
        exchanges.extend(through.into_iter().filter_map(|at| exchange(mapped, at)));
    }
    let warnings = WantedWarnings::of(vhosts, query, is_part);
    let edges: Vec<Value> = page.iter().filter_map(edge).collect();
    let mut json = Map::new();
    let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
    put("queues", json!(queues));
    put("exchanges", json!(exchanges));
    put("edges", json!(edges));
    put("warning_groups", json!(warnings.groups));
    put("warnings", json!(warnings.worst));
    put("delays", json!(delays.json()));
    put("total_delays", json!(delays.total));
    put("filtered_delays", json!(delays.filtered));
    put("delay_entries", json!(delays.entries));
    put("total_edges", json!(total_edges));
    put("filtered_edges", json!(filtered_edges));
    put("total_warnings", json!(warnings.total));
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

/// An edge in JSON, or a group of edges with the sums of their numbers.
fn edge(entry: &Entry<'_>) -> Option<Value> {
    let Entry { mapped, first: edge, others, .. } = entry;
    let map = &mapped.map;
    let (queue, route) = (map.from(edge)?, map.route(edge)?);
    let queues: Vec<&MapQueue> = entry.edges().filter_map(|one| map.from(one)).collect();
    let named = queues.iter().take(NAMED_TOGETHER_MAX).map(|queue| &*queue.name);
    let to = route.to.iter().take(NAMED_TOGETHER_MAX).map(|to| mapped.name(*to));
    let count = |of: fn(&MapQueue, DeathReason) -> u64| -> Value {
        let sum = |reason| queues.iter().map(|queue| of(queue, reason)).sum::<u64>();
        let reasons = DeathReason::ALL.into_iter();
        reasons.map(|reason| (reason.as_str().to_owned(), json!(sum(reason)))).collect()
    };
    let rates = DeathReason::ALL.into_iter().map(|reason| {
        let rate =
            |one: &MapEdge| mapped.rates.get(one.from)?.get(dead_lettered_by(reason)).copied();
        (reason.as_str().to_owned(), json!(entry.edges().filter_map(rate).sum::<f64>()))
    });
    let rates: Map<String, Value> = rates.collect();
    let ttls_ms = || queues.iter().filter_map(|queue| queue.settings.message_ttl_ms);
    let first_deadline = queues.iter().filter_map(|queue| queue.first_deadline).min();
    Some(json!({
        "vhost": mapped.vhost,
        "from_queue": *queue.name,
        "from_queues": named.collect::<Vec<&str>>(),
        "from_queues_total": 1 + others.len(),
        "from_messages": queues.iter().map(|queue| queue.messages).sum::<u64>(),
        "from_consumers": queues.iter().map(|queue| u64::from(queue.consumers)).sum::<u64>(),
        "severity": (entry.severity < Severity::Info).then(|| entry.severity.as_str()),
        "rate": entry.rate,
        "ttl_min_ms": ttls_ms().min(),
        "ttl_max_ms": ttls_ms().max(),
        "next_expiry_time_ms": first_deadline.map(|deadline| deadline.as_micros() / 1000),
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
        "count_by_reason": count(|queue, reason| queue.deaths.dead_lettered.get(reason)),
        "rate_by_reason": rates,
        "dropped_by_reason": count(|queue, reason| queue.deaths.dropped.get(reason).total()),
    }))
}

fn given(given: &GivenBy) -> (String, Value) {
    let by = json!({"source": given.source.as_str(), "name": given.name.as_deref()});
    (given.key.as_str().to_owned(), by)
}

/// The warnings that the filter wants.
struct WantedWarnings {
    worst: Vec<Value>,
    groups: Vec<Value>,
    total: usize,
}

impl WantedWarnings {
    fn of(vhosts: &[Mapped], query: &Query, is_part: bool) -> Self {
        let all = vhosts.iter().flat_map(|mapped| {
            let all = mapped.map.warnings.iter();
            let wanted = all.filter(|one| mapped.matches_warning(one, query));
            wanted.map(move |warning| (mapped, warning))
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(_, warning)| (warning.severity, warning.kind));
        let warned = all.iter().map(|(mapped, warning)| {
            let lost = warning.queues.iter().map(|queue| mapped.rate(*queue, "dead_letters_lost"));
            Warned { vhost: &mapped.vhost, map: &mapped.map, warning, lost: lost.sum() }
        });
        let groups = warning_groups::of(warned, is_part);
        Self { worst: worst(&all), groups, total: all.len() }
    }
}

/// The worst of these warnings.
fn worst(all: &[(&Mapped, &MapWarning)]) -> Vec<Value> {
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
    json.collect()
}

//! `/api/dead-letter-queues`: the queues that dead letters go to, and whose dead letters these are. RabbitMQ
//! has no such thing.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use broker::DeadLetterMap;
use broker::dead_letter::DeathReason;
use serde_json::{Map, Value, json};

use crate::api::dead_letters::mapped::Mapped;
use crate::api::list_query::Query;
use crate::http::access::Management;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::limits::NAMED_TOGETHER_MAX;

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    Router::new()
        .route("/api/dead-letter-queues", get(list))
        .route("/api/dead-letter-queues/{vhost}", get(list_of_vhost))
}

/// A queue that dead letters go to.
struct Target<'a> {
    mapped: &'a Mapped,
    queue: usize,
    /// Edges that lead here; not all if they are many.
    from: Vec<usize>,
    from_total: u64,
    /// Dead letters of all sources, by reason in the order of `DeathReason::ALL`.
    deaths: [u64; REASONS],
}

const REASONS: usize = DeathReason::ALL.len();

/// For each queue the dead letters of the queues whose dead letters reach it.
fn deaths_behind(map: &DeadLetterMap) -> Vec<[u64; REASONS]> {
    let add = |to: &mut [u64; REASONS], of: &[u64; REASONS]| {
        to.iter_mut().zip(of).for_each(|(sum, count)| *sum += count);
    };
    let mut by_route = vec![[0; REASONS]; map.routes.len()];
    for edge in &map.edges {
        if let (Some(sums), Some(queue)) = (by_route.get_mut(edge.route), map.from(edge)) {
            add(sums, &DeathReason::ALL.map(|reason| queue.deaths.dead_lettered.get(reason)));
        }
    }
    let mut by_queue = vec![[0; REASONS]; map.queues.len()];
    for (route, of) in map.routes.iter().zip(&by_route) {
        for to in &route.to {
            if let Some(sums) = by_queue.get_mut(*to) {
                add(sums, of);
            }
        }
    }
    by_queue
}

async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<Json, ApiError> {
    answer(&Mapped::all(&node, &caller), &query)
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
) -> Result<Json, ApiError> {
    answer(&[Mapped::one(&node, &caller, vhost)?], &query)
}

fn answer(vhosts: &[Mapped], query: &Query) -> Result<Json, ApiError> {
    let targets = vhosts.iter().flat_map(|mapped| {
        let sources = mapped.map.sources(NAMED_TOGETHER_MAX).into_iter();
        let all = sources.zip(deaths_behind(&mapped.map)).enumerate();
        all.filter(|(_, ((_, from_total), _))| *from_total > 0).map(
            move |(queue, ((from, from_total), deaths))| Target {
                mapped,
                queue,
                from,
                from_total,
                deaths,
            },
        )
    });
    let json = |targets: Vec<Target<'_>>| targets.iter().filter_map(to_json).collect();
    let is_wanted = |target: &Target<'_>| query.matches_name(target.mapped.name(target.queue));
    let name = |target: &Target<'_>| target.mapped.name(target.queue).to_owned();
    query.answer_lazily(targets.collect(), name, is_wanted, json)
}

fn to_json(target: &Target<'_>) -> Option<Value> {
    let Target { mapped, queue: at, from, from_total, deaths } = target;
    let deaths = DeathReason::ALL.into_iter().zip(deaths);
    let deaths = deaths.map(|(reason, count)| (reason.as_str().to_owned(), json!(count)));
    let (map, queue) = (&mapped.map, mapped.map.queues.get(*at)?);
    let from = from.iter().filter_map(|edge| {
        let edge = map.edges.get(*edge)?;
        Some(json!({
            "queue": mapped.name(edge.from),
            // Any reason.
            "reason": null,
            "exchange": *map.exchange(edge)?.name,
            "certain": map.route(edge)?.is_certain,
        }))
    });
    let rates = ["publish", "deliver_get", "ack", "expired", "dead_lettered", "dropped"];
    let rates = rates.map(|name| (name.to_owned(), json!(mapped.rate(*at, name))));
    Some(json!({
        "name": *queue.name,
        "vhost": mapped.vhost,
        "type": queue.kind.as_str(),
        "messages": queue.messages,
        "consumers": queue.consumers,
        "message_ttl_ms": queue.settings.message_ttl_ms,
        "from": from.collect::<Vec<Value>>(),
        "from_total": from_total,
        "from_count_by_reason": deaths.collect::<Map<String, Value>>(),
        "rates": Map::from_iter(rates),
    }))
}

//! `/api/dead-letter-queues`: the queues that dead letters go to, and whose dead letters these are. RabbitMQ
//! has no such thing.

use axum::extract::State;
use axum::routing::get;
use broker::DeadLetterMap;
use broker::dead_letter::DeathReason;
use serde_json::json;

use crate::api::dead_letters::mapped::Mapped;
use crate::api::list_query::{List, Query};
use crate::api::row::{Part, Row};
use crate::http::access::Management;
use crate::http::answer::ApiError;
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::{NAME, Scope};
use crate::limits::NAMED_TOGETHER_MAX;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/dead-letter-queues", Scope::List(NAME), get(list)).route(
        "/api/dead-letter-queues/{vhost}",
        Scope::Vhost("vhost"),
        get(list_of_vhost),
    )
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
) -> Result<List, ApiError> {
    let _turn = node.http_budget().long_answer().await;
    answer(&Mapped::all(&node, &caller), &query)
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
) -> Result<List, ApiError> {
    let _turn = node.http_budget().long_answer().await;
    answer(&[Mapped::one(&node, &caller, vhost)?], &query)
}

fn answer(vhosts: &[Mapped], query: &Query) -> Result<List, ApiError> {
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
    let is_wanted = |target: &Target<'_>| query.matches_name(target.mapped.name(target.queue));
    query.answer_borrowed(targets.collect(), is_wanted, |targets, part| {
        targets.iter().map(|target| to_row(target, part).into_json()).collect()
    })
}

fn to_row<'a>(target: &Target<'_>, part: Part<'a>) -> Row<'a> {
    let Target { mapped, queue: at, from, from_total, deaths } = target;
    let map = &mapped.map;
    let mut row = Row::new(part);
    // The number of a queue on the map is the index of an entry.
    let Some(queue) = map.queues.get(*at) else { return row };
    row.put("name", || json!(*queue.name));
    row.put("vhost", || json!(mapped.vhost));
    row.put("type", || json!(queue.kind.as_str()));
    row.put("messages", || json!(queue.messages));
    row.put("consumers", || json!(queue.consumers));
    row.put("message_ttl_ms", || json!(queue.settings.message_ttl_ms));
    row.put("from", || {
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
        from.collect()
    });
    row.put("from_total", || json!(from_total));
    row.put("from_count_by_reason", || {
        let deaths = DeathReason::ALL.into_iter().zip(deaths);
        deaths.map(|(reason, count)| (reason.as_str().to_owned(), json!(count))).collect()
    });
    row.put_object("rates", |rates| {
        for name in ["publish", "deliver_get", "ack", "expired", "dead_lettered", "dropped"] {
            rates.put(name, || json!(mapped.rate(*at, name)));
        }
    });
    row
}

//! `/api/queues`: queues with their settings and statistics; declare, delete, purge.

mod browse;
mod deadline_histogram;
mod expiry;
pub(crate) mod get;
mod given_reasons;
pub(crate) mod message;
mod place;
pub(crate) mod properties;

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use broker::dead_letter::DeathReason;
use broker::{Command, DeathCounters, DeclareQueue, DeleteQueue, DropCause};
use serde_json::{Value, json};
use server::history::Trend;
use server::requests::Caller;
use server::snapshot::fields::{QUEUE, StatsKind, of_view};
use server::snapshot::queue::{QueueKey, QueueSnapshot, QueueView};
use server::snapshot::queue_fields::{Level, QUEUE_FIELDS, QueueField};

use crate::api::clients::consumers;
use crate::api::list_query::{DeleteConditions, List, Query};
use crate::api::nodes::is_of_cluster;
use crate::api::rates::trends;
use crate::api::row::{Part, Row};
use crate::api::user_channel::{UserVhost, short};
use crate::api::{health, rates};
use crate::http::access::{Administrator, Management, check_can_enter};
use crate::http::answer::{ApiError, Json, made};
use crate::http::extract::{Body, Name, NameInVhost, SharedNode};
use crate::http::fields::{Fields, text};
use crate::http::routes::Routes;
use crate::http::scope::{NAME, Scope};
use crate::json::table::table_from_json;
use place::{Places, QueuePlace};
use properties::{QUEUE_DECLARATION, QUEUE_STATE, QueueTrend, ShownQueue};

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/queues", Scope::List(NAME), get(list))
        // As in RabbitMQ, this path hides a vhost named `detailed`.
        .route("/api/queues/detailed", Scope::List(NAME), get(list_detailed))
        .route("/api/queues/{vhost}", Scope::Vhost("vhost"), get(list_of_vhost))
        .route("/api/users/{user}/queues", Scope::List(NAME), get(list_of_user))
        .route(
            "/api/queues/{vhost}/{name}",
            Scope::Vhost("vhost"),
            get(show).put(declare).delete(remove),
        )
        .route("/api/queues/{vhost}/{name}/contents", Scope::Vhost("vhost"), delete(purge))
        .route("/api/queues/{vhost}/{name}/actions", Scope::Vhost("vhost"), post(act))
        .route("/api/rebalance/queues", Scope::Everywhere, post(rebalance))
        .merge(browse::routes())
        .merge(expiry::routes())
        .merge(get::routes())
        .merge(given_reasons::routes())
}

/// Treatment of fields without a value. Tools that print lists do not expect nulls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Shown,
    LeftOut,
}

/// The queues of the vhosts that the user has permissions in; an administrator sees all.
async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<List, ApiError> {
    answer(&node, seen(&node, &caller), query, Nulls::LeftOut)
}

async fn list_detailed(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<List, ApiError> {
    answer(&node, seen(&node, &caller), query, Nulls::Shown)
}

fn seen(node: &SharedNode, caller: &Caller) -> Vec<QueueKey> {
    let seen = node.vhost_names().into_iter().filter(|vhost| caller.can_enter(vhost));
    // A vhost deleted meanwhile has no queues.
    seen.filter_map(|vhost| node.queue_keys(&vhost)).flatten().collect()
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
) -> Result<List, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let queues = node.queue_keys(&vhost).ok_or_else(ApiError::not_found)?;
    answer(&node, queues, query, Nulls::LeftOut)
}

/// The queues that a user declared, even if the user was deleted.
async fn list_of_user(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(user): Name,
    query: Query,
) -> Result<List, ApiError> {
    let mut queues = seen(&node, &caller);
    queues.retain(|queue| *queue.declared_by == *user);
    answer(&node, queues, query, Nulls::LeftOut)
}

async fn show(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    check_can_enter(&caller, &vhost)?;
    let (queue, consumers) = node.queue(&vhost, &name).ok_or_else(ApiError::not_found)?;
    let name = node.snapshot().name;
    let trend = trend(&node, &queue, &query);
    let place = Places::of(&node).of_vhost(&node, &vhost);
    let mut object = to_row(&place, &queue, &trend, &query, Part::Whole).into_fields();
    if !query.disable_stats {
        let consumers = consumers.iter().map(|one| consumers::to_json(&name, one));
        object.insert("consumer_details".to_owned(), consumers.collect());
        // No counts by channel and exchange; RabbitMQ has them on demand only.
        object.insert("deliveries".to_owned(), json!([]));
        object.insert("incoming".to_owned(), json!([]));
    }
    Ok(Json::ok(query.select_columns(Value::Object(object))))
}

fn answer(
    node: &SharedNode,
    mut queues: Vec<QueueKey>,
    query: Query,
    nulls: Nulls,
) -> Result<List, ApiError> {
    queues.sort_by(|a, b| (&a.vhost, &a.name).cmp(&(&b.vhost, &b.name)));
    let query = Arc::new(query);
    let is_wanted = |queue: &QueueKey| query.matches_name(&queue.name);
    let (node, shown, places) = (Arc::clone(node), Arc::clone(&query), Places::of(node));
    query.answer_lazily(queues, is_wanted, move |queues, part| {
        let by_vhost = queues.chunk_by(|a, b| a.vhost == b.vhost);
        by_vhost
            .flat_map(|queues| rows_of_vhost(&node, &places, queues, &shown, nulls, part))
            .collect()
    })
}

/// The rows of some queues of one vhost; null for a queue that is gone.
fn rows_of_vhost(
    node: &SharedNode,
    places: &Places,
    keys: &[QueueKey],
    query: &Query,
    nulls: Nulls,
    part: Part<'_>,
) -> Vec<Value> {
    let Some(vhost) = keys.first().map(|key| &key.vhost) else { return Vec::new() };
    let queues = node.queues(vhost, keys);
    let trends = trends(node, &queues, &query.ranges, part, |history, queue, ranges| {
        queue.as_ref().map_or_else(Trend::default, |queue| {
            history.of_queue(&queue.vhost, queue.view.number, ranges)
        })
    });
    let place = places.of_vhost(node, vhost);
    let all = queues.iter().zip(&trends);
    let json = all.map(|(queue, trend)| {
        let Some(queue) = queue else { return Value::Null };
        let mut json = to_row(&place, queue, trend, query, part).into_fields();
        // As in RabbitMQ, nulls stay if statistics are left out.
        let keeps = nulls == Nulls::Shown || query.disable_stats;
        json.retain(|_, value| keeps || !value.is_null());
        Value::Object(json)
    });
    json.collect()
}

fn trend(node: &SharedNode, queue: &QueueSnapshot, query: &Query) -> QueueTrend {
    node.history().read(|history| history.of_queue(&queue.vhost, queue.view.number, &query.ranges))
}

/// A queue as a row.
fn to_row<'a>(
    place: &QueuePlace,
    queue: &QueueSnapshot,
    trend: &QueueTrend,
    query: &Query,
    part: Part<'a>,
) -> Row<'a> {
    let mut row = Row::new(part);
    let shown = ShownQueue { queue, place, trend };
    properties::put(&mut row, QUEUE_DECLARATION, &shown);
    if query.disable_stats && !query.enable_queue_totals {
        return row;
    }
    if query.disable_stats {
        put_numbers(&mut row, &queue.view, |field| field.is_sampled() && !field.is_count());
        return row;
    }
    let numbers = of_view(&queue.view);
    rates::put_in_row(&mut row, &QUEUE, StatsKind::Lengths, &numbers, trend);
    put_numbers(&mut row, &queue.view, |field| !field.is_sampled());
    properties::put(&mut row, QUEUE_STATE, &shown);
    row.put_object("message_stats", |stats| {
        rates::put_in_row(stats, &QUEUE, StatsKind::Messages, &numbers, trend);
        put_reasons(stats, &queue.view.counters.deaths());
    });
    row
}

/// Puts the numbers that are wanted, and that are fields.
fn put_numbers(row: &mut Row<'_>, queue: &QueueView, is_wanted: fn(&QueueField) -> bool) {
    let fields = QUEUE_FIELDS.iter().filter(|field| !field.name.is_empty() && is_wanted(field));
    for field in fields {
        row.put(field.name, || match field.of(queue) {
            Level::Whole(number) => json!(number),
            #[expect(clippy::cast_precision_loss, reason = "at most a million")]
            Level::Millionths(share) => json!(share as f64 / 1e6),
            Level::Missing => Value::Null,
        });
    }
}

/// Puts dead-lettered messages by reason, and dropped messages by reason and cause.
fn put_reasons(stats: &mut Row<'_>, deaths: &DeathCounters) {
    let reasons = || DeathReason::ALL.into_iter();
    let dead_lettered =
        |reason: DeathReason| (reason.as_str().to_owned(), json!(deaths.dead_lettered.get(reason)));
    stats.put("dead_lettered_by_reason", || reasons().map(dead_lettered).collect());
    let dropped = |reason: DeathReason| {
        let by_cause = deaths.dropped.get(reason);
        let causes = DropCause::ALL.into_iter().map(|cause| (cause, by_cause.get(cause)));
        let causes = causes.filter(|(_, count)| *count > 0);
        let causes: Value =
            causes.map(|(cause, count)| (cause.as_str().to_owned(), json!(count))).collect();
        (reason.as_str().to_owned(), causes)
    };
    stats.put("dropped_by_reason", || reasons().map(dropped).collect());
}

/// COMPAT: names in a body: the path names the queue or exchange; in RabbitMQ, `queue` or `exchange` in the
/// body wins.
async fn declare(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    Body(body): Body,
) -> Result<StatusCode, ApiError> {
    let user_vhost = UserVhost::for_create(node, caller, vhost)?;
    let fields = Fields::read(&body)?;
    check_node(&user_vhost, &fields)?;
    let exclusive = fields.flag("exclusive")?;
    let arguments = fields.get("arguments").map(table_from_json).transpose()?.unwrap_or_default();
    let declare = DeclareQueue {
        queue: short("queue", &name)?,
        passive: fields.flag("passive")?,
        // A queue over HTTP has no owning connection, so it cannot be exclusive. It is transient instead.
        durable: fields.flag("durable")? && !exclusive,
        exclusive: false,
        auto_delete: fields.flag("auto_delete")?,
        nowait: false,
        arguments: arguments.as_ref(),
    };
    let is_new = user_vhost.node().queue(&user_vhost.vhost, &name).is_none();
    user_vhost.perform(Command::DeclareQueue(declare)).await?;
    Ok(made(is_new))
}

/// Checks that the field `node`, if given, names this node.
fn check_node(user_vhost: &UserVhost, fields: &Fields) -> Result<(), ApiError> {
    let Some(wanted) = fields.get("node") else { return Ok(()) };
    let wanted = text("node", wanted)?;
    // The queue is on the nodes that have its vhost.
    if is_of_cluster(user_vhost.node(), wanted) {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("Node {wanted} is not a cluster member")))
}

async fn remove(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    conditions: DeleteConditions,
) -> Result<StatusCode, ApiError> {
    let user_vhost = existing(UserVhost::for_existing(node, caller, vhost)?, &name)?;
    let DeleteConditions { if_unused, if_empty } = conditions;
    let delete = DeleteQueue { queue: &name, if_unused, if_empty, nowait: false };
    user_vhost.perform(Command::DeleteQueue(delete)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn purge(
    State(node): State<SharedNode>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<StatusCode, ApiError> {
    let user_vhost = existing(UserVhost::for_existing(node, caller, vhost)?, &name)?;
    user_vhost.perform(Command::PurgeQueue { queue: &name, nowait: false }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn existing(user_vhost: UserVhost, queue: &str) -> Result<UserVhost, ApiError> {
    match user_vhost.node().queue(&user_vhost.vhost, queue) {
        Some(_) => Ok(user_vhost),
        None => Err(ApiError::not_found()),
    }
}

/// No action is supported: RabbitMQ's were about mirrored queues, which no longer exist.
async fn act(
    State(node): State<SharedNode>,
    Administrator(caller): Administrator,
    NameInVhost { vhost, name }: NameInVhost,
    Body(body): Body,
) -> Result<StatusCode, ApiError> {
    let user_vhost = UserVhost::for_create(node, caller, vhost)?;
    if user_vhost.node().queue(&user_vhost.vhost, &name).is_none() {
        return Err(ApiError::missing("queue_not_found"));
    }
    let fields = Fields::read(&body)?;
    let [action]: [&Value; 1] = fields.required(["action"])?;
    Err(ApiError::bad_request(json!(["unknown", action])))
}

/// Transfers leads of vhosts from this node until it has no more than its share of those whose names match.
async fn rebalance(
    State(node): State<SharedNode>,
    Administrator(_): Administrator,
    RawQuery(query): RawQuery,
) -> Result<StatusCode, ApiError> {
    let mut vhosts = node.vhost_names();
    let query = query.unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    if let Some((_, pattern)) = pairs.find(|(name, _)| name == "vhost_pattern") {
        let pattern = health::filter(&pattern)?;
        vhosts.retain(|vhost| pattern.matches(vhost));
    }
    node.rebalance_leaders(&vhosts).await;
    Ok(StatusCode::NO_CONTENT)
}

//! `/api/queues`: the queues, what is in them, what is in force for them and what has happened there.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use broker::dead_letter::DeathReason;
use broker::{DelayedRetryType, DropCause, Policy, QueueCounters, QueueType};
use serde_json::{Map, Value, json};

use super::lists::Query;
use super::{Name, NameInVhost, Shared};
use crate::access::Management;
use crate::answer::{ApiError, Json};
use crate::field_table::table;
use crate::policy_json::json_of_definition;
use crate::queue_snapshot::{ConsumerDetails, QueueDetails};

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/queues", get(list))
        .route("/api/queues/detailed", get(list))
        .route("/api/queues/{vhost}", get(list_of_vhost))
        .route("/api/queues/{vhost}/{name}", get(show))
}

/// The queues of the vhosts that the user has permissions in; an administrator sees all.
async fn list(
    State(node): State<Shared>,
    Management(caller): Management,
    query: Query,
) -> Result<Json, ApiError> {
    let seen = node.vhost_names().into_iter().filter(|vhost| caller.looks_into(vhost));
    // A vhost that has gone since has no queues.
    let queues = seen.filter_map(|vhost| node.queues(&vhost));
    let name = node.snapshot().name;
    query.answer(queues.flat_map(|queues| in_order(&name, queues, &query)).collect())
}

async fn list_of_vhost(
    State(node): State<Shared>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
) -> Result<Json, ApiError> {
    caller.may_look_into(&vhost)?;
    let queues = node.queues(&vhost).ok_or_else(ApiError::not_found)?;
    query.answer(in_order(&node.snapshot().name, queues, &query))
}

async fn show(
    State(node): State<Shared>,
    Management(caller): Management,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    caller.may_look_into(&vhost)?;
    let (queue, consumers) = node.queue(&vhost, &name).ok_or_else(ApiError::not_found)?;
    let node = node.snapshot().name;
    let mut object = shown(&node, &queue, &query);
    if !query.disable_stats {
        let consumers = consumers.iter().map(|one| consumer(&node, &queue, one));
        object.insert("consumer_details".to_owned(), consumers.collect());
    }
    Ok(Json::ok(query.chosen(Value::Object(object))))
}

fn in_order(node: &str, mut queues: Vec<QueueDetails>, query: &Query) -> Vec<Value> {
    queues.sort_by(|a, b| a.name.cmp(&b.name));
    queues.iter().map(|queue| Value::Object(shown(node, queue, query))).collect()
}

/// What is told of a queue wherever it is shown.
fn shown(node: &str, queue: &QueueDetails, query: &Query) -> Map<String, Value> {
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    put("name", json!(*queue.name));
    put("vhost", json!(*queue.vhost));
    put("type", json!(queue.kind.as_str()));
    put("durable", json!(queue.durable));
    put("auto_delete", json!(queue.auto_delete));
    put("exclusive", json!(queue.exclusive));
    put("arguments", table(queue.arguments.as_ref()));
    put("node", json!(node));
    put("state", json!("running"));
    put("policy", policy_name(queue.policies.user.as_deref()));
    put("operator_policy", policy_name(queue.policies.operator.as_deref()));
    // An object, never null: clients wait for one.
    put("effective_policy_definition", json_of_definition(&queue.policies.definition()));
    if queue.kind == QueueType::Quorum {
        put("leader", json!(node));
        put("members", json!([node]));
        put("online", json!([node]));
        let limit = queue.settings.delivery_limit;
        put("delivery_limit", limit.map_or_else(|| json!("unlimited"), |limit| json!(limit)));
    }
    if query.disable_stats && !query.enable_queue_totals {
        return shown;
    }
    put("messages", json!(queue.total().messages));
    put("messages_ready", json!(queue.ready.messages));
    put("messages_unacknowledged", json!(queue.unacked.messages));
    if query.disable_stats {
        return shown;
    }
    put("message_bytes", json!(queue.total().bytes));
    put("message_bytes_ready", json!(queue.ready.bytes));
    put("message_bytes_unacknowledged", json!(queue.unacked.bytes));
    put("messages_paged_out", json!(queue.paged_out.messages));
    put("message_bytes_paged_out", json!(queue.paged_out.bytes));
    put("consumers", json!(queue.consumers));
    put("single_active_consumer_tag", json!(queue.single_active_consumer.as_deref()));
    match queue.kind {
        QueueType::Classic => {
            put("exclusive_consumer_tag", json!(queue.exclusive_consumer.as_deref()));
        }
        QueueType::Quorum => {
            put("messages_delayed", json!(queue.delayed.messages));
            put("messages_dlx", json!(queue.pending.messages));
            put("message_bytes_dlx", json!(queue.pending.bytes));
            let retry = queue.settings.delayed_retry.map(|retry| retry.kind);
            let retry = retry.unwrap_or(DelayedRetryType::Disabled);
            put("delayed_retry", json!(retry.as_str()));
        }
    }
    put("message_stats", message_stats(&queue.counters));
    shown
}

fn policy_name(policy: Option<&Policy>) -> Value {
    json!(policy.map(|policy| &*policy.name))
}

/// What has happened to messages in the queue since it was declared or the broker started.
fn message_stats(counters: &QueueCounters) -> Value {
    let deliveries = &counters.deliveries;
    let dead_lettered = |reason| counters.dead_lettered.get(reason);
    let dropped = |reason| counters.dropped.get(reason).total();
    let died = |reason: DeathReason| {
        let causes = DropCause::ALL.into_iter();
        let causes = causes.map(|cause| (cause, counters.dropped.get(reason).get(cause)));
        let causes = causes.filter(|(_, count)| *count > 0);
        causes.map(|(cause, count)| (cause.as_str().to_owned(), json!(count))).collect::<Value>()
    };
    let by_reason = |count: &dyn Fn(DeathReason) -> Value| {
        let reasons = DeathReason::ALL.into_iter();
        reasons.map(|reason| (reason.as_str().to_owned(), count(reason))).collect::<Value>()
    };
    json!({
        "publish": counters.entered,
        "deliver": deliveries.delivered(),
        "deliver_no_ack": deliveries.delivered_no_ack(),
        "get": deliveries.got(),
        "get_no_ack": deliveries.got_no_ack(),
        "get_empty": deliveries.got_nothing,
        "deliver_get": deliveries.all(),
        "redeliver": deliveries.redelivered,
        "ack": deliveries.acknowledged,
        "expired": dead_lettered(DeathReason::Expired) + dropped(DeathReason::Expired),
        "dead_lettered": DeathReason::ALL.into_iter().map(dead_lettered).sum::<u64>(),
        "dead_lettered_by_reason": by_reason(&|reason| json!(dead_lettered(reason))),
        "dropped": DeathReason::ALL.into_iter().map(dropped).sum::<u64>(),
        "dropped_by_reason": by_reason(&died),
    })
}

fn consumer(node: &str, queue: &QueueDetails, consumer: &ConsumerDetails) -> Value {
    let mut shown = json!({
        "consumer_tag": *consumer.tag,
        "queue": {"name": *queue.name, "vhost": *queue.vhost},
        "ack_required": consumer.ack_required,
        "active": consumer.active,
        "exclusive": consumer.exclusive,
        "prefetch_count": consumer.prefetch_count,
        "arguments": table(consumer.arguments.as_ref()),
        "channel_details": {
            "node": node,
            "number": consumer.channel,
            "user": consumer.user.as_deref(),
        },
    });
    if let (Some(shown), Some(timeout_ms)) = (shown.as_object_mut(), consumer.timeout_ms) {
        shown.insert("consumer_timeout".to_owned(), json!(timeout_ms));
    }
    shown
}

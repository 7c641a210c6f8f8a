//! The fields of a queue that are no numbers of messages, one row each. [`QUEUE_FIELDS`](server::snapshot::queue_fields::QUEUE_FIELDS) has the
//! numbers.

use broker::QueueType::{Classic, Quorum};
use broker::{DelayedRetryType, Policy};
use serde_json::{Value, json};
use server::history::Trend;
use server::json::policy::definition_to_json;
use server::json::table::table_to_json;
use server::snapshot::fields::QUEUE;
use server::snapshot::queue::QueueSnapshot;

use super::place::QueuePlace;
use crate::api::row::Row;
use crate::json::timestamp::rfc3339;

/// The change of the numbers of a queue.
pub(super) type QueueTrend = Trend<{ QUEUE.len() }>;

/// A queue with everything that a property is read from.
#[derive(Debug)]
pub(super) struct ShownQueue<'a> {
    pub(super) queue: &'a QueueSnapshot,
    pub(super) place: &'a QueuePlace,
    pub(super) trend: &'a QueueTrend,
}

/// A field of a queue that is no number of messages.
#[derive(Clone, Copy, Debug)]
pub struct QueueProperty {
    /// Field of the API.
    pub name: &'static str,
    /// The meaning.
    pub meaning: &'static str,
    /// True if `list_queues` has a column of this name.
    pub is_listed: bool,
    /// Returns none for a queue without the field.
    read: fn(&ShownQueue<'_>) -> Option<Value>,
}

const fn hidden(
    name: &'static str,
    meaning: &'static str,
    read: fn(&ShownQueue<'_>) -> Option<Value>,
) -> QueueProperty {
    QueueProperty { name, meaning, is_listed: false, read }
}

const fn listed(
    name: &'static str,
    meaning: &'static str,
    read: fn(&ShownQueue<'_>) -> Option<Value>,
) -> QueueProperty {
    QueueProperty { name, meaning, is_listed: true, read }
}

/// The properties that stand before the numbers, and that are shown without statistics.
pub const QUEUE_DECLARATION: &[QueueProperty] = &[
    listed("name", "Name of the queue", |q| Some(json!(*q.queue.view.name))),
    hidden("vhost", "Name of the vhost", |q| Some(json!(*q.queue.vhost))),
    listed("type", "`classic` or `quorum`", |q| Some(json!(q.queue.view.kind.as_str()))),
    listed("durable", "Survives a restart", |q| Some(json!(q.queue.durable))),
    listed("auto_delete", "Deleted after its last consumer", |q| Some(json!(q.queue.auto_delete))),
    listed("exclusive", "Used by one connection only", |q| Some(json!(q.queue.exclusive))),
    listed("arguments", "Arguments of the declaration", |q| {
        Some(table_to_json(q.queue.arguments.as_ref()))
    }),
    // RabbitMQ has internal queues for plugins.
    hidden("internal", "False: clients can publish to every queue", |_| Some(json!(false))),
    hidden("internal_owner", "False: no plugin owns queues", |_| Some(json!(false))),
    hidden("node", "Name of the leader, empty while no node leads", |q| {
        Some(json!(q.place.node()))
    }),
    listed(
        "state",
        "`running`; without a leader `down`, or `minority` of a quorum queue of which a majority of the members is not up",
        |q| Some(json!(q.place.state(q.queue.view.kind))),
    ),
    listed("policy", "Policy in force, or null", |q| {
        Some(policy_name(q.queue.policies.user.as_deref()))
    }),
    listed("operator_policy", "Operator policy in force, or null", |q| {
        Some(policy_name(q.queue.policies.operator.as_deref()))
    }),
    // An object even if empty: clients do not expect null.
    listed("effective_policy_definition", "Policy and operator policy combined", |q| {
        Some(definition_to_json(&q.queue.policies.definition()))
    }),
    listed(
        "leader",
        "Of a quorum queue: the node that leads its vhost; null, and left out of lists, while no node does",
        |q| of_quorum(q, |q| json!(q.place.leader)),
    ),
    listed("members", "Of a quorum queue: the nodes that have its vhost", |q| {
        of_quorum(q, |q| json!(q.place.members))
    }),
    listed(
        "online",
        "Of a quorum queue: members that are up, have a replica that can be used, and vote: not one that is being rebuilt",
        |q| of_quorum(q, |q| json!(q.place.online)),
    ),
    hidden(
        "delivery_limit",
        "Of a quorum queue: deliveries after which a message dies, or `unlimited`",
        |q| {
            let limit = q.queue.settings.delivery_limit;
            of_quorum(q, |_| limit.map_or_else(|| json!("unlimited"), |limit| json!(limit)))
        },
    ),
];

/// The properties that stand behind the levels, with the statistics.
pub const QUEUE_STATE: &[QueueProperty] = &[
    // Erlang's counters: tools read them, and they are always 0 here.
    hidden("reductions", "0: a counter of Erlang", |_| Some(json!(0))),
    hidden("reductions_details", "0: a rate of Erlang", |_| Some(json!({"rate": 0.0}))),
    hidden("garbage_collection", "0: counters of Erlang", |_| {
        Some(COLLECTED_BY_ERLANG.iter().map(|name| (*name, 0)).collect())
    }),
    listed("refuses_publishes", "True while the queue is full and refuses publishes", |q| {
        Some(json!(q.queue.refuses_publishes))
    }),
    listed(
        "held_until_ms",
        "End of the time for which a returned message holds the queue in strict order, in milliseconds since 1970; null \
         if none does",
        |q| Some(json!(q.queue.held_until_ms)),
    ),
    hidden("idle_since", "Time since which nothing has changed", |q| {
        q.trend.idle_since_ms.map(|idle_since_ms| json!(rfc3339(idle_since_ms)))
    }),
    hidden("owner_pid_details", "Connection that owns an exclusive queue", |q| {
        let owner = q.queue.owner.as_ref()?;
        let (host, port) = (owner.peer.ip().to_string(), owner.peer.port());
        Some(json!({"name": owner.name, "peer_host": host, "peer_port": port}))
    }),
    hidden("single_active_consumer_tag", "Tag of the single active consumer, or null", |q| {
        Some(json!(q.queue.single_active_consumer.as_deref()))
    }),
    // RabbitMQ knows what delays messages, and until when, of quorum queues.
    hidden(
        "next_delayed_at",
        "Time at which the next message in delayed retry is ready again, in milliseconds since 1970",
        |q| q.queue.returned_ready_ms.map(|(next_ms, _)| json!(next_ms)),
    ),
    hidden(
        "last_delayed_at",
        "Time at which the last message in delayed retry is ready again, in milliseconds since 1970",
        |q| q.queue.returned_ready_ms.map(|(_, last_ms)| json!(last_ms)),
    ),
    hidden("delayed_retry", "Type and delays of the delayed retry, as text", |q| {
        let retry = q.queue.settings.delayed_retry.as_deref();
        let disabled = || DelayedRetryType::Disabled.as_str().to_owned();
        let is_shown = q.queue.view.kind == Quorum || retry.is_some();
        is_shown.then(|| json!(retry.map_or_else(disabled, ToString::to_string)))
    }),
    listed(
        "exclusive_consumer_tag",
        "Of a classic queue: tag of the exclusive consumer, or null",
        |q| {
            let is_classic = q.queue.view.kind == Classic;
            is_classic.then(|| json!(q.queue.exclusive_consumer.as_deref()))
        },
    ),
];

/// RabbitMQ's fields about the memory of a queue's Erlang process. Clients expect all of them or none.
const COLLECTED_BY_ERLANG: [&str; 5] =
    ["minor_gcs", "fullsweep_after", "min_heap_size", "min_bin_vheap_size", "max_heap_size"];

/// Puts properties.
pub(super) fn put(row: &mut Row<'_>, properties: &[QueueProperty], of: &ShownQueue<'_>) {
    for property in properties {
        row.put_some(property.name, || (property.read)(of));
    }
}

fn of_quorum(q: &ShownQueue<'_>, value: impl FnOnce(&ShownQueue<'_>) -> Value) -> Option<Value> {
    (q.queue.view.kind == Quorum).then(|| value(q))
}

fn policy_name(policy: Option<&Policy>) -> Value {
    json!(policy.map(|policy| &*policy.name))
}

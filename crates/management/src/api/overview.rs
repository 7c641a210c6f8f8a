//! `/api/overview`: versions, listeners, statistics and numbers of objects.

use axum::extract::State;
use broker::ExchangeType;
use serde_json::{Map, Value, json};
use server::history::{RETENTION_S, TimeRanges};
use server::snapshot::fields::StatsKind;
use server::snapshot::node::{Listener, NodeSnapshot};
use server::snapshot::vhost::VhostTotals;

use crate::api::list_query::Query;
use crate::api::rates;
use crate::api::vhosts::stats::{VhostStats, schedules};
use crate::http::access::{Administrator, Management};
use crate::http::answer::Json;
use crate::http::extract::SharedNode;

/// The compatible version of RabbitMQ, which everybody sees in AMQP, too.
pub(crate) async fn version(State(node): State<SharedNode>) -> Json {
    Json::ok(json!(node.snapshot().identity.version))
}

/// All settings in force, in RabbitMQ as Erlang terms.
pub(crate) async fn configuration(State(node): State<SharedNode>, _: Administrator) -> String {
    node.configuration()
}

/// Users who are no monitors see statistics of the vhosts that they have permissions in, and their own
/// connections.
pub(crate) async fn show(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Json {
    let is_monitor = caller.is_monitor();
    let user = (!is_monitor).then_some(caller.name.as_str());
    let live = node.vhost_names();
    let seen = live.iter().filter(|vhost| caller.can_list(vhost));
    let totals: Vec<VhostTotals> =
        seen.filter_map(|vhost| node.vhost_totals(vhost, user)).collect();
    let now = node.snapshot();
    let mut overview = versions(&now, &query);
    let mut put = |name: &str, value: Value| overview.insert(name.to_owned(), value);
    if !query.disable_stats {
        // The range of the churn is that of message rates.
        let ranges = TimeRanges { node: query.ranges.messages, ..query.ranges };
        let mut stats = VhostStats::of_all(&node, &totals, &ranges);
        if is_monitor {
            stats = stats.with_deleted_vhosts(&node, &live);
        }
        put("message_stats", stats.object(StatsKind::Messages));
        put("schedule_totals", schedules(&totals));
        put("churn_rates", stats.object(StatsKind::Node));
        put("queue_totals", stats.object(StatsKind::Lengths));
        put("statistics_db_event_queue", json!(0));
    }
    let sum = |count: fn(&VhostTotals) -> u64| totals.iter().map(count).sum::<u64>();
    let objects = json!({
        "channels": sum(|v| v.channels),
        "consumers": sum(|v| v.consumers),
        "exchanges": sum(|v| v.exchanges),
        "connections": sum(|v| v.connections),
        "queues": sum(|v| v.queues),
    });
    put("object_totals", objects);
    if is_monitor {
        put("node", json!(now.name));
        let listeners = now.listeners.iter();
        put("listeners", listeners.map(|one| listener(&now.name, one)).collect());
        put("contexts", contexts(&now));
    }
    Json::ok(query.select_columns(Value::Object(overview)))
}

/// Stands for the Erlang version: clients expect a string.
pub(crate) const NO_ERLANG: &str = "none";

/// Name of the cryptography library, where RabbitMQ names OpenSSL.
pub(crate) const CRYPTO_LIBRARY: &str = "ring";

/// Product, versions and modes.
fn versions(node: &NodeSnapshot, query: &Query) -> Map<String, Value> {
    let (global, basic) = RETENTION_S;
    let versions = json!({
        "management_version": node.identity.version,
        "rates_mode": "basic",
        "sample_retention_policies": {"global": global, "basic": basic, "detailed": [600]},
        "exchange_types": exchange_types(),
        "product_version": node.identity.version,
        "product_name": node.identity.product,
        "rabbitmq_version": node.identity.version,
        "leveret_version": node.leveret_version,
        "cluster_name": node.cluster_name,
        "cluster_record_level": node.cluster_record_level,
        "cluster_tags": {},
        "node_tags": {},
        "erlang_version": NO_ERLANG,
        "erlang_full_version": NO_ERLANG,
        "crypto_lib_version": CRYPTO_LIBRARY,
        "durability": node.durability,
        "disable_stats": query.disable_stats,
        "enable_queue_totals": query.enable_queue_totals,
        "default_queue_type": "classic",
        "is_op_policy_updating_enabled": true,
        "require_definition_json_extension": false,
    });
    rates::object(versions)
}

/// The supported exchange types.
pub(crate) fn exchange_types() -> Value {
    let described = |kind: ExchangeType| {
        let description = match kind {
            ExchangeType::Direct => "The routing key equals the binding key",
            ExchangeType::Fanout => "To every binding",
            ExchangeType::Topic => "The routing key matches a pattern of words",
            ExchangeType::Headers => "The headers match the binding's arguments",
            ExchangeType::ConsistentHash => "To one binding by hash, in proportion to weights",
            ExchangeType::ModulusHash => "To one binding by hash of the routing key",
            ExchangeType::LocalRandom => "To one binding at random",
            ExchangeType::FederationUpstream => {
                "To every binding, for links of other clusters that follow an exchange"
            }
            ExchangeType::Delayed => "After the delay in the header x-delay, by another type",
        };
        json!({"name": kind.as_str(), "description": description, "enabled": true})
    };
    ExchangeType::ALL.into_iter().map(described).collect()
}

fn listener(node: &str, listener: &Listener) -> Value {
    json!({
        "node": node,
        "protocol": listener.protocol,
        "ip_address": listener.address.ip().to_string(),
        "port": listener.address.port(),
        "tls": listener.is_tls(),
    })
}

/// Contexts of the HTTP listeners: the page with this API and metrics, or metrics alone.
pub(crate) fn contexts(node: &NodeSnapshot) -> Value {
    let described = |listener: &Listener| match listener.protocol {
        "http" | "https" => Some(context(&node.name, "Leveret management", listener)),
        protocol if protocol.ends_with("/prometheus") => {
            Some(context(&node.name, "Leveret metrics", listener))
        }
        _ => None,
    };
    node.listeners.iter().filter_map(described).collect()
}

fn context(node: &str, description: &str, listener: &Listener) -> Value {
    json!({
        "node": node,
        "description": description,
        "path": "/",
        "ip": listener.address.ip().to_string(),
        "port": listener.address.port().to_string(),
        "ssl_opts": [],
        "tls": listener.is_tls(),
    })
}

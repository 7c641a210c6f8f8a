//! `/api/overview`: what is running here, and how much of everything there is.

use axum::extract::State;
use broker::ExchangeType;
use serde_json::{Value, json};

use super::{Shared, vhosts};
use crate::RABBITMQ_VERSION;
use crate::access::Management;
use crate::answer::Json;
use crate::snapshot::{Listener, NodeSnapshot, VhostTotals};

/// A user who is no monitor sees what concerns the vhosts that he may enter and his own connections.
pub(super) async fn show(State(node): State<Shared>, Management(caller): Management) -> Json {
    let is_monitor = caller.is_monitor();
    let user = (!is_monitor).then_some(caller.name.as_str());
    let seen = node.vhost_names().into_iter().filter(|vhost| caller.sees(vhost));
    let totals: Vec<VhostTotals> =
        seen.filter_map(|vhost| node.vhost_totals(&vhost, user)).collect();
    let now = node.snapshot();
    let mut overview = overview(&now, &totals);
    if is_monitor && let Some(overview) = overview.as_object_mut() {
        overview.insert("node".to_owned(), json!(now.name));
        let listeners = now.listeners.iter();
        let shown = listeners.clone().map(|one| listener(&now.name, one)).collect();
        overview.insert("listeners".to_owned(), shown);
        let http = listeners.filter(|listener| listener.protocol == "http");
        let contexts = http.map(|listener| context(&now.name, listener)).collect();
        overview.insert("contexts".to_owned(), contexts);
    }
    Json::ok(overview)
}

fn overview(node: &NodeSnapshot, vhosts: &[VhostTotals]) -> Value {
    let sum = |count: fn(&VhostTotals) -> u64| vhosts.iter().map(count).sum::<u64>();
    let all: Vec<&VhostTotals> = vhosts.iter().collect();
    json!({
        "management_version": RABBITMQ_VERSION,
        "rates_mode": "none",
        "exchange_types": exchange_types(),
        "product_version": node.version,
        "product_name": "Leveret",
        "rabbitmq_version": RABBITMQ_VERSION,
        "cluster_name": node.cluster_name,
        "durability": node.durability,
        "default_queue_type": "classic",
        "message_stats": vhosts::message_stats(&all),
        "churn_rates": {
            "queue_created": sum(|v| v.counters.queues_declared),
            "queue_deleted": sum(|v| v.counters.queues_deleted),
        },
        "queue_totals": {
            "messages": sum(|v| v.messages),
            "messages_ready": sum(|v| v.messages_ready),
            "messages_unacknowledged": sum(|v| v.messages_unacknowledged),
        },
        "object_totals": {
            "channels": sum(|v| v.channels),
            "consumers": sum(|v| v.consumers),
            "exchanges": sum(|v| v.exchanges),
            "connections": sum(|v| v.connections),
            "queues": sum(|v| v.queues),
        },
    })
}

/// The exchange types that there are.
pub(super) fn exchange_types() -> Value {
    let described = |kind: ExchangeType| {
        let description = match kind {
            ExchangeType::Direct => "The routing key equals the binding key",
            ExchangeType::Fanout => "To every binding",
            ExchangeType::Topic => "The routing key matches a pattern of words",
            ExchangeType::Headers => "The headers match the binding's arguments",
            ExchangeType::ConsistentHash => "To one binding by hash, in proportion to weights",
            ExchangeType::ModulusHash => "To one binding by hash of the routing key",
            ExchangeType::LocalRandom => "To one binding at random",
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
        "tls": false,
    })
}

/// Where this API is.
fn context(node: &str, listener: &Listener) -> Value {
    json!({
        "node": node,
        "description": "Leveret management",
        "path": "/",
        "ip": listener.address.ip().to_string(),
        "port": listener.address.port().to_string(),
        "ssl_opts": [],
    })
}

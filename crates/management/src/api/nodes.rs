//! `/api/nodes`: the node, its memory, its disk and its process.

use axum::extract::State;
use serde_json::{Map, Value, json};

use super::overview::exchange_types;
use super::{Name, Shared};
use crate::RABBITMQ_VERSION;
use crate::access::Monitor;
use crate::answer::{ApiError, Json};
use crate::snapshot::{NodeSnapshot, ProcessSnapshot};

pub(super) async fn list(State(node): State<Shared>, _: Monitor) -> Json {
    Json::ok(json!([shown(&node.snapshot(), &node.process())]))
}

pub(super) async fn show(
    State(node): State<Shared>,
    _: Monitor,
    Name(name): Name,
) -> Result<Json, ApiError> {
    let now = node.snapshot();
    if name != now.name {
        return Err(ApiError::not_found());
    }
    Ok(Json::ok(shown(&now, &node.process())))
}

fn shown(node: &NodeSnapshot, process: &ProcessSnapshot) -> Value {
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    put("name", json!(node.name));
    put("type", json!("disc"));
    put("running", json!(true));
    put("being_drained", json!(false));
    put("partitions", json!([]));
    put("cluster_links", json!([]));
    put("rabbitmq_version", json!(RABBITMQ_VERSION));
    put("os_pid", json!(process.id.to_string()));
    put("uptime", json!(node.uptime_ms));
    put("processors", json!(process.processors));
    put("mem_calculation_strategy", json!("rss"));
    put("mem_alarm", json!(node.memory_alarm));
    put("disk_free_limit", json!(node.disk_free_limit_bytes));
    put("disk_free_alarm", json!(node.disk_alarm));
    // What the system does not tell is left out.
    for (name, value) in [
        ("mem_used", node.resident_bytes),
        ("mem_limit", node.memory_watermark_bytes),
        ("disk_free", node.disk_free_bytes),
        ("fd_used", process.fd_used),
        ("fd_total", process.fd_total),
    ] {
        if let Some(value) = value {
            put(name, json!(value));
        }
    }
    put("db_dir", json!(process.data_dir));
    put("durability", json!(node.durability));
    put("rates_mode", json!("none"));
    put("exchange_types", exchange_types());
    put("auth_mechanisms", auth_mechanisms());
    put("enabled_plugins", json!([]));
    Value::Object(shown)
}

fn auth_mechanisms() -> Value {
    let mechanism =
        |name, description| json!({"name": name, "description": description, "enabled": true});
    json!([
        mechanism("PLAIN", "Name and password"),
        mechanism("AMQPLAIN", "Name and password in a field table"),
    ])
}

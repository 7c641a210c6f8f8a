//! `/api/nodes`: the node with its memory, disk and process, and the other nodes of its cluster.

pub(crate) mod actions;
mod alarm_limits;
mod membership;
mod peers;

use axum::extract::State;
use axum::routing::get;
use futures::future::join_all;
use serde_json::{Map, Value, json};
use server::snapshot::cluster::PeerSnapshot;
use server::snapshot::fields::{NODE, StatsKind, of_node};
use server::snapshot::node::{MemoryWatermark, NodeSnapshot};
use server::snapshot::vhost::VhostTotals;

use crate::api::list_query::{List, Query};
use crate::api::overview::{CRYPTO_LIBRARY, NO_ERLANG, contexts, exchange_types};
use crate::api::rates;
use crate::api::vhosts::stats::VhostStats;
use crate::http::access::Monitor;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::memory;

/// RabbitMQ's counters of Erlang's memory and schedulers, and of stores that Leveret does not have.
const COUNTED_BY_ERLANG: [&str; 9] = [
    "gc_num",
    "gc_bytes_reclaimed",
    "context_switches",
    "mnesia_ram_tx_count",
    "mnesia_disk_tx_count",
    "msg_store_read_count",
    "msg_store_write_count",
    "queue_index_write_count",
    "queue_index_read_count",
];

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/nodes", Scope::Here, get(list))
        .route(
            "/api/nodes/{name}",
            (Scope::Node("name"), Scope::Metadata),
            get(show).delete(membership::forget),
        )
        .route("/api/nodes/{name}/memory", Scope::Node("name"), get(show_memory))
        .route("/api/nodes/{name}/memory/relative", Scope::Node("name"), get(show_relative_memory))
        .merge(actions::routes())
        .merge(alarm_limits::routes())
}

async fn list(State(node): State<SharedNode>, _: Monitor, query: Query) -> Result<List, ApiError> {
    let now = node.snapshot();
    let mut all = vec![to_json(&node, &now, &query)];
    let peers = node.cluster().peers;
    let told = join_all(peers.iter().map(|peer| peers::is_drained(&node, peer))).await;
    for (peer, is_drained) in peers.iter().zip(told) {
        all.push(peers::to_json(peer, is_drained, query.disable_stats));
    }
    all.sort_by(|a, b| {
        a.get("name").and_then(Value::as_str).cmp(&b.get("name").and_then(Value::as_str))
    });
    let all = all.into_iter().map(Value::Object).collect();
    query.unpaged().answer(all)
}

async fn show(
    State(node): State<SharedNode>,
    _: Monitor,
    Name(name): Name,
    query: Query,
) -> Result<Json, ApiError> {
    let now = node.snapshot();
    if name != now.name {
        let peer = peer(&node, &name)?;
        // It was asked first, and has not answered.
        let mut object = peers::to_json(&peer, None, query.disable_stats);
        if query.with_memory {
            object.insert("memory".to_owned(), peers::memory(&peer).into());
        }
        return Ok(Json::ok(query.select_columns(Value::Object(object))));
    }
    let mut object = to_json(&node, &now, &query);
    if query.with_memory {
        object.insert("memory".to_owned(), memory(&node, &now).into());
    }
    Ok(Json::ok(query.select_columns(Value::Object(object))))
}

async fn show_memory(
    State(node): State<SharedNode>,
    _: Monitor,
    Name(name): Name,
) -> Result<Json, ApiError> {
    Ok(Json::ok(json!({"memory": memory_of(&node, &name)?})))
}

/// The parts of the memory in percent, each rounded up as in RabbitMQ.
async fn show_relative_memory(
    State(node): State<SharedNode>,
    _: Monitor,
    Name(name): Name,
) -> Result<Json, ApiError> {
    Ok(Json::ok(json!({"memory": relative(&memory_of(&node, &name)?)})))
}

/// The memory by use of a node of the cluster.
fn memory_of(node: &SharedNode, name: &str) -> Result<Map<String, Value>, ApiError> {
    let now = node.snapshot();
    Ok(if name == now.name { memory(node, &now) } else { peers::memory(&peer(node, name)?) })
}

fn relative(memory: &Map<String, Value>) -> Map<String, Value> {
    let all = memory.get("total").and_then(|total| total.get("rss")).and_then(Value::as_u64);
    let all = all.unwrap_or_default().max(1);
    let percent = |bytes: u64| json!((bytes.saturating_mul(100)).div_ceil(all));
    let parts = memory.iter().filter_map(|(name, bytes)| Some((name, bytes.as_u64()?)));
    let mut relative = Map::from_iter([("total".to_owned(), json!(100))]);
    relative.extend(parts.map(|(name, bytes)| (name.clone(), percent(bytes))));
    relative
}

/// True if a node of the cluster has this name; without a cluster, this node.
pub(crate) fn is_of_cluster(node: &SharedNode, name: &str) -> bool {
    node.snapshot().name == name || node.cluster().peers.iter().any(|peer| peer.name == name)
}

/// Another node of the cluster, by name.
fn peer(node: &SharedNode, name: &str) -> Result<PeerSnapshot, ApiError> {
    let mut peers = node.cluster().peers.into_iter();
    peers.find(|peer| peer.name == name).ok_or_else(ApiError::not_found)
}

fn to_json(node: &SharedNode, now: &NodeSnapshot, query: &Query) -> Map<String, Value> {
    let mut json = Map::new();
    let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
    put("name", json!(now.name));
    put("type", json!("disc"));
    put("running", json!(true));
    put("being_drained", json!(node.condition().is_drained));
    if query.disable_stats {
        return json;
    }
    let process = node.process();
    put("partitions", json!([]));
    let cluster = node.cluster();
    put("cluster_links", peers::links(&cluster.peers));
    put("relayed_connections", json!(cluster.relayed_connections));
    put("rabbitmq_version", json!(now.identity.version));
    put("leveret_version", json!(now.leveret_version));
    put("record_level", json!(now.record_level));
    put("os_pid", json!(process.id.to_string()));
    put("uptime", json!(now.uptime_ms));
    put("processors", json!(process.processors));
    put("mem_calculation_strategy", json!("rss"));
    put("mem_alarm", json!(now.memory_alarm));
    put("disk_free_limit", json!(now.disk_free_limit_bytes));
    put("disk_free_alarm", json!(now.disk_alarm));
    if let Some(limit) = now.memory_watermark_bytes {
        put("mem_limit", json!(limit));
    }
    let watermark = match now.memory_watermark {
        MemoryWatermark::Relative(share) => json!({"relative": share}),
        MemoryWatermark::Absolute(bytes) => json!({"absolute": bytes}),
    };
    put("vm_memory_high_watermark_setting", watermark);
    if let Some(total) = process.fd_total {
        // Clients expect 32 bits.
        put("fd_total", json!(total.min(u32::MAX.into())));
        put("sockets_total", json!(total.min(u32::MAX.into())));
    }
    // COMPAT: processes: threads are counted, as there are no Erlang processes.
    let threads_max = process.threads_max.unwrap_or(u64::MAX).min(u32::MAX.into());
    put("proc_total", json!(threads_max.max(1)));
    put("db_dir", json!(process.data_dir));
    put("config_files", json!(process.config_files));
    put("log_files", json!(process.log_files));
    put("durability", json!(now.durability));
    put("rates_mode", json!("basic"));
    put("exchange_types", exchange_types());
    put("auth_mechanisms", auth_mechanisms(now));
    put("contexts", contexts(now));
    put("enabled_plugins", json!(["rabbitmq_management", "rabbitmq_prometheus"]));
    put("applications", json!([]));
    put("erlang_version", json!(NO_ERLANG));
    put("erlang_full_version", json!(NO_ERLANG));
    put("crypto_lib_version", json!(CRYPTO_LIBRARY));
    // Counters of Erlang and of RabbitMQ's store: tools read them, and they are always 0 here.
    put("run_queue", json!(0));
    put("net_ticktime", json!(0));
    put("ra_open_file_metrics", json!({"ra_log_wal": 0, "ra_log_segment_writer": 0}));
    put("metrics_gc_queue_length", json!({}));
    for name in COUNTED_BY_ERLANG {
        put(name, json!(0));
        put(&format!("{name}_details"), json!({"rate": 0.0}));
    }
    let io = &process.io;
    for (what, total) in [("read", io.reads), ("write", io.writes), ("sync", io.syncs)] {
        // COMPAT: whole milliseconds: clients with types take RabbitMQ's 0.0 for a whole number.
        put(&format!("io_{what}_avg_time"), json!(total.mean_ms()));
        put(&format!("io_{what}_avg_time_details"), json!({"rate": 0.0}));
        put(&format!("io_{what}_mean_us"), json!(total.mean_us()));
    }
    let trend = node.history().read(|history| history.of_node(&query.ranges));
    let (live, totals) = totals(node);
    let sockets = totals.iter().map(|vhost| vhost.connections).sum();
    let numbers = of_node(now, &process, sockets);
    rates::put(&mut json, &NODE, StatsKind::Node, &numbers, &trend);
    let stats = VhostStats::of_all(node, &totals, &query.ranges).with_deleted_vhosts(node, &live);
    stats.put(&mut json, StatsKind::Node);
    json
}

fn totals(node: &SharedNode) -> (Vec<String>, Vec<VhostTotals>) {
    let live = node.vhost_names();
    let totals = live.iter().filter_map(|vhost| node.vhost_totals(vhost, None)).collect();
    (live, totals)
}

/// The memory by use.
fn memory(node: &SharedNode, now: &NodeSnapshot) -> Map<String, Value> {
    let parts = memory::parts(node).into_iter();
    let parts = parts.map(|part| (part.name.to_owned(), json!(part.bytes)));
    let mut memory: Map<String, Value> = parts.collect();
    let all = now.resident_bytes.unwrap_or_default();
    memory.insert("strategy".to_owned(), json!("rss"));
    let total = json!({"erlang": all, "rss": all, "allocated": all});
    memory.insert("total".to_owned(), total);
    memory
}

fn auth_mechanisms(now: &NodeSnapshot) -> Value {
    let known = [
        ("PLAIN", "SASL PLAIN authentication mechanism"),
        ("AMQPLAIN", "QPid AMQPLAIN mechanism"),
        ("ANONYMOUS", "SASL ANONYMOUS authentication mechanism"),
        ("EXTERNAL", "SASL EXTERNAL authentication mechanism, by a client's certificate"),
        ("RABBIT-CR-DEMO", "RabbitMQ Demo challenge-response authentication mechanism"),
    ];
    let mechanism = |(name, description)| json!({"name": name, "description": description, "enabled": now.mechanisms.contains(&name)});
    known.map(mechanism).into_iter().collect()
}

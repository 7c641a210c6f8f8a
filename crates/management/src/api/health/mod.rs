//! `/api/health/checks`: 200 if healthy, 503 with a reason if not, for load balancers and monitoring; and
//! `/api/health/findings`: everything that is wrong.

mod aliveness;
mod causes;
mod cluster;
pub(crate) mod findings;

pub(crate) use cluster::filter;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Value, json};
use server::snapshot::node::{Listener, NodeSnapshot};

use crate::api::nodes::is_of_cluster;
use crate::api::vhosts::down_vhosts;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, NameInVhost, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/health/checks/alarms", Scope::Here, get(alarms))
        .route("/api/health/checks/local-alarms", Scope::Here, get(local_alarms))
        .route("/api/health/checks/virtual-hosts", Scope::Here, get(virtual_hosts))
        .route("/api/health/checks/port-listener/{port}", Scope::Here, get(port_listener))
        .route(
            "/api/health/checks/protocol-listener/{protocol}",
            Scope::Here,
            get(protocol_listener),
        )
        .route("/api/health/checks/below-node-connection-limit", Scope::Here, get(always))
        .route("/api/healthchecks/node", Scope::Here, get(always))
        .route("/api/healthchecks/node/{name}", Scope::Here, get(always_of_node))
        .route(
            "/api/health/checks/certificate-expiration/{within}/{unit}",
            Scope::Here,
            get(certificates),
        )
        .merge(aliveness::routes())
        .merge(cluster::routes())
        .merge(findings::routes())
}

/// The protocol that RabbitMQ knows by several names. AMQP 1.0 stays what it is: no listener speaks it.
fn protocol_named(asked: &str) -> &str {
    match asked {
        "amqp091" | "amqp0.9.1" | "amqp0-9-1" | "amqp0_9_1" => "amqp",
        "amqps" => "amqp/ssl",
        "management" | "management_ui" | "ui" | "http_api" | "http1" | "http1.1" => "http",
        "cli" | "distribution" => "clustering",
        other => other,
    }
}

/// Alarms of all nodes of the cluster that are connected.
async fn alarms(State(node): State<SharedNode>) -> Json {
    let mut on = alarms_of(&node.snapshot());
    for peer in node.cluster().peers {
        if let Some(facts) = peer.facts {
            on.extend(resources(&peer.name, facts.memory_alarm, facts.disk_alarm));
        }
    }
    in_effect(&on, "There are alarms in effect in the cluster")
}

/// Alarms of this node.
async fn local_alarms(State(node): State<SharedNode>) -> Json {
    in_effect(&alarms_of(&node.snapshot()), "There are alarms in effect on the node")
}

fn alarms_of(node: &NodeSnapshot) -> Vec<Value> {
    resources(&node.name, node.memory_alarm, node.disk_alarm)
}

fn resources(node: &str, memory_alarm: bool, disk_alarm: bool) -> Vec<Value> {
    let alarms = [(memory_alarm, "memory"), (disk_alarm, "disk")].into_iter();
    let on = alarms.filter(|(is_on, _)| *is_on);
    on.map(|(_, resource)| json!({"node": node, "resource": resource})).collect()
}

fn in_effect(on: &[Value], reason: &str) -> Json {
    match on.is_empty() {
        true => Json::ok(json!({"status": "ok"})),
        false => failed(json!({"status": "failed", "reason": reason, "alarms": on})),
    }
}

/// Checks that all vhosts run. A vhost whose files could not be read at the start is down.
async fn virtual_hosts(State(node): State<SharedNode>) -> Json {
    let down: Vec<String> = down_vhosts(&node).collect();
    if down.is_empty() {
        return Json::ok(json!({"status": "ok"}));
    }
    let reason = "Some virtual hosts are down";
    failed(json!({"status": "failed", "reason": reason, "virtual-hosts": down}))
}

/// Healthy as long as the node answers: connections are limited by file descriptors only.
async fn always() -> Json {
    Json::ok(json!({"status": "ok"}))
}

/// The old check of a node by its name, which checks nothing any more.
async fn always_of_node(
    State(node): State<SharedNode>,
    Name(asked): Name,
) -> Result<Json, ApiError> {
    if is_of_cluster(&node, &asked) { Ok(always().await) } else { Err(ApiError::not_found()) }
}

/// Days of each unit of time.
const UNITS: [(&str, i64); 4] = [("days", 1), ("weeks", 7), ("months", 30), ("years", 365)];

/// Checks that no certificate of a listener expires soon; an unreadable file counts as expiring.
async fn certificates(
    State(node): State<SharedNode>,
    NameInVhost { vhost: within, name: unit }: NameInVhost,
) -> Result<Json, ApiError> {
    let within: u32 =
        within.parse().map_err(|_| ApiError::bad_request("Invalid expiration value."))?;
    let Some((_, days)) = UNITS.into_iter().find(|(name, _)| *name == unit) else {
        let reason = "Time unit not recognised. Supported units: days, weeks, months, years.";
        return Err(ApiError::bad_request(reason));
    };
    let soon_s = i64::from(within) * days * 24 * 3600;
    let mut expiring = node.certificates();
    expiring.retain(|one| one.expires_in_s.is_none_or(|left_s| left_s <= soon_s));
    if expiring.is_empty() {
        return Ok(Json::ok(json!({"status": "ok"})));
    }
    let name = node.snapshot().name;
    let json = expiring.iter().map(|one| {
        json!({
            "node": name,
            "protocol": one.listener.protocol,
            "interface": one.listener.address.ip().to_string(),
            "port": one.listener.address.port(),
            "certfile": one.file,
            "expires_in_s": one.expires_in_s,
        })
    });
    let expired: Vec<Value> = json.collect();
    Ok(failed(json!({"status": "failed", "reason": "Certificates expiring", "expired": expired})))
}

/// Checks for a listener on a port.
async fn port_listener(State(node): State<SharedNode>, Name(port): Name) -> Result<Json, ApiError> {
    let port: i64 = port.parse().map_err(|_| ApiError::bad_request("Invalid port"))?;
    let listeners = node.snapshot().listeners;
    let ports: Vec<u16> = listeners.iter().map(|listener| listener.address.port()).collect();
    if ports.iter().any(|known| i64::from(*known) == port) {
        return Ok(Json::ok(json!({"status": "ok", "port": port})));
    }
    Ok(failed(json!({
        "status": "failed",
        "reason": "No active listener",
        "missing": port,
        "ports": ports,
    })))
}

/// Checks for a listener for a protocol.
async fn protocol_listener(State(node): State<SharedNode>, Name(asked): Name) -> Json {
    let known = protocols(&node.snapshot().listeners);
    let asked = asked.to_lowercase();
    let protocol = protocol_named(&asked);
    if known.contains(&protocol) {
        return Json::ok(json!({"status": "ok", "protocols": known}));
    }
    failed(json!({
        "status": "failed",
        "reason": "No active listener",
        "missing": [protocol],
        "protocols": known,
    }))
}

fn protocols(listeners: &[Listener]) -> Vec<&'static str> {
    let mut protocols: Vec<_> = listeners.iter().map(|listener| listener.protocol).collect();
    protocols.sort_unstable();
    protocols.dedup();
    protocols
}

fn failed(body: Value) -> Json {
    Json(StatusCode::SERVICE_UNAVAILABLE, body)
}

//! `/api/health/checks`: 200 if healthy, 503 with a reason if not, for load balancers and monitoring; and
//! `/api/health/findings`: everything that is wrong.

mod aliveness;
mod findings;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Value, json};

use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, NameInVhost, SharedNode};
use crate::snapshot::node::{Listener, NodeSnapshot};

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    Router::new()
        .route("/api/health/checks/alarms", get(alarms))
        .route("/api/health/checks/local-alarms", get(local_alarms))
        .route("/api/health/checks/virtual-hosts", get(virtual_hosts))
        .route("/api/health/checks/port-listener/{port}", get(port_listener))
        .route("/api/health/checks/protocol-listener/{protocol}", get(protocol_listener))
        .route("/api/health/checks/below-node-connection-limit", get(always))
        .route("/api/health/checks/is-in-service", get(always))
        .route("/api/health/checks/ready-to-serve-clients", get(always))
        .route("/api/health/checks/metadata-store/initialized", get(always))
        .route("/api/health/checks/metadata-store/initialized/with-data", get(always))
        .route("/api/health/checks/node-is-quorum-critical", get(single_node))
        .route("/api/health/checks/certificate-expiration/{within}/{unit}", get(certificates))
        .route("/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts", get(always))
        .route(
            "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}",
            get(always),
        )
        .route(
            "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}",
            get(always),
        )
        .route(
            "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{pattern}",
            get(always),
        )
        .merge(aliveness::routes())
        .merge(findings::routes())
}

/// RabbitMQ's aliases of protocols.
const ALIASES: [(&str, &str); 4] =
    [("amqp091", "amqp"), ("amqp0.9.1", "amqp"), ("amqps", "amqp/ssl"), ("management", "http")];

/// Alarms of the cluster, which is this node.
async fn alarms(State(node): State<SharedNode>) -> Json {
    in_effect(&node.snapshot(), "There are alarms in effect in the cluster")
}

/// Alarms of this node.
async fn local_alarms(State(node): State<SharedNode>) -> Json {
    in_effect(&node.snapshot(), "There are alarms in effect on the node")
}

fn in_effect(node: &NodeSnapshot, reason: &str) -> Json {
    let alarms = [(node.memory_alarm, "memory"), (node.disk_alarm, "disk")];
    let on: Vec<Value> = alarms
        .into_iter()
        .filter(|(is_on, _)| *is_on)
        .map(|(_, resource)| json!({"node": node.name, "resource": resource}))
        .collect();
    match on.is_empty() {
        true => Json::ok(json!({"status": "ok"})),
        false => failed(json!({"status": "failed", "reason": reason, "alarms": on})),
    }
}

/// All vhosts run: a node that cannot restore a vhost does not start.
async fn virtual_hosts() -> Json {
    Json::ok(json!({"status": "ok"}))
}

/// Healthy as long as the node answers: listeners open before the API, connections are limited by file
/// descriptors only, and every queue has its leader here.
async fn always() -> Json {
    Json::ok(json!({"status": "ok"}))
}

/// A single node has no quorum to lose.
async fn single_node() -> Json {
    Json::ok(json!({"status": "ok", "reason": "single node cluster"}))
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
    let alias = ALIASES.into_iter().find(|(alias, _)| *alias == asked);
    let protocol = alias.map_or(asked.as_str(), |(_, protocol)| protocol);
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

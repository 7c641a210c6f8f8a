//! `/api/connections`: client connections.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use serde_json::{Value, json};

use crate::api::client_filter::is_client_wanted;
use crate::api::list_query::Query;
use crate::api::{channels, rates};
use crate::history::{History, Trend};
use crate::http::access::{Management, VhostUser, check_can_close_client, check_can_see_client};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::json::table::table_to_json;
use crate::snapshot::client::{CertificateDetails, ConnectionSnapshot, TlsDetails};
use crate::snapshot::fields::{CONNECTION, StatsKind, of_connection};

/// The change of a connection's numbers.
type ConnectionTrend = Trend<{ CONNECTION.len() }>;

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    Router::new()
        .route("/api/connections", get(list))
        .route("/api/connections/{name}", get(show).delete(close))
        .route("/api/connections/{name}/channels", get(list_of_channels))
        .route("/api/connections/username/{user}", get(list_of_user).delete(close_of_user))
        .route("/api/vhosts/{name}/connections", get(list_of_vhost))
}

/// RabbitMQ's default reason for closing a connection.
const REASON: &str = "Closed via management plugin";

/// Users who are no monitors see their own connections.
async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<Json, ApiError> {
    let mut connections = all(&node);
    connections.retain(|one| caller.can_see_client(&one.client.user));
    answer(&node, connections, &query)
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    VhostUser { caller, vhost }: VhostUser,
    query: Query,
) -> Result<Json, ApiError> {
    let mut connections = node.connections(&vhost).ok_or_else(ApiError::not_found)?;
    connections.retain(|one| caller.can_see_client(&one.client.user));
    answer(&node, connections, &query)
}

async fn list_of_user(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(user): Name,
    query: Query,
) -> Result<Json, ApiError> {
    check_can_see_client(&caller, &user)?;
    let mut connections = all(&node);
    connections.retain(|one| one.client.user == user);
    answer(&node, connections, &query)
}

async fn show(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(name): Name,
    query: Query,
) -> Result<Json, ApiError> {
    let (connection, _) = node.connection(&name).ok_or_else(ApiError::not_found)?;
    check_can_see_client(&caller, &connection.client.user)?;
    let trend = node.history().read(|history| trend(history, &connection, &query));
    Ok(Json::ok(query.select_columns(to_json(&node.snapshot().name, &connection, &trend))))
}

/// The channels of a connection.
///
/// COMPAT: unknown connection: 404 for the channels of a connection that is not there; RabbitMQ fails
/// with 500.
async fn list_of_channels(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(name): Name,
    query: Query,
) -> Result<Json, ApiError> {
    let (connection, channels) = node.connection(&name).ok_or_else(ApiError::not_found)?;
    check_can_see_client(&caller, &connection.client.user)?;
    channels::answer(&node, channels, &query)
}

async fn close(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(name): Name,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let (connection, _) = node.connection(&name).ok_or_else(ApiError::not_found)?;
    check_can_close_client(&caller, &connection.client.user)?;
    // A connection that has closed meanwhile counts as closed.
    node.close_connection(&name, &caller.name, &reason(&headers)).await;
    Ok(StatusCode::NO_CONTENT)
}

async fn close_of_user(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(user): Name,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    check_can_close_client(&caller, &user)?;
    node.close_connections_of(&user, &caller.name, &reason(&headers)).await;
    Ok(StatusCode::NO_CONTENT)
}

/// The reason for the client.
fn reason(headers: &HeaderMap) -> String {
    let given = headers.get("x-reason").map(|value| String::from_utf8_lossy(value.as_bytes()));
    given.map_or_else(|| REASON.to_owned(), std::borrow::Cow::into_owned)
}

fn all(node: &SharedNode) -> Vec<ConnectionSnapshot> {
    let vhosts = node.vhost_names().into_iter();
    vhosts.filter_map(|vhost| node.connections(&vhost)).flatten().collect()
}

fn answer(
    node: &SharedNode,
    mut connections: Vec<ConnectionSnapshot>,
    query: &Query,
) -> Result<Json, ApiError> {
    connections.sort_by(|a, b| a.client.name.cmp(&b.client.name));
    let show = |connections: Vec<ConnectionSnapshot>| list_to_json(node, &connections, query);
    query.answer_lazily(
        connections,
        |one| one.client.name.clone(),
        |one| is_client_wanted(&one.client, query),
        show,
    )
}

fn list_to_json(
    node: &SharedNode,
    connections: &[ConnectionSnapshot],
    query: &Query,
) -> Vec<Value> {
    let name = node.snapshot().name;
    let trends: Vec<ConnectionTrend> = node
        .history()
        .read(|history| connections.iter().map(|one| trend(history, one, query)).collect());
    connections.iter().zip(&trends).map(|(one, trend)| to_json(&name, one, trend)).collect()
}

fn trend(history: &History, connection: &ConnectionSnapshot, query: &Query) -> ConnectionTrend {
    history.of_connection(connection.client.pid.number(), &query.ranges)
}

fn to_json(node: &str, connection: &ConnectionSnapshot, trend: &ConnectionTrend) -> Value {
    let ConnectionSnapshot { client, state, traffic, channels } = connection;
    let tls = |of: fn(&TlsDetails) -> &str| client.tls.as_ref().map_or("", of);
    let certificate = |of: fn(&CertificateDetails) -> &str| {
        client.tls.as_ref().and_then(|tls| tls.certificate.as_ref()).map_or("", of)
    };
    let mut json = json!({
        "name": client.name,
        "pid": client.pid.to_string(),
        "node": node,
        "type": "network",
        "protocol": "AMQP 0-9-1",
        "host": client.local.ip().to_string(),
        "port": client.local.port(),
        "peer_host": client.peer.ip().to_string(),
        "peer_port": client.peer.port(),
        "user": client.user,
        "user_who_performed_action": client.user,
        "auth_mechanism": client.mechanism,
        "vhost": client.vhost,
        "client_properties": table_to_json(client.properties.as_ref()),
        "channel_max": client.channel_max,
        "frame_max": client.frame_max,
        "timeout": client.heartbeat_s,
        "connected_at": client.connected_at_ms,
        "state": state.as_str(),
        "channels": channels,
        "recv_cnt": traffic.reads,
        "send_cnt": traffic.writes,
        "send_pend": traffic.unsent_bytes,
        "ssl": client.tls.is_some(),
        "ssl_protocol": tls(|tls| tls.protocol),
        "ssl_key_exchange": tls(|tls| tls.key_exchange),
        "ssl_cipher": tls(|tls| tls.cipher),
        "ssl_hash": tls(|tls| tls.hash),
        "peer_cert_subject": certificate(|certificate| &certificate.subject),
        "peer_cert_issuer": certificate(|certificate| &certificate.issuer),
        "peer_cert_validity": certificate(|certificate| &certificate.validity),
        "peer_cert_serial_number": "",
    });
    if let Some(json) = json.as_object_mut() {
        let numbers = of_connection(traffic);
        rates::put(json, &CONNECTION, StatsKind::Data, &numbers, trend);
        if let Some(name) = &client.connection_name {
            json.insert("user_provided_name".to_owned(), json!(name));
        }
    }
    json
}

//! `/api/connections`: client connections.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use serde_json::json;
use server::history::{History, TimeRanges, Trend};
use server::json::table::table_to_json;
use server::snapshot::client::{CertificateDetails, ConnectionSnapshot, TlsDetails};
use server::snapshot::fields::{CONNECTION, StatsKind, of_connection};

use crate::api::clients::channels;
use crate::api::clients::client_filter::is_client_wanted;
use crate::api::list_query::{List, Query};
use crate::api::rates::{self, trends};
use crate::api::row::{Part, Row};
use crate::http::access::{Management, VhostUser, check_can_close_client, check_can_see_client};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The change of a connection's numbers.
type ConnectionTrend = Trend<{ CONNECTION.len() }>;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/connections", Scope::List(FOUND_BY), get(list))
        .route("/api/connections/{name}", Scope::Anywhere, get(show).delete(close))
        .route("/api/connections/{name}/channels", Scope::Anywhere, get(list_of_channels))
        .route(
            "/api/connections/username/{user}",
            (Scope::List(FOUND_BY), Scope::Everywhere),
            get(list_of_user).delete(close_of_user),
        )
        .route("/api/vhosts/{name}/connections", Scope::Vhost("name"), get(list_of_vhost))
}

/// The fields in which a list looks for a name.
const FOUND_BY: &[&str] = &["name", "user_provided_name"];

/// RabbitMQ's default reason for closing a connection.
const REASON: &str = "Closed via management plugin";

/// Users who are no monitors see their own connections.
async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<List, ApiError> {
    let mut connections = all(&node);
    connections.retain(|one| caller.can_see_client(&one.client.user));
    answer(&node, connections, &query)
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    VhostUser { caller, vhost }: VhostUser,
    query: Query,
) -> Result<List, ApiError> {
    let mut connections = node.connections(&vhost).ok_or_else(ApiError::not_found)?;
    connections.retain(|one| caller.can_see_client(&one.client.user));
    answer(&node, connections, &query)
}

async fn list_of_user(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(user): Name,
    query: Query,
) -> Result<List, ApiError> {
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
    let trend = node.history().read(|history| trend(history, &connection, &query.ranges));
    let row = to_row(&node.snapshot().name, &connection, &trend, Part::Whole);
    Ok(Json::ok(query.select_columns(row.into_json())))
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
) -> Result<List, ApiError> {
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
) -> Result<List, ApiError> {
    connections.sort_by(|a, b| a.client.name.cmp(&b.client.name));
    let is_wanted = |one: &ConnectionSnapshot| is_client_wanted(&one.client, query);
    let name = node.snapshot().name;
    let (node, ranges) = (Arc::clone(node), query.ranges);
    query.answer_lazily(connections, is_wanted, move |connections, part| {
        let trends = trends(&node, connections, &ranges, part, trend);
        let all = connections.iter().zip(&trends);
        all.map(|(one, trend)| to_row(&name, one, trend, part).into_json()).collect()
    })
}

fn trend(
    history: &History,
    connection: &ConnectionSnapshot,
    ranges: &TimeRanges,
) -> ConnectionTrend {
    history.of_connection(connection.client.pid.number(), ranges)
}

fn to_row<'a>(
    node: &str,
    connection: &ConnectionSnapshot,
    trend: &ConnectionTrend,
    part: Part<'a>,
) -> Row<'a> {
    let ConnectionSnapshot { client, state, traffic, channels } = connection;
    let tls = |of: fn(&TlsDetails) -> &str| client.tls.as_ref().map_or("", of);
    let certificate = |of: fn(&CertificateDetails) -> &str| {
        client.tls.as_ref().and_then(|tls| tls.certificate.as_ref()).map_or("", of)
    };
    let mut row = Row::new(part);
    row.put("name", || json!(client.name));
    row.put("node", || json!(client.entry_node.as_deref().unwrap_or(node)));
    if client.entry_node.is_some() {
        row.put("leader_node", || json!(node));
    }
    row.put("type", || json!("network"));
    row.put("protocol", || json!("AMQP 0-9-1"));
    row.put("host", || json!(client.local.ip().to_string()));
    row.put("port", || json!(client.local.port()));
    row.put("peer_host", || json!(client.peer.ip().to_string()));
    row.put("peer_port", || json!(client.peer.port()));
    row.put("user", || json!(client.user));
    row.put("user_who_performed_action", || json!(client.user));
    row.put("auth_mechanism", || json!(client.mechanism));
    row.put("vhost", || json!(client.vhost));
    row.put("client_properties", || json!(table_to_json(client.properties.as_ref())));
    row.put("channel_max", || json!(client.channel_max));
    row.put("frame_max", || json!(client.frame_max));
    row.put("timeout", || json!(client.heartbeat_s));
    row.put("connected_at", || json!(client.connected_at_ms));
    row.put("state", || json!(state.as_str()));
    row.put("channels", || json!(channels));
    row.put("recv_cnt", || json!(traffic.reads));
    row.put("send_cnt", || json!(traffic.writes));
    row.put("send_pend", || json!(traffic.unsent_bytes));
    row.put("ssl", || json!(client.tls.is_some()));
    row.put("ssl_protocol", || json!(tls(|tls| tls.protocol)));
    row.put("ssl_key_exchange", || json!(tls(|tls| tls.key_exchange)));
    row.put("ssl_cipher", || json!(tls(|tls| tls.cipher)));
    row.put("ssl_hash", || json!(tls(|tls| tls.hash)));
    row.put("peer_cert_subject", || json!(certificate(|certificate| &certificate.subject)));
    row.put("peer_cert_issuer", || json!(certificate(|certificate| &certificate.issuer)));
    row.put("peer_cert_validity", || json!(certificate(|certificate| &certificate.validity)));
    row.put("peer_cert_serial_number", || json!(""));
    let numbers = of_connection(traffic);
    rates::put_in_row(&mut row, &CONNECTION, StatsKind::Data, &numbers, trend);
    if let Some(name) = &client.connection_name {
        row.put("user_provided_name", || json!(name));
    }
    row
}

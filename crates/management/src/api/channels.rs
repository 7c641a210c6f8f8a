//! `/api/channels`: the open channels of clients.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::{Map, Value, json};

use crate::api::client_filter::is_client_wanted;
use crate::api::list_query::Query;
use crate::api::{consumers, rates};
use crate::history::{History, Trend};
use crate::http::access::{Management, VhostUser, check_can_see_client};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::json::timestamp::rfc3339;
use crate::snapshot::client::{ChannelSnapshot, parse_channel_name};
use crate::snapshot::fields::{CHANNEL, of_channel};

/// The change of a channel's numbers.
type ChannelTrend = Trend<{ CHANNEL.len() }>;

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    Router::new()
        .route("/api/channels", get(list))
        .route("/api/channels/{name}", get(show))
        .route("/api/vhosts/{name}/channels", get(list_of_vhost))
}

/// Users who are no monitors see the channels of their own connections.
async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<Json, ApiError> {
    let vhosts = node.vhost_names().into_iter();
    let all = vhosts.filter_map(|vhost| node.channels(&vhost)).flatten();
    answer(&node, all.filter(|one| caller.can_see_client(&one.client.user)).collect(), &query)
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    VhostUser { caller, vhost }: VhostUser,
    query: Query,
) -> Result<Json, ApiError> {
    let mut channels = node.channels(&vhost).ok_or_else(ApiError::not_found)?;
    channels.retain(|one| caller.can_see_client(&one.client.user));
    answer(&node, channels, &query)
}

async fn show(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(name): Name,
    query: Query,
) -> Result<Json, ApiError> {
    let (connection, number) = parse_channel_name(&name).ok_or_else(ApiError::not_found)?;
    let (connection, channels) = node.connection(connection).ok_or_else(ApiError::not_found)?;
    check_can_see_client(&caller, &connection.client.user)?;
    let channel = channels.into_iter().find(|channel| channel.number == number);
    let channel = channel.ok_or_else(ApiError::not_found)?;
    let name = node.snapshot().name;
    let trend = node.history().read(|history| trend(history, &channel, &query));
    let mut object = to_json(&name, &channel, &trend);
    let consumers = node.consumers(&channel.client.vhost).unwrap_or_default();
    let is_here = |pid| pid == Some(&channel.client.pid);
    let here = consumers.iter().filter(|one| {
        one.channel == number && is_here(one.client.as_ref().map(|client| &client.pid))
    });
    let here = here.map(|one| consumers::to_json(&name, one)).collect();
    object.insert("consumer_details".to_owned(), here);
    // No counts by queue and exchange; RabbitMQ has them on demand only.
    object.insert("deliveries".to_owned(), json!([]));
    object.insert("publishes".to_owned(), json!([]));
    Ok(Json::ok(query.select_columns(Value::Object(object))))
}

/// Answers with a list of channels.
pub(crate) fn answer(
    node: &SharedNode,
    mut channels: Vec<ChannelSnapshot>,
    query: &Query,
) -> Result<Json, ApiError> {
    channels.sort_by(|a, b| (&a.client.name, a.number).cmp(&(&b.client.name, b.number)));
    let name = node.snapshot().name;
    let show = |channels: Vec<ChannelSnapshot>| {
        let trends: Vec<ChannelTrend> = node
            .history()
            .read(|history| channels.iter().map(|one| trend(history, one, query)).collect());
        let all = channels.iter().zip(&trends);
        all.map(|(channel, trend)| Value::Object(to_json(&name, channel, trend))).collect()
    };
    let is_wanted = |one: &ChannelSnapshot| {
        query.matches_name(&one.name()) || is_client_wanted(&one.client, query)
    };
    query.answer_lazily(channels, ChannelSnapshot::name, is_wanted, show)
}

fn trend(history: &History, channel: &ChannelSnapshot, query: &Query) -> ChannelTrend {
    let of = (channel.client.pid.number(), channel.number);
    history.of_channel(&channel.client.vhost, of, &query.ranges)
}

fn to_json(node: &str, channel: &ChannelSnapshot, trend: &ChannelTrend) -> Map<String, Value> {
    let client = &channel.client;
    let json = json!({
        "name": channel.name(),
        "pid": client.pid.of_channel(channel.number),
        "number": channel.number.0,
        "node": node,
        "vhost": client.vhost,
        "user": client.user,
        "user_who_performed_action": client.user,
        "connection_details": {
            "name": client.name,
            "peer_host": client.peer.ip().to_string(),
            "peer_port": client.peer.port(),
        },
        "state": "running",
        "confirm": channel.confirms,
        "transactional": channel.is_transactional,
        "prefetch_count": channel.prefetch_count,
        "global_prefetch_count": channel.global_prefetch_count,
        "consumer_count": channel.consumers,
        "messages_unacknowledged": channel.unacked,
        "messages_unconfirmed": channel.unconfirmed,
        "messages_uncommitted": channel.uncommitted,
        "acks_uncommitted": channel.acks_uncommitted,
    });
    let mut json = rates::object(json);
    if let Some(name) = &client.connection_name {
        json["connection_details"]["user_provided_name"] = json!(name);
    }
    let numbers = of_channel(&channel.counters);
    let stats = rates::message_stats(&CHANNEL, &numbers, trend);
    json.insert("message_stats".to_owned(), Value::Object(stats));
    if let Some(idle_since_ms) = trend.idle_since_ms {
        json.insert("idle_since".to_owned(), json!(rfc3339(idle_since_ms)));
    }
    json
}

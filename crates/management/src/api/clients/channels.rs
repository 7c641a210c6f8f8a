//! `/api/channels`: the open channels of clients.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use serde_json::{Value, json};
use server::history::{History, TimeRanges, Trend};
use server::snapshot::client::{ChannelSnapshot, parse_channel_name};
use server::snapshot::fields::{CHANNEL, StatsKind, of_channel};

use crate::api::clients::client_filter::is_client_wanted;
use crate::api::clients::consumers;
use crate::api::list_query::{List, Query};
use crate::api::rates::{self, trends};
use crate::api::row::{Part, Row};
use crate::http::access::{Management, VhostUser, check_can_see_client};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::json::timestamp::rfc3339;

/// The change of a channel's numbers.
type ChannelTrend = Trend<{ CHANNEL.len() }>;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route(
            "/api/channels",
            Scope::List(&["name", "connection_details.user_provided_name"]),
            get(list),
        )
        .route("/api/channels/{name}", Scope::Anywhere, get(show))
        .route("/api/vhosts/{name}/channels", Scope::Vhost("name"), get(list_of_vhost))
}

/// Users who are no monitors see the channels of their own connections.
async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<List, ApiError> {
    let vhosts = node.vhost_names().into_iter();
    let all = vhosts.filter_map(|vhost| node.channels(&vhost)).flatten();
    answer(&node, all.filter(|one| caller.can_see_client(&one.client.user)).collect(), &query)
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    VhostUser { caller, vhost }: VhostUser,
    query: Query,
) -> Result<List, ApiError> {
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
    let trend = node.history().read(|history| trend(history, &channel, &query.ranges));
    let mut object = to_row(&name, &channel, &trend, Part::Whole).into_fields();
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
) -> Result<List, ApiError> {
    channels.sort_by(|a, b| (&a.client.name, a.number).cmp(&(&b.client.name, b.number)));
    let name = node.snapshot().name;
    let (node, ranges) = (Arc::clone(node), query.ranges);
    let show = move |channels: &[ChannelSnapshot], part: Part<'_>| {
        let trends = trends(&node, channels, &ranges, part, trend);
        let all = channels.iter().zip(&trends);
        all.map(|(channel, trend)| to_row(&name, channel, trend, part).into_json()).collect()
    };
    let is_wanted = |one: &ChannelSnapshot| {
        query.matches_name(&one.name()) || is_client_wanted(&one.client, query)
    };
    query.answer_lazily(channels, is_wanted, show)
}

fn trend(history: &History, channel: &ChannelSnapshot, ranges: &TimeRanges) -> ChannelTrend {
    let of = (channel.client.pid.number(), channel.number);
    history.of_channel(&channel.client.vhost, of, ranges)
}

fn to_row<'a>(
    node: &str,
    channel: &ChannelSnapshot,
    trend: &ChannelTrend,
    part: Part<'a>,
) -> Row<'a> {
    let client = &channel.client;
    let mut row = Row::new(part);
    row.put("name", || json!(channel.name()));
    row.put("number", || json!(channel.number.0));
    row.put("node", || json!(node));
    row.put("vhost", || json!(client.vhost));
    row.put("user", || json!(client.user));
    row.put("user_who_performed_action", || json!(client.user));
    row.put_object("connection_details", |details| {
        details.put("name", || json!(client.name));
        details.put("peer_host", || json!(client.peer.ip().to_string()));
        details.put("peer_port", || json!(client.peer.port()));
        if let Some(name) = &client.connection_name {
            details.put("user_provided_name", || json!(name));
        }
    });
    row.put("state", || json!("running"));
    row.put("confirm", || json!(channel.confirms));
    row.put("transactional", || json!(channel.is_transactional));
    row.put("prefetch_count", || json!(channel.prefetch_count));
    row.put("global_prefetch_count", || json!(channel.global_prefetch_count));
    row.put("consumer_count", || json!(channel.consumers));
    row.put("messages_unacknowledged", || json!(channel.unacked));
    row.put("messages_unconfirmed", || json!(channel.unconfirmed));
    row.put("messages_uncommitted", || json!(channel.uncommitted));
    row.put("acks_uncommitted", || json!(channel.acks_uncommitted));
    row.put_object("message_stats", |stats| {
        let numbers = of_channel(&channel.counters);
        rates::put_in_row(stats, &CHANNEL, StatsKind::Messages, &numbers, trend);
    });
    if let Some(idle_since_ms) = trend.idle_since_ms {
        row.put("idle_since", || json!(rfc3339(idle_since_ms)));
    }
    row
}

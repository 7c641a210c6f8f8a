//! `/api/consumers`: consumers of queues.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::{Value, json};

use crate::api::client_filter::is_client_wanted;
use crate::api::list_query::Query;
use crate::http::access::Management;
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::json::table::table_to_json;
use crate::snapshot::client::{ConsumerSnapshot, channel_name};

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    Router::new()
        .route("/api/consumers", get(list))
        .route("/api/consumers/{vhost}", get(list_of_vhost))
}

/// Users who are no monitors see their own consumers.
async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<Json, ApiError> {
    let vhosts = node.vhost_names().into_iter();
    let all = vhosts.filter_map(|vhost| node.consumers(&vhost)).flatten();
    answer(&node, all.filter(|one| caller.can_see_client(user(one))).collect(), &query)
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
) -> Result<Json, ApiError> {
    let consumers = node.consumers(&vhost).ok_or_else(ApiError::not_found)?;
    if !caller.can_list(&vhost) {
        return Err(ApiError::no_entry());
    }
    let seen = consumers.into_iter().filter(|one| caller.can_see_client(user(one)));
    answer(&node, seen.collect(), &query)
}

fn user(consumer: &ConsumerSnapshot) -> &str {
    consumer.client.as_ref().map_or("", |client| &client.user)
}

fn answer(
    node: &SharedNode,
    mut consumers: Vec<ConsumerSnapshot>,
    query: &Query,
) -> Result<Json, ApiError> {
    consumers.sort_by(|a, b| (&a.vhost, &a.queue, &a.tag).cmp(&(&b.vhost, &b.queue, &b.tag)));
    let name = node.snapshot().name;
    let show = |consumers: Vec<ConsumerSnapshot>| {
        consumers.iter().map(|one| to_json(&name, one)).collect()
    };
    // Consumers have no name.
    query.answer_lazily(consumers, |_| String::new(), |one| is_wanted(one, query), show)
}

/// True if the filter finds the consumer by its tag, its queue or its client.
///
/// COMPAT: pages of more lists: RabbitMQ's list of consumers has no pages.
fn is_wanted(consumer: &ConsumerSnapshot, query: &Query) -> bool {
    let client = consumer.client.as_ref();
    query.matches_name(&consumer.tag)
        || query.matches_name(&consumer.queue)
        || client.is_some_and(|client| is_client_wanted(client, query))
}

/// A consumer in JSON.
pub(crate) fn to_json(node: &str, consumer: &ConsumerSnapshot) -> Value {
    let mut on = json!({"node": node, "number": consumer.channel.0});
    if let (Some(on), Some(client)) = (on.as_object_mut(), &consumer.client) {
        let mut put = |name: &str, value: Value| on.insert(name.to_owned(), value);
        put("name", json!(channel_name(&client.name, consumer.channel)));
        put("connection_name", json!(client.name));
        put("peer_host", json!(client.peer.ip().to_string()));
        put("peer_port", json!(client.peer.port()));
        put("user", json!(client.user));
        put("pid", json!(client.pid.of_channel(consumer.channel)));
    }
    json!({
        "consumer_tag": *consumer.tag,
        "queue": {"name": *consumer.queue, "vhost": *consumer.vhost},
        "channel_details": on,
        "ack_required": consumer.ack_required,
        "active": consumer.active,
        "activity_status": consumer.activity.as_str(),
        "exclusive": consumer.exclusive,
        "prefetch_count": consumer.prefetch_count,
        // Clients expect a number; 0 is none.
        "consumer_timeout": consumer.timeout_ms.unwrap_or(0),
        "arguments": table_to_json(consumer.arguments.as_ref()),
    })
}

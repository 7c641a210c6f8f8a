//! `/api/consumers`: consumers of queues.

use axum::extract::State;
use axum::routing::get;
use serde_json::{Value, json};
use server::json::table::table_to_json;
use server::snapshot::client::{ConsumerSnapshot, channel_name};

use crate::api::clients::client_filter::is_client_wanted;
use crate::api::list_query::{List, Query};
use crate::api::row::{Part, Row};
use crate::http::access::Management;
use crate::http::answer::ApiError;
use crate::http::extract::{Name, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new().route("/api/consumers", Scope::List(&["queue.name"]), get(list)).route(
        "/api/consumers/{vhost}",
        Scope::Vhost("vhost"),
        get(list_of_vhost),
    )
}

/// Users who are no monitors see their own consumers.
async fn list(
    State(node): State<SharedNode>,
    Management(caller): Management,
    query: Query,
) -> Result<List, ApiError> {
    let vhosts = node.vhost_names().into_iter();
    let all = vhosts.filter_map(|vhost| node.consumers(&vhost)).flatten();
    answer(&node, all.filter(|one| caller.can_see_client(user(one))).collect(), &query)
}

async fn list_of_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
    query: Query,
) -> Result<List, ApiError> {
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
) -> Result<List, ApiError> {
    consumers.sort_by(|a, b| (&a.vhost, &a.queue, &a.tag).cmp(&(&b.vhost, &b.queue, &b.tag)));
    let name = node.snapshot().name;
    query.answer_lazily(
        consumers,
        |one| is_wanted(one, query),
        move |consumers, part| {
            consumers.iter().map(|one| to_row(&name, one, part).into_json()).collect()
        },
    )
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
    to_row(node, consumer, Part::Whole).into_json()
}

fn to_row<'a>(node: &str, consumer: &ConsumerSnapshot, part: Part<'a>) -> Row<'a> {
    let mut row = Row::new(part);
    row.put("consumer_tag", || json!(*consumer.tag));
    row.put_object("queue", |queue| {
        queue.put("name", || json!(*consumer.queue));
        queue.put("vhost", || json!(*consumer.vhost));
    });
    row.put_object("channel_details", |on| {
        on.put("node", || json!(node));
        on.put("number", || json!(consumer.channel.0));
        let Some(client) = &consumer.client else { return };
        on.put("name", || json!(channel_name(&client.name, consumer.channel)));
        on.put("connection_name", || json!(client.name));
        on.put("peer_host", || json!(client.peer.ip().to_string()));
        on.put("peer_port", || json!(client.peer.port()));
        on.put("user", || json!(client.user));
        if let Some(name) = &client.connection_name {
            on.put("user_provided_name", || json!(name));
        }
    });
    row.put("ack_required", || json!(consumer.ack_required));
    row.put("active", || json!(consumer.active));
    row.put("activity_status", || json!(consumer.activity.as_str()));
    row.put("exclusive", || json!(consumer.exclusive));
    row.put("prefetch_count", || json!(consumer.prefetch_count));
    row.put("messages_unacknowledged", || json!(consumer.unacked));
    // Clients expect a number; 0 is none.
    row.put("consumer_timeout", || json!(consumer.timeout_ms.unwrap_or(0)));
    row.put("arguments", || table_to_json(consumer.arguments.as_ref()));
    row
}

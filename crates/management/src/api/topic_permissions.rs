//! `/api/topic-permissions`: which routing keys users may use with topic exchanges.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Value, json};

use crate::api::list_query::Query;
use crate::api::permissions::{check_place, to_set};
use crate::http::access::Administrator;
use crate::http::answer::{ApiError, Json, made, removed};
use crate::http::body::Object;
use crate::http::extract::{Name, NameInVhost, Shared};
use crate::node::{TopicPermissionDetails, Unchanged};

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/topic-permissions", get(list))
        .route("/api/topic-permissions/{vhost}/{user}", get(show).put(put).delete(delete))
        .route(
            "/api/topic-permissions/{vhost}/{user}/{exchange}",
            get(show_of_exchange).delete(delete_of_exchange),
        )
        .route("/api/vhosts/{vhost}/topic-permissions", get(list_of_vhost))
}

async fn list(
    State(node): State<Shared>,
    _: Administrator,
    query: Query,
) -> Result<Json, ApiError> {
    let all = node.users().into_iter().flat_map(|user| user.topic_permissions);
    query.without_pages().answer(all.map(|one| json_of(&one)).collect())
}

async fn list_of_vhost(
    State(node): State<Shared>,
    _: Administrator,
    Name(vhost): Name,
    query: Query,
) -> Result<Json, ApiError> {
    node.vhost_settings(&vhost).ok_or_else(ApiError::not_found)?;
    let all = node.users().into_iter().flat_map(|user| user.topic_permissions);
    let of_vhost = all.filter(|one| one.vhost == vhost).map(|one| json_of(&one));
    query.without_pages().answer(of_vhost.collect())
}

async fn show(
    State(node): State<Shared>,
    _: Administrator,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    let user = node.user(&name).ok_or_else(ApiError::not_found)?;
    let of_vhost = user.topic_permissions.iter().filter(|one| one.vhost == vhost);
    let found: Vec<Value> = of_vhost.map(json_of).collect();
    if found.is_empty() {
        return Err(ApiError::not_found());
    }
    query.without_pages().answer(found)
}

/// As in RabbitMQ, all of the user's in the vhost.
async fn show_of_exchange(
    state: State<Shared>,
    caller: Administrator,
    Path((vhost, name, _)): Path<(String, String, String)>,
    query: Query,
) -> Result<Json, ApiError> {
    show(state, caller, NameInVhost { vhost, name }, query).await
}

async fn put(
    State(node): State<Shared>,
    _: Administrator,
    NameInVhost { vhost, name: user }: NameInVhost,
    body: Object,
) -> Result<StatusCode, ApiError> {
    check_place(&node, &vhost, &user)?;
    let [exchange, write, read] = body.texts(["exchange", "write", "read"])?.map(str::to_owned);
    let to = TopicPermissionDetails { user, vhost, exchange, write, read };
    let no_exchange = ApiError::bad_request(format!("no_such_exchange: {}", to.exchange));
    let set = node.set_topic_permissions(to).await;
    let is_new = set.map_err(|unchanged| {
        if unchanged == Unchanged::NoSuchExchange { no_exchange } else { to_set(unchanged) }
    })?;
    Ok(made(is_new))
}

async fn delete(
    State(node): State<Shared>,
    _: Administrator,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<StatusCode, ApiError> {
    removed(node.clear_topic_permissions(&vhost, &name, None).await?)
}

async fn delete_of_exchange(
    State(node): State<Shared>,
    _: Administrator,
    Path((vhost, name, exchange)): Path<(String, String, String)>,
) -> Result<StatusCode, ApiError> {
    removed(node.clear_topic_permissions(&vhost, &name, Some(&exchange)).await?)
}

pub(crate) fn json_of(permissions: &TopicPermissionDetails) -> Value {
    let TopicPermissionDetails { user, vhost, exchange, write, read } = permissions;
    json!({"user": user, "vhost": vhost, "exchange": exchange, "write": write, "read": read})
}

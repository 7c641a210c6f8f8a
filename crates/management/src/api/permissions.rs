//! `/api/permissions`: what users may do in vhosts.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Value, json};

use crate::api::list_query::Query;
use crate::http::access::Administrator;
use crate::http::answer::{ApiError, Json, made, removed};
use crate::http::body::Object;
use crate::http::extract::{Name, NameInVhost, Shared};
use crate::node::{PermissionDetails, Unchanged};

/// The paths.
pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/permissions", get(list))
        .route("/api/permissions/{vhost}/{user}", get(show).put(put).delete(delete))
        .route("/api/vhosts/{vhost}/permissions", get(list_of_vhost))
}

async fn list(
    State(node): State<Shared>,
    _: Administrator,
    query: Query,
) -> Result<Json, ApiError> {
    let all = node.users().into_iter().flat_map(|user| user.permissions);
    query.without_pages().answer(all.map(|one| json_of(&one)).collect())
}

async fn list_of_vhost(
    State(node): State<Shared>,
    _: Administrator,
    Name(vhost): Name,
    query: Query,
) -> Result<Json, ApiError> {
    node.vhost_settings(&vhost).ok_or_else(ApiError::not_found)?;
    let all = node.users().into_iter().flat_map(|user| user.permissions);
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
    let permissions = user.permissions.iter().find(|one| one.vhost == vhost);
    let permissions = permissions.ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(query.chosen(json_of(permissions))))
}

async fn put(
    State(node): State<Shared>,
    _: Administrator,
    NameInVhost { vhost, name: user }: NameInVhost,
    body: Object,
) -> Result<StatusCode, ApiError> {
    check_place(&node, &vhost, &user)?;
    let [configure, write, read] = body.texts(["configure", "write", "read"])?.map(str::to_owned);
    let to = PermissionDetails { user, vhost, configure, write, read };
    Ok(made(node.set_permissions(to).await.map_err(to_set)?))
}

/// Whether there is the user and the vhost that permissions are to be set for.
pub(crate) fn check_place(node: &Shared, vhost: &str, user: &str) -> Result<(), ApiError> {
    match node.vhost_settings(vhost).is_some() && node.user(user).is_some() {
        true => Ok(()),
        false => Err(no_place()),
    }
}

fn no_place() -> ApiError {
    ApiError::bad_request("vhost_or_user_not_found")
}

/// Why permissions were not set.
pub(crate) fn to_set(unchanged: Unchanged) -> ApiError {
    if matches!(unchanged, Unchanged::NoSuchUser | Unchanged::NoSuchVhost) {
        return no_place();
    }
    unchanged.into()
}

async fn delete(
    State(node): State<Shared>,
    _: Administrator,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<StatusCode, ApiError> {
    removed(node.clear_permissions(&vhost, &name).await?)
}

pub(crate) fn json_of(permissions: &PermissionDetails) -> Value {
    let PermissionDetails { user, vhost, configure, write, read } = permissions;
    json!({"user": user, "vhost": vhost, "configure": configure, "write": write, "read": read})
}

//! `/api/vhost-limits` and `/api/user-limits`: maximum numbers of connections, queues and channels.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, put};
use serde_json::{Value, json};
use server::json::limits::{limit_from_json, limits_to_json};
use server::requests::{ChangeError, LimitName, UserLimit, VhostLimit};

use crate::http::access::{Administrator, Management};
use crate::http::answer::{ApiError, Json};
use crate::http::body::Object;
use crate::http::extract::{Name, NameInVhost, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The paths. In paths with two names, the first is the vhost's or the user's, the second the limit's.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/vhost-limits", Scope::Here, get(list_of_vhosts))
        .route("/api/vhost-limits/{vhost}", Scope::Here, get(show_of_vhost))
        .route(
            "/api/vhost-limits/{vhost}/{name}",
            Scope::Metadata,
            put(set_of_vhost).delete(clear_of_vhost),
        )
        .route("/api/user-limits", Scope::Here, get(list_of_users))
        .route("/api/user-limits/{user}", Scope::Here, get(show_of_user))
        .route(
            "/api/user-limits/{user}/{name}",
            Scope::Metadata,
            put(set_of_user).delete(clear_of_user),
        )
}

/// The limits of the vhosts that the user sees.
async fn list_of_vhosts(State(node): State<SharedNode>, Management(caller): Management) -> Json {
    let seen = node.vhost_names().into_iter().filter(|vhost| caller.can_list(vhost));
    // A vhost deleted meanwhile has none.
    let all = seen.filter_map(|vhost| {
        let limits = node.vhost_settings(&vhost)?.limits;
        to_json("vhost", &vhost, &limits)
    });
    Json::ok(all.collect())
}

async fn show_of_vhost(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(vhost): Name,
) -> Result<Json, ApiError> {
    let limits = node.vhost_settings(&vhost).ok_or_else(ApiError::not_found)?.limits;
    if !caller.can_list(&vhost) {
        return Err(ApiError::no_entry());
    }
    Ok(Json::ok(to_json("vhost", &vhost, &limits).into_iter().collect()))
}

async fn set_of_vhost(
    State(node): State<SharedNode>,
    _: Administrator,
    NameInVhost { vhost, name }: NameInVhost,
    body: Object,
) -> Result<StatusCode, ApiError> {
    node.vhost_settings(&vhost).ok_or_else(ApiError::no_such_vhost)?;
    let [value] = body.required(["value"])?;
    let (limit, max) = limit_from_json::<VhostLimit>(&name, value, "limits")
        .map_err(|problem| ApiError::bad_request(format!("Validation failed\n\n{problem}\n")))?;
    node.set_vhost_limit(&vhost, limit, Some(max)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// As in RabbitMQ, clearing an unset or unknown limit is no error.
async fn clear_of_vhost(
    State(node): State<SharedNode>,
    _: Administrator,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<StatusCode, ApiError> {
    node.vhost_settings(&vhost).ok_or_else(ApiError::no_such_vhost)?;
    if let Some(limit) = VhostLimit::parse(&name) {
        node.set_vhost_limit(&vhost, limit, None).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn list_of_users(State(node): State<SharedNode>, _: Administrator) -> Json {
    let users = node.users();
    Json::ok(users.iter().filter_map(|user| to_json("user", &user.name, &user.limits)).collect())
}

/// Monitors see the limits of all users, others their own.
async fn show_of_user(
    State(node): State<SharedNode>,
    Management(caller): Management,
    Name(name): Name,
) -> Result<Json, ApiError> {
    if !caller.is_monitor() && caller.name != name {
        return Err(ApiError::not_authorised("User not authorised to access object"));
    }
    let user = node.user(&name).ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(to_json("user", &name, &user.limits).into_iter().collect()))
}

async fn set_of_user(
    State(node): State<SharedNode>,
    _: Administrator,
    NameInVhost { vhost: user, name }: NameInVhost,
    body: Object,
) -> Result<StatusCode, ApiError> {
    let [value] = body.required(["value"])?;
    let (limit, max) =
        limit_from_json::<UserLimit>(&name, value, "user-limits").map_err(ApiError::bad_request)?;
    let set = node.set_user_limit(&user, limit, Some(max)).await;
    set.map_err(|unchanged| {
        if unchanged == ChangeError::NoSuchUser {
            return ApiError::bad_request(format!("no_such_user: {user}"));
        }
        unchanged.into()
    })?;
    Ok(StatusCode::NO_CONTENT)
}

async fn clear_of_user(
    State(node): State<SharedNode>,
    _: Administrator,
    NameInVhost { vhost: user, name }: NameInVhost,
) -> Result<StatusCode, ApiError> {
    node.user(&user).ok_or_else(ApiError::not_found)?;
    if let Some(limit) = UserLimit::parse(&name) {
        node.set_user_limit(&user, limit, None).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The limits of a user or vhost in JSON; none without limits.
fn to_json<L: LimitName>(of: &str, name: &str, limits: &BTreeMap<L, i64>) -> Option<Value> {
    (!limits.is_empty()).then(|| json!({of: name, "value": limits_to_json(limits)}))
}

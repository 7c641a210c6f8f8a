//! `/api/permissions` and `/api/topic-permissions`: permissions of users in vhosts, and the routing keys that users
//! may use with topic exchanges.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Value, json};
use server::requests::{ChangeError, PermissionDetails, TopicPermissionDetails, UserDetails};

use crate::api::list_query::{List, Query};
use crate::http::access::Administrator;
use crate::http::answer::{ApiError, Json, made, removed};
use crate::http::body::Object;
use crate::http::extract::{Name, NameInVhost, SharedNode};
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The paths.
pub(super) fn routes() -> Routes {
    type Plain = PermissionDetails;
    type Topic = TopicPermissionDetails;

    Routes::new()
        .route("/api/permissions", Scope::Here, get(list::<Plain>))
        .route(
            "/api/permissions/{vhost}/{user}",
            (Scope::Here, Scope::Metadata),
            get(show).put(put).delete(delete),
        )
        .route("/api/vhosts/{vhost}/permissions", Scope::Here, get(list_of_vhost::<Plain>))
        .route("/api/users/{name}/permissions", Scope::Here, get(list_of_user::<Plain>))
        .route("/api/topic-permissions", Scope::Here, get(list::<Topic>))
        .route(
            "/api/topic-permissions/{vhost}/{user}",
            (Scope::Here, Scope::Metadata),
            get(show_topic).put(put_topic).delete(delete_topic),
        )
        .route(
            "/api/topic-permissions/{vhost}/{user}/{exchange}",
            (Scope::Here, Scope::Metadata),
            get(show_of_exchange).delete(delete_of_exchange),
        )
        .route("/api/vhosts/{vhost}/topic-permissions", Scope::Here, get(list_of_vhost::<Topic>))
        .route("/api/users/{name}/topic-permissions", Scope::Here, get(list_of_user::<Topic>))
}

/// The fields that a filter looks into.
///
/// COMPAT: pages of more lists: RabbitMQ's lists of permissions have no pages.
const FOUND_BY: [&str; 3] = ["user", "vhost", "exchange"];

/// Permissions or topic permissions, which are listed in the same way.
trait Permission: Sized + 'static {
    /// The permissions of a user in all vhosts.
    fn of(user: UserDetails) -> Vec<Self>;

    /// Name of the vhost.
    fn vhost(&self) -> &str;

    /// The permission in JSON.
    fn to_json(&self) -> Value;
}

impl Permission for PermissionDetails {
    fn of(user: UserDetails) -> Vec<Self> {
        user.permissions
    }

    fn vhost(&self) -> &str {
        &self.vhost
    }

    fn to_json(&self) -> Value {
        let Self { user, vhost, configure, write, read } = self;
        json!({"user": user, "vhost": vhost, "configure": configure, "write": write, "read": read})
    }
}

impl Permission for TopicPermissionDetails {
    fn of(user: UserDetails) -> Vec<Self> {
        user.topic_permissions
    }

    fn vhost(&self) -> &str {
        &self.vhost
    }

    fn to_json(&self) -> Value {
        let Self { user, vhost, exchange, write, read } = self;
        json!({"user": user, "vhost": vhost, "exchange": exchange, "write": write, "read": read})
    }
}

async fn list<P: Permission>(
    State(node): State<SharedNode>,
    _: Administrator,
    query: Query,
) -> Result<List, ApiError> {
    let all = node.users().into_iter().flat_map(P::of);
    query.answer_found_by(all.map(|one| one.to_json()).collect(), &FOUND_BY)
}

async fn list_of_vhost<P: Permission>(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(vhost): Name,
    query: Query,
) -> Result<List, ApiError> {
    node.vhost_settings(&vhost).ok_or_else(ApiError::not_found)?;
    let all = node.users().into_iter().flat_map(P::of);
    let of_vhost = all.filter(|one| one.vhost() == vhost).map(|one| one.to_json());
    query.answer_found_by(of_vhost.collect(), &FOUND_BY)
}

async fn list_of_user<P: Permission>(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
    query: Query,
) -> Result<List, ApiError> {
    let user = node.user(&name).ok_or_else(ApiError::not_found)?;
    query.answer_found_by(P::of(user).iter().map(P::to_json).collect(), &FOUND_BY)
}

async fn show(
    State(node): State<SharedNode>,
    _: Administrator,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<Json, ApiError> {
    let user = node.user(&name).ok_or_else(ApiError::not_found)?;
    let permissions = user.permissions.iter().find(|one| one.vhost == vhost);
    let permissions = permissions.ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(query.select_columns(permissions.to_json())))
}

async fn put(
    State(node): State<SharedNode>,
    _: Administrator,
    NameInVhost { vhost, name: user }: NameInVhost,
    body: Object,
) -> Result<StatusCode, ApiError> {
    check_exist(&node, &vhost, &user)?;
    let [configure, write, read] = body.texts(["configure", "write", "read"])?.map(str::to_owned);
    let to = PermissionDetails { user, vhost, configure, write, read };
    Ok(made(node.set_permissions(to).await.map_err(not_set)?))
}

async fn delete(
    State(node): State<SharedNode>,
    _: Administrator,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<StatusCode, ApiError> {
    removed(node.clear_permissions(&vhost, &name).await?)
}

async fn show_topic(
    State(node): State<SharedNode>,
    _: Administrator,
    NameInVhost { vhost, name }: NameInVhost,
    query: Query,
) -> Result<List, ApiError> {
    let user = node.user(&name).ok_or_else(ApiError::not_found)?;
    let of_vhost = user.topic_permissions.iter().filter(|one| one.vhost == vhost);
    let found: Vec<Value> = of_vhost.map(Permission::to_json).collect();
    if found.is_empty() {
        return Err(ApiError::not_found());
    }
    query.unpaged().answer(found)
}

/// As in RabbitMQ, shows the topic permissions of the user for all exchanges of the vhost.
async fn show_of_exchange(
    state: State<SharedNode>,
    caller: Administrator,
    Path((vhost, name, _)): Path<(String, String, String)>,
    query: Query,
) -> Result<List, ApiError> {
    show_topic(state, caller, NameInVhost { vhost, name }, query).await
}

async fn put_topic(
    State(node): State<SharedNode>,
    _: Administrator,
    NameInVhost { vhost, name: user }: NameInVhost,
    body: Object,
) -> Result<StatusCode, ApiError> {
    check_exist(&node, &vhost, &user)?;
    let [exchange, write, read] = body.texts(["exchange", "write", "read"])?.map(str::to_owned);
    let to = TopicPermissionDetails { user, vhost, exchange, write, read };
    let no_exchange = ApiError::bad_request(json!(["no_such_exchange", to.exchange]));
    let set = node.set_topic_permissions(to).await;
    let is_new = set.map_err(|error| {
        if error == ChangeError::NoSuchExchange { no_exchange } else { not_set(error) }
    })?;
    Ok(made(is_new))
}

async fn delete_topic(
    State(node): State<SharedNode>,
    _: Administrator,
    NameInVhost { vhost, name }: NameInVhost,
) -> Result<StatusCode, ApiError> {
    removed(node.clear_topic_permissions(&vhost, &name, None).await?)
}

async fn delete_of_exchange(
    State(node): State<SharedNode>,
    _: Administrator,
    Path((vhost, name, exchange)): Path<(String, String, String)>,
) -> Result<StatusCode, ApiError> {
    removed(node.clear_topic_permissions(&vhost, &name, Some(&exchange)).await?)
}

/// Checks that the user and the vhost exist.
fn check_exist(node: &SharedNode, vhost: &str, user: &str) -> Result<(), ApiError> {
    match node.vhost_settings(vhost).is_some() && node.user(user).is_some() {
        true => Ok(()),
        false => Err(no_such_vhost_or_user()),
    }
}

fn no_such_vhost_or_user() -> ApiError {
    ApiError::bad_request("vhost_or_user_not_found")
}

/// The answer if permissions could not be set.
fn not_set(error: ChangeError) -> ApiError {
    if matches!(error, ChangeError::NoSuchUser | ChangeError::NoSuchVhost) {
        return no_such_vhost_or_user();
    }
    error.into()
}

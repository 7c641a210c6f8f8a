//! `/api/users`: users with their passwords and tags.

pub(crate) mod logins;
mod permissions;

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde_json::{Value, json};
use server::json::base64_text::bytes_from_base64;
use server::json::limits::{limits_from_json, limits_to_json};
use server::json::vhost::{check_labels, tags_from_json, too_many_tags};
use server::limits::USER_TAGS_MAX;
use server::requests::{NewPassword, NewUser, PermissionDetails, UserDetails};

use crate::api::list_query::{List, Query};
use crate::http::access::Administrator;
use crate::http::answer::{ApiError, Json, made, removed};
use crate::http::body::{Object, not_a};
use crate::http::extract::{Name, SharedNode};
use crate::http::fields::flag;
use crate::http::routes::Routes;
use crate::http::scope::Scope;

/// The tag of users that requests change or delete only with [`INCLUDE_PROTECTED`].
const PROTECTED: &str = "protected";

/// The query of `leveretctl`, for which the tag has no meaning, as for RabbitMQ's commands.
const INCLUDE_PROTECTED: &str = "include_protected=true";

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/users", Scope::Here, get(list))
        .route("/api/users/without-permissions", Scope::Here, get(list_without_permissions))
        .route("/api/users/bulk-delete", Scope::Metadata, post(delete_many))
        .route(
            "/api/users/{name}",
            (Scope::Here, Scope::Metadata),
            get(show).put(put).delete(delete),
        )
        .merge(logins::routes())
        .merge(permissions::routes())
}

async fn list(
    State(node): State<SharedNode>,
    _: Administrator,
    query: Query,
) -> Result<List, ApiError> {
    query.answer(node.users().iter().map(to_json).collect())
}

async fn list_without_permissions(
    State(node): State<SharedNode>,
    _: Administrator,
    query: Query,
) -> Result<List, ApiError> {
    let users = node.users();
    query.answer(users.iter().filter(|user| user.permissions.is_empty()).map(to_json).collect())
}

async fn show(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
    query: Query,
) -> Result<Json, ApiError> {
    let user = node.user(&name).ok_or_else(ApiError::not_found)?;
    Ok(Json::ok(query.select_columns(to_json(&user))))
}

async fn put(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
    RawQuery(query): RawQuery,
    body: Object,
) -> Result<StatusCode, ApiError> {
    let known = node.user(&name);
    check_not_protected(known.as_ref(), query.as_deref())?;
    let tags = tags(&body)?;
    let limits = match body.get("limits") {
        None => None,
        Some(Value::Object(limits)) => {
            Some(limits_from_json(limits, "user-limits").map_err(ApiError::bad_request)?)
        }
        Some(_) => return Err(not_a("limits", "object")),
    };
    let password = password(&body)?;
    // As in RabbitMQ, which looks at them when it adds a user.
    let permissions = match (&known, body.get("permissions")) {
        (Some(_), _) | (None, None) => Vec::new(),
        (None, Some(permissions)) => permissions_from_json(&node, &name, permissions)?,
    };
    let user = NewUser { name, password, tags, limits, permissions };
    Ok(made(node.put_user(user).await?))
}

/// Refuses to change or delete a protected user, if the query does not say otherwise.
fn check_not_protected(user: Option<&UserDetails>, query: Option<&str>) -> Result<(), ApiError> {
    if user.is_some_and(is_protected) && query != Some(INCLUDE_PROTECTED) {
        let reason = "Protected users cannot be modified via the HTTP API";
        return Err(ApiError::bad_request(reason));
    }
    Ok(())
}

fn is_protected(user: &UserDetails) -> bool {
    user.tags.iter().any(|tag| tag == PROTECTED)
}

/// The tags in a body, or what `administrator` stands for without them, as in the first versions of RabbitMQ.
fn tags(body: &Object) -> Result<Vec<String>, ApiError> {
    let tags = match (body.get("tags"), body.get("administrator")) {
        (Some(tags), _) => tags_from_json(tags).map_err(ApiError::bad_request)?,
        (None, None) => return Err(ApiError::bad_request("tags_not_present")),
        (None, Some(administrator)) if flag(administrator)? => vec!["administrator".to_owned()],
        (None, Some(_)) => Vec::new(),
    };
    if let Some(count) = too_many_tags(&tags) {
        let reason = format!("A user can have at most {USER_TAGS_MAX} tags (received {count})");
        return Err(ApiError::bad_request(reason));
    }
    check_labels(&tags, "").map_err(ApiError::bad_request)?;
    Ok(tags)
}

/// The permissions of a new user: an object of those in each vhost.
fn permissions_from_json(
    node: &SharedNode,
    user: &str,
    permissions: &Value,
) -> Result<Vec<PermissionDetails>, ApiError> {
    let vhosts = permissions.as_object().ok_or_else(|| not_a("permissions", "object"))?;
    let in_vhost = |(vhost, patterns): (&String, &Value)| {
        if node.vhost_settings(vhost).is_none() {
            return Err(ApiError::bad_request(json!(["no_such_vhost", vhost])));
        }
        let patterns = patterns.as_object().ok_or_else(|| not_a("permissions", "object"))?;
        let patterns = Object(patterns.clone());
        let [configure, write, read] =
            patterns.texts(["configure", "write", "read"])?.map(str::to_owned);
        let (user, vhost) = (user.to_owned(), vhost.clone());
        Ok(PermissionDetails { user, vhost, configure, write, read })
    };
    vhosts.iter().map(in_vhost).collect()
}

fn password(body: &Object) -> Result<NewPassword, ApiError> {
    match (body.get("password"), body.get("password_hash")) {
        (None, None) => Ok(NewPassword::None),
        (Some(_), Some(_)) => {
            Err(ApiError::bad_request("both_password_and_password_hash_are_provided"))
        }
        (Some(password), None) => {
            let password = password.as_str().ok_or_else(|| not_a("password", "string"))?;
            Ok(NewPassword::Plain(password.as_bytes().to_vec()))
        }
        (None, Some(hash)) => {
            let not_base64 = || ApiError::bad_request(json!(["not_base64", hash]));
            let text = hash.as_str().ok_or_else(not_base64)?;
            let bytes = bytes_from_base64(text).map_err(|_| not_base64())?;
            let algorithm = match body.get("hashing_algorithm") {
                None => None,
                Some(Value::String(algorithm)) => Some(algorithm.clone()),
                Some(_) => return Err(not_a("hashing_algorithm", "string")),
            };
            Ok(NewPassword::Hash { bytes, algorithm })
        }
    }
}

async fn delete(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
    RawQuery(query): RawQuery,
) -> Result<StatusCode, ApiError> {
    check_not_protected(node.user(&name).as_ref(), query.as_deref())?;
    removed(node.delete_users(vec![name]).await? > 0)
}

/// Missing users count as deleted; protected ones stay.
async fn delete_many(
    State(node): State<SharedNode>,
    _: Administrator,
    body: Object,
) -> Result<StatusCode, ApiError> {
    let [users] = body.required(["users"])?;
    let names = users.as_array().into_iter().flatten();
    let names: Option<Vec<String>> = names.map(|name| name.as_str().map(str::to_owned)).collect();
    let names = names.filter(|_| users.is_array());
    let mut names = names.ok_or_else(|| not_a("users", "list of strings"))?;
    names.retain(|name| !node.user(name).as_ref().is_some_and(is_protected));
    node.delete_users(names).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn to_json(user: &UserDetails) -> Value {
    json!({
        "name": user.name,
        "password_hash": user.password_hash,
        "hashing_algorithm": user.hashing_algorithm,
        "tags": user.tags,
        "limits": limits_to_json(&user.limits),
    })
}

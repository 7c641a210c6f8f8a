//! `/api/users`: users with their passwords and tags.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::api::list_query::{List, Query};
use crate::http::access::Administrator;
use crate::http::answer::{ApiError, Json, made, removed};
use crate::http::body::{Object, not_a};
use crate::http::extract::{Name, SharedNode};
use crate::json::base64_text::bytes_from_base64;
use crate::json::limits::{limits_from_json, limits_to_json};
use crate::json::vhost::{check_labels, tags_from_json};
use crate::node::{NewPassword, NewUser, UserDetails};

/// The paths.
pub(super) fn routes() -> Router<SharedNode> {
    Router::new()
        .route("/api/users", get(list))
        .route("/api/users/without-permissions", get(list_without_permissions))
        .route("/api/users/bulk-delete", post(delete_many))
        .route("/api/users/{name}", get(show).put(put).delete(delete))
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
    body: Object,
) -> Result<StatusCode, ApiError> {
    let tags = body.get("tags").ok_or_else(|| ApiError::bad_request("tags_not_present"))?;
    let limits = match body.get("limits") {
        None => None,
        Some(Value::Object(limits)) => {
            Some(limits_from_json(limits, "user-limits").map_err(ApiError::bad_request)?)
        }
        Some(_) => return Err(not_a("limits", "object")),
    };
    let tags = tags_from_json(tags).map_err(ApiError::bad_request)?;
    check_labels(&tags, "").map_err(ApiError::bad_request)?;
    let user = NewUser { name, password: password(&body)?, tags, limits };
    Ok(made(node.put_user(user).await?))
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
            let text = hash.as_str().ok_or_else(|| not_a("password_hash", "string"))?;
            let bytes = bytes_from_base64(text)
                .map_err(|_| ApiError::bad_request(format!("not_base64: {text}")))?;
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
) -> Result<StatusCode, ApiError> {
    removed(node.delete_users(vec![name]).await? > 0)
}

/// Missing users count as deleted.
async fn delete_many(
    State(node): State<SharedNode>,
    _: Administrator,
    body: Object,
) -> Result<StatusCode, ApiError> {
    let [users] = body.required(["users"])?;
    let names = users.as_array().into_iter().flatten();
    let names: Option<Vec<String>> = names.map(|name| name.as_str().map(str::to_owned)).collect();
    let names = names.filter(|_| users.is_array());
    let names = names.ok_or_else(|| not_a("users", "list of strings"))?;
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

//! `/api/login`, `/api/whoami` and `/api/auth`: logins, password hashes and counts of attempts.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use server::requests::{Credentials, PermissionDetails};
use server::snapshot::logins::LoginAttempts;

use crate::api::overview;
use crate::http::access::{Administrator, Management, Monitor, log_in};
use crate::http::answer::{ApiError, Json};
use crate::http::extract::{Name, SharedNode};
use crate::http::origin::check_origin;
use crate::http::routes::Routes;
use crate::http::scope::Scope;
use crate::limits::LOGIN_BYTES_MAX;

/// The paths.
pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/api/whoami", Scope::Here, get(whoami))
        .route("/api/auth/hash_password/{password}", Scope::Here, get(hash_password))
        .route("/api/auth/attempts/{node}", Scope::Node("node"), get(attempts).delete(forget))
        .route(
            "/api/auth/attempts/{node}/source",
            Scope::Node("node"),
            get(attempts_by_source).delete(forget),
        )
}

/// The paths that need no login: that of the login itself, and that of the version.
pub(crate) fn open_routes() -> Router<SharedNode> {
    let login = post(login).delete(logout).layer(DefaultBodyLimit::max(LOGIN_BYTES_MAX));
    Router::new().route("/api/login", login).route("/api/version", get(overview::version))
}

/// The permissions are there for the page, which offers no action that they forbid.
async fn whoami(State(node): State<SharedNode>, Management(caller): Management) -> Json {
    let permissions = node.user(&caller.name).map(|user| user.permissions).unwrap_or_default();
    let permissions = permissions.into_iter().map(|one| {
        let PermissionDetails { user: _, vhost, configure, write, read } = one;
        json!({"vhost": vhost, "configure": configure, "write": write, "read": read})
    });
    let mut whoami = json!({
        "name": caller.name,
        "tags": caller.tags,
        "is_internal_user": true,
        "permissions": permissions.collect::<Vec<Value>>(),
    });
    if let (Some(minutes), Some(fields)) =
        (node.login_session_timeout_minutes(), whoami.as_object_mut())
    {
        fields.insert("login_session_timeout".to_owned(), minutes.into());
    }
    Json::ok(whoami)
}

/// The hash that a user can be given instead of this password.
async fn hash_password(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(password): Name,
) -> Result<Json, ApiError> {
    Ok(Json::ok(json!({"ok": node.hash_password(password.as_bytes())?})))
}

async fn attempts(
    State(node): State<SharedNode>,
    _: Monitor,
    Name(name): Name,
) -> Result<Json, ApiError> {
    check_node(&node, &name)?;
    Ok(Json::ok(node.login_attempts().into_iter().map(to_json).collect()))
}

/// From where they come is not counted, which is RabbitMQ's default.
async fn attempts_by_source(
    State(node): State<SharedNode>,
    _: Monitor,
    Name(name): Name,
) -> Result<Json, ApiError> {
    check_node(&node, &name)?;
    Ok(Json::ok(json!([])))
}

async fn forget(
    State(node): State<SharedNode>,
    _: Administrator,
    Name(name): Name,
) -> Result<StatusCode, ApiError> {
    check_node(&node, &name)?;
    node.reset_login_attempts();
    Ok(StatusCode::NO_CONTENT)
}

fn check_node(node: &SharedNode, name: &str) -> Result<(), ApiError> {
    if node.snapshot().name == name { Ok(()) } else { Err(ApiError::not_found()) }
}

fn to_json(attempts: LoginAttempts) -> Value {
    json!({
        "protocol": attempts.protocol.as_str(),
        "auth_attempts": attempts.succeeded + attempts.failed,
        "auth_attempts_failed": attempts.failed,
        "auth_attempts_succeeded": attempts.succeeded,
    })
}

/// A form with name and password, as the management UI sends it.
async fn login(
    State(node): State<SharedNode>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    extensions: Extensions,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json, ApiError> {
    check_origin(&headers)?;
    let body = body.map_err(|error| {
        let reason = "the form cannot be read, or is larger than a login";
        ApiError::new(error.status(), "bad_request", reason)
    })?;
    let field = |wanted: &str| {
        let mut pairs = form_urlencoded::parse(&body);
        pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
    };
    let (user, password) = (field("username"), field("password"));
    let (Some(user), Some(password)) = (user, password) else {
        return Err(ApiError::wrong_login());
    };
    let token = STANDARD.encode(format!("{user}:{password}"));
    let credentials = Credentials { user, password: password.into_bytes(), is_token: false };
    let caller = log_in(&node, peer.ip(), &headers, &extensions, credentials).await?;
    Ok(Json::ok(json!({
        "user": {"name": caller.name, "tags": caller.tags, "is_internal_user": true},
        "token": {"type": "basic", "value": token},
    })))
}

/// There is nothing to forget: a login holds for one request.
async fn logout() -> StatusCode {
    StatusCode::NO_CONTENT
}

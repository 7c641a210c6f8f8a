//! The API of a stopped node: it can be started, reset and ended by a caller who has the token of its
//! machine. It knows no users.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, DefaultBodyLimit, FromRequest as _, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use server::StoppedNode;
use server::limits::BODY_BYTES_MAX;

use crate::api::nodes::actions;
use crate::http::access::{check, not_localhost};
use crate::http::answer::ApiError;
use crate::http::credentials::credentials;
use crate::http::docs;
use crate::http::extract::{Body, Name};
use crate::http::middleware;
use crate::http::origin::{is_for_this_machine, is_from_another_site};
use crate::http::web;

/// Answers HTTP requests while `node` is stopped. Must be served with the `SocketAddr` of each client.
pub(crate) fn stopped_router(node: Arc<StoppedNode>) -> Router {
    let routes = Router::new()
        .route("/api/nodes/{name}/actions", post(act))
        .merge(web::routes())
        .merge(docs::routes())
        .fallback(stopped)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(node);
    Router::new()
        .fallback_service(routes)
        .layer(from_fn_with_state(BODY_BYTES_MAX, middleware::pass))
}

async fn stopped() -> ApiError {
    let reason = "the rabbit app is stopped";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", reason)
}

async fn act(
    State(node): State<Arc<StoppedNode>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Name(name): Name,
    request: Request,
) -> Result<StatusCode, ApiError> {
    if is_from_another_site(&headers) || !is_for_this_machine(&headers) {
        return Err(not_localhost());
    }
    let login = ready(node.login(&credentials(&headers)?, peer.ip()));
    let login = check(request.extensions(), login, ready(()));
    let caller = login.await.map_err(|_| ApiError::wrong_login())?;
    if !caller.is_administrator() {
        return Err(ApiError::wrong_login());
    }
    if name != node.name() {
        return Err(ApiError::not_found());
    }
    // Read after the login, so that the body of an unauthenticated request takes no memory.
    let Body(body) = Body::from_request(request, &node).await?;
    actions::answer(node.act(actions::action(&body)?).await)
}

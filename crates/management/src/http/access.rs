//! Authentication and authorisation of API requests.
//!
//! The order of checks is RabbitMQ's: unknown paths and methods are answered without a login; then follow
//! the login, the user's tags, and the form of the request.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, Path, Request, State};
use axum::http::header::ACCEPT;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use server::Admitted;
use server::Node;
use server::requests::{AuditEntry, Caller, Credentials, LoginRefused};

use crate::http::allowance::Allowance;
use crate::http::answer::ApiError;
use crate::http::credentials::credentials;
use crate::http::forward::Forwarded;
use crate::http::origin::{check_origin, is_for_this_machine};

/// RabbitMQ's reason for refusing objects of other users.
const NOT_AUTHORISED: &str = "User not authorised to access object";

/// Refuses callers who are no administrators.
pub(crate) fn check_administrator(caller: &Caller) -> Result<(), ApiError> {
    match caller.is_administrator() {
        true => Ok(()),
        false => Err(ApiError::not_authorised("Not administrator user")),
    }
}

/// Refuses callers who may not see clients of `user`.
pub(crate) fn check_can_see_client(caller: &Caller, user: &str) -> Result<(), ApiError> {
    match caller.can_see_client(user) {
        true => Ok(()),
        false => Err(ApiError::not_authorised(NOT_AUTHORISED)),
    }
}

/// Refuses callers who may not close clients of `user`.
pub(crate) fn check_can_close_client(caller: &Caller, user: &str) -> Result<(), ApiError> {
    match caller.can_close_client(user) {
        true => Ok(()),
        false => Err(ApiError::not_authorised(NOT_AUTHORISED)),
    }
}

/// Refuses callers who may not read the contents of `vhost`, with the answer for a missing vhost.
pub(crate) fn check_can_enter(caller: &Caller, vhost: &str) -> Result<(), ApiError> {
    if caller.can_enter(vhost) { Ok(()) } else { Err(ApiError::not_found()) }
}

/// Authenticates a request, adds its [`Caller`] as an extension, and logs changes.
pub(crate) async fn guard(
    State(node): State<Arc<Node>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = peer.ip();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let caller = match admit(&node, peer, &method, request.headers(), request.extensions()).await {
        Ok(caller) => Arc::new(caller),
        Err(error) => return error.into_response(),
    };
    if caller.is_local_administrator {
        Allowance::of(request.extensions()).is_for_local_tool();
    }
    request.extensions_mut().insert(Arc::clone(&caller));
    let response = next.run(request).await;
    if is_change(&method) {
        let (method, status) = (method.as_str(), response.status().as_u16());
        node.audit(AuditEntry { user: &caller.name, peer, method, path: &path, status });
    }
    response
}

/// True if a request with this method may change something.
fn is_change(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

async fn admit(
    node: &Node,
    peer: IpAddr,
    method: &Method,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Caller, ApiError> {
    if let Some(forwarded) = extensions.get::<Forwarded>() {
        return forwarded.caller(node).map_err(|_| ApiError::wrong_login());
    }
    if is_change(method) {
        check_origin(headers)?;
    }
    let caller = log_in(node, peer, headers, extensions, credentials(headers)?).await?;
    if !accepts_json(headers) {
        let reason = "only application/json is spoken here";
        return Err(ApiError::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", reason));
    }
    // The content type of a body is ignored: tools leave it out or send that of a form, and RabbitMQ checks
    // it at a few paths only. Pages of other sites are refused above.
    Ok(caller)
}

/// Authenticates a user who may use the API.
pub(crate) async fn log_in(
    node: &Node,
    peer: IpAddr,
    headers: &HeaderMap,
    extensions: &Extensions,
    credentials: Credentials,
) -> Result<Caller, ApiError> {
    let penalty = node.hold_back(credentials.user.clone(), peer);
    let result = check(extensions, node.login(credentials, peer), penalty).await;
    let caller = result.map_err(|refused| match refused {
        LoginRefused::Credentials => ApiError::wrong_login(),
        LoginRefused::NotLoopback => not_localhost(),
        LoginRefused::Unavailable => {
            let reason = "logins cannot be checked now";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", reason)
        }
    })?;
    // COMPAT: rebound names: a user who may come from this machine only must address it by a local name.
    if caller.is_loopback_only && !is_for_this_machine(headers) {
        return Err(not_localhost());
    }
    if !caller.is_management() {
        return Err(ApiError::not_authorised("Not management user"));
    }
    Ok(caller)
}

/// Waits for the result of a login, and reports it to the connection of the request, which the listener has added to its
/// extensions. The answer to a refused one waits for `penalty`.
pub(crate) async fn check(
    extensions: &Extensions,
    login: impl Future<Output = Result<Caller, LoginRefused>>,
    penalty: impl Future<Output = ()>,
) -> Result<Caller, LoginRefused> {
    let Some(connection) = extensions.get::<Arc<Admitted>>() else {
        return login.await;
    };
    connection.checks_login();
    let result = login.await;
    match &result {
        Ok(caller) if caller.is_local_administrator => connection.local_administrator(),
        Ok(_) => connection.user_logged_in(),
        Err(_) => {
            connection.waits_for_client();
            penalty.await;
        }
    }
    result
}

pub(crate) fn not_localhost() -> ApiError {
    ApiError::not_authorised("User can only log in via localhost")
}

/// True if the client accepts JSON; a missing header accepts everything.
fn accepts_json(headers: &HeaderMap) -> bool {
    let mut ranges = headers.get_all(ACCEPT).into_iter().peekable();
    if ranges.peek().is_none() {
        return true;
    }
    ranges.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|range| {
        let kind = range.split(';').next().unwrap_or_default().trim();
        ["application/json", "application/*", "*/*"].iter().any(|k| kind.eq_ignore_ascii_case(k))
    })
}

/// Extractor: a user with any management tag.
#[derive(Debug)]
pub(crate) struct Management(pub(crate) Arc<Caller>);

/// Extractor: requires the tag monitoring or administrator.
#[derive(Debug)]
pub(crate) struct Monitor;

/// Extractor: a user with the tag policymaker or administrator.
#[derive(Debug)]
pub(crate) struct Policymaker(pub(crate) Arc<Caller>);

/// Extractor: a user with the tag administrator.
#[derive(Debug)]
pub(crate) struct Administrator(pub(crate) Arc<Caller>);

/// Extractor: a user with the vhost in the path. The user has permissions there, or is an administrator.
#[derive(Debug)]
pub(crate) struct VhostUser {
    pub(crate) caller: Arc<Caller>,
    pub(crate) vhost: String,
}

impl<S: Send + Sync> FromRequestParts<S> for VhostUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = caller(parts)?;
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(vhost) = path.map_err(|_| ApiError::not_found())?;
        match caller.can_enter(&vhost) {
            true => Ok(Self { caller, vhost }),
            false => Err(ApiError::no_entry()),
        }
    }
}

fn caller(parts: &Parts) -> Result<Arc<Caller>, ApiError> {
    parts.extensions.get().cloned().ok_or_else(ApiError::login_required)
}

impl<S: Sync> FromRequestParts<S> for Management {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        caller(parts).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for Monitor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match caller(parts)?.is_monitor() {
            true => Ok(Self),
            false => Err(ApiError::not_authorised("Not monitor user")),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Policymaker {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let caller = caller(parts)?;
        match caller.is_policymaker() {
            true => Ok(Self(caller)),
            false => Err(ApiError::not_authorised(NOT_AUTHORISED)),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Administrator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let caller = caller(parts)?;
        check_administrator(&caller)?;
        Ok(Self(caller))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn accept_header_allows_json_in_any_form() {
        let accepts = |value: &str| accepts_json(&headers(&[("accept", value)]));
        for value in ["*/*", "application/*", "text/html, application/JSON;q=0.5", "text/html,*/*"]
        {
            assert!(accepts(value), "{value}");
        }
        for value in ["text/html", "", "application/bert", "json"] {
            assert!(!accepts(value), "{value}");
        }
        assert!(accepts_json(&headers(&[])));
    }
}

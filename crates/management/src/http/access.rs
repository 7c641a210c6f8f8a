//! Who asks, and what he may ask for.
//!
//! The order is RabbitMQ's: a path that does not exist and a method that a path does not have are told
//! to everybody; then comes the login, then the user's tags, then the form of the request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, Path, Request, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::Node;
use crate::http::answer::ApiError;
use crate::node::{AuditEntry, Logins};

/// What somebody is told who asks for what belongs to others.
const NOT_HIS: &str = "User not authorised to access object";

/// A user's name and password.
pub struct Credentials {
    /// His name.
    pub user: String,
    /// His password.
    pub password: Vec<u8>,
    /// It is the token that the node gives out to its own machine, and the name means nothing.
    pub is_token: bool,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The connection of a request: what it has proved decides whether it keeps its place when there are too
/// many. A request has one as the extension `Arc<dyn ClientStanding>` if its listener counts connections.
pub trait ClientStanding: Send + Sync {
    /// A login is checked: that is bounded by itself.
    fn login_is_checked(&self);

    /// The login was refused.
    fn login_was_refused(&self);

    /// A user, or the local administrator, has logged in and waits for an answer.
    fn logged_in(&self, is_local_administrator: bool);
}

/// Why a login is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginRefused {
    /// No such user, or another password.
    Credentials,
    /// The user may only log in from the broker's machine.
    NotLoopback,
    /// The node cannot check logins now.
    Unavailable,
}

/// A user who has logged in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// His name.
    pub name: String,
    /// His tags.
    pub tags: Vec<String>,
    /// The vhosts that he may enter.
    pub vhosts: Vec<String>,
    /// He may only log in from the broker's machine.
    pub is_loopback_only: bool,
    /// He is no user, but has shown the token of the broker's machine: he may do everything everywhere.
    pub is_local_administrator: bool,
}

impl Caller {
    fn has_one_of(&self, tags: &[&str]) -> bool {
        self.tags.iter().any(|tag| tags.contains(&tag.as_str()))
    }

    /// He may use the API.
    fn is_management(&self) -> bool {
        self.has_one_of(&["administrator", "monitoring", "policymaker", "management"])
    }

    /// He sees everything that concerns the node, and what belongs to others.
    pub(crate) fn is_monitor(&self) -> bool {
        self.has_one_of(&["administrator", "monitoring"])
    }

    pub(crate) fn is_administrator(&self) -> bool {
        self.has_one_of(&["administrator"])
    }

    /// Refuses everybody else.
    pub(crate) fn must_be_administrator(&self) -> Result<(), ApiError> {
        match self.is_administrator() {
            true => Ok(()),
            false => Err(ApiError::not_authorised("Not administrator user")),
        }
    }

    /// Whether lists show him the clients of this user.
    pub(crate) fn sees_client(&self, user: &str) -> bool {
        self.is_monitor() || self.name == user
    }

    /// Refuses to show him a client of this user, if that is not for him.
    pub(crate) fn may_see_client(&self, user: &str) -> Result<(), ApiError> {
        if self.sees_client(user) { Ok(()) } else { Err(ApiError::not_authorised(NOT_HIS)) }
    }

    /// Refuses to let him close a client of this user, if that is not for him.
    pub(crate) fn may_close_client(&self, user: &str) -> Result<(), ApiError> {
        let may = self.is_administrator() || self.name == user;
        if may { Ok(()) } else { Err(ApiError::not_authorised(NOT_HIS)) }
    }

    /// He may set policies.
    fn is_policymaker(&self) -> bool {
        self.has_one_of(&["administrator", "policymaker"])
    }

    /// Whether he may look at queues, exchanges and bindings of this vhost; to be a monitor is not enough, as in RabbitMQ.
    pub(crate) fn looks_into(&self, vhost: &str) -> bool {
        self.is_administrator() || self.has_permissions_in(vhost)
    }

    /// Refuses him what is in this vhost, if that is not for him; whether there is one he is not told.
    pub(crate) fn may_look_into(&self, vhost: &str) -> Result<(), ApiError> {
        if self.looks_into(vhost) { Ok(()) } else { Err(ApiError::not_found()) }
    }

    fn has_permissions_in(&self, vhost: &str) -> bool {
        self.vhosts.iter().any(|name| name == vhost)
    }

    /// Whether lists show him this vhost.
    pub(crate) fn sees(&self, vhost: &str) -> bool {
        self.is_monitor() || self.has_permissions_in(vhost)
    }
}

/// Lets a request through to its resource, which finds there who asks.
pub(crate) async fn guard(
    State(node): State<Arc<dyn Node>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = peer.ip();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let caller = match admit(&*node, peer, &method, (request.headers(), request.extensions())).await
    {
        Ok(caller) => Arc::new(caller),
        Err(error) => return error.into_response(),
    };
    request.extensions_mut().insert(Arc::clone(&caller));
    let response = next.run(request).await;
    if is_change(&method) {
        let (method, status) = (method.as_str(), response.status().as_u16());
        node.audit(AuditEntry { user: &caller.name, peer, method, path: &path, status });
    }
    response
}

/// Whether a request with this method is meant to change something.
fn is_change(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

async fn admit(
    node: &dyn Node,
    peer: IpAddr,
    method: &Method,
    (headers, extensions): (&HeaderMap, &Extensions),
) -> Result<Caller, ApiError> {
    if is_change(method) {
        check_origin(headers)?;
    }
    let caller = log_in(node, peer, (headers, extensions), credentials(headers)?).await?;
    if !accepts_json(headers) {
        let reason = "only application/json is spoken here";
        return Err(ApiError::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", reason));
    }
    // What a body says of its type is not looked at: tools leave it out or send that of a form, and
    // RabbitMQ minds it at a few paths only. Pages of other sites are kept out above.
    Ok(caller)
}

/// Keeps pages of other sites from changing anything.
pub(crate) fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    if !is_from_another_site(headers) {
        return Ok(());
    }
    let reason = "requests of other sites are not accepted";
    Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden", reason))
}

/// Who it is that has these credentials and may use the API.
pub(crate) async fn log_in(
    node: &dyn Node,
    peer: IpAddr,
    (headers, extensions): (&HeaderMap, &Extensions),
    credentials: Credentials,
) -> Result<Caller, ApiError> {
    let result = check(node, peer, extensions, credentials).await;
    let caller = result.map_err(|refused| match refused {
        LoginRefused::Credentials => ApiError::wrong_login(),
        LoginRefused::NotLoopback => not_localhost(),
        LoginRefused::Unavailable => {
            let reason = "logins cannot be checked now";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", reason)
        }
    })?;
    // COMPAT: rebound names: who may only come from this machine must have asked for it by its name.
    if caller.is_loopback_only && !is_for_this_machine(headers) {
        return Err(not_localhost());
    }
    if !caller.is_management() {
        return Err(ApiError::not_authorised("Not management user"));
    }
    Ok(caller)
}

/// Checks a login, and tells the connection of the request what comes of it.
pub(crate) async fn check(
    logins: &(impl Logins + ?Sized),
    peer: IpAddr,
    extensions: &Extensions,
    credentials: Credentials,
) -> Result<Caller, LoginRefused> {
    let Some(standing) = extensions.get::<Arc<dyn ClientStanding>>() else {
        return logins.login(credentials, peer).await;
    };
    let user = credentials.user.clone();
    standing.login_is_checked();
    let result = logins.login(credentials, peer).await;
    match &result {
        Ok(caller) => standing.logged_in(caller.is_local_administrator),
        Err(_) => {
            standing.login_was_refused();
            logins.hold_back(user, peer).await;
        }
    }
    result
}

pub(crate) fn not_localhost() -> ApiError {
    ApiError::not_authorised("User can only log in via localhost")
}

/// The login in the `Authorization` header.
pub(crate) fn credentials(headers: &HeaderMap) -> Result<Credentials, ApiError> {
    let Some(value) = headers.get(AUTHORIZATION) else {
        return Err(ApiError::login_required());
    };
    let malformed = || ApiError::bad_request("the Authorization header cannot be read");
    let (scheme, rest) =
        value.to_str().ok().and_then(|v| v.split_once(' ')).ok_or_else(malformed)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        let password = rest.trim().as_bytes().to_vec();
        return Ok(Credentials { user: String::new(), password, is_token: true });
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(malformed());
    }
    let octets = STANDARD.decode(rest.trim()).map_err(|_| malformed())?;
    let colon = octets.iter().position(|octet| *octet == b':').ok_or_else(malformed)?;
    let (user, password) = octets.split_at(colon);
    // No user has a name that is no text.
    let user = std::str::from_utf8(user).map_err(|_| ApiError::wrong_login())?.to_owned();
    let password = password.iter().skip(1).copied().collect();
    Ok(Credentials { user, password, is_token: false })
}

/// Whether a browser says that a page of somebody else sends this.
pub(crate) fn is_from_another_site(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(site) = headers.get("sec-fetch-site") {
        return !matches!(site.as_bytes(), b"same-origin" | b"none");
    }
    let host = text(HOST).unwrap_or_default();
    text(ORIGIN).is_some_and(|origin| origin.split_once("://").is_none_or(|(_, at)| at != host))
}

/// Whether the request is addressed to this machine itself: a name that anybody may have pointed here
/// is not enough.
pub(crate) fn is_for_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else {
        // Not from a browser, which always sends one.
        return true;
    };
    // Read as a whole: what follows an address may be a part of a name.
    let is_port = |rest: &str| {
        let digits = rest.strip_prefix(':').unwrap_or(rest);
        rest.is_empty() || rest.len() > digits.len() && digits.parse::<u16>().is_ok()
    };
    if let Some(rest) = host.strip_prefix('[') {
        return rest
            .split_once(']')
            .is_some_and(|(address, rest)| address.parse::<Ipv6Addr>().is_ok() && is_port(rest));
    }
    let (name, rest) = host.split_at(host.find(':').unwrap_or(host.len()));
    let is_local = name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok();
    is_local && is_port(rest)
}

/// Whether the client takes JSON; who does not say takes everything.
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

/// Who asks, whatever his tags are.
#[derive(Debug)]
pub(crate) struct Management(pub(crate) Arc<Caller>);

/// Who asks has the tag monitoring or administrator.
#[derive(Debug)]
pub(crate) struct Monitor;

/// Who asks has the tag policymaker or administrator.
#[derive(Debug)]
pub(crate) struct Policymaker(pub(crate) Arc<Caller>);

/// Who asks has the tag administrator.
#[derive(Debug)]
pub(crate) struct Administrator(pub(crate) Arc<Caller>);

/// Who asks, and the vhost in the path, which he has permissions in; an administrator needs none.
#[derive(Debug)]
pub(crate) struct UserOfVhost {
    pub(crate) caller: Arc<Caller>,
    pub(crate) vhost: String,
}

impl<S: Send + Sync> FromRequestParts<S> for UserOfVhost {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = caller(parts)?;
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(vhost) = path.map_err(|_| ApiError::not_found())?;
        match caller.looks_into(&vhost) {
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
            false => Err(ApiError::not_authorised(NOT_HIS)),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Administrator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let caller = caller(parts)?;
        caller.must_be_administrator()?;
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
    fn a_password_may_have_colons_and_be_no_text() {
        let login = STANDARD.encode(b"anna:a:b\xff");
        let login = format!("bAsIc  {login}");
        let read = credentials(&headers(&[("authorization", &login)])).unwrap();
        assert_eq!((read.user.as_str(), &read.password[..]), ("anna", &b"a:b\xff"[..]));
    }

    #[test]
    fn what_is_no_login_is_told_from_a_wrong_one() {
        let status = |value: &str| {
            let error = credentials(&headers(&[("authorization", value)])).unwrap_err();
            error.into_response().status().as_u16()
        };
        for malformed in ["", "Basic", "Basic ", "Basic !!!", "Basic Z3Vlc3Q=", "Digest x"] {
            assert_eq!(status(malformed), 400, "{malformed}");
        }
        assert_eq!(status(&format!("Basic {}", STANDARD.encode(b"gu\xffest:x"))), 401);
        assert_eq!(credentials(&headers(&[])).unwrap_err(), ApiError::login_required());
    }

    #[test]
    fn a_token_is_no_user() {
        let read = credentials(&headers(&[("authorization", "Bearer  abc ")])).unwrap();
        assert!(read.is_token && read.user.is_empty());
        assert_eq!(read.password, b"abc");
    }

    #[test]
    fn passwords_do_not_show() {
        let (user, password) = ("anna".to_owned(), b"secret".to_vec());
        let credentials = Credentials { user, password, is_token: false };
        assert_eq!(format!("{credentials:?}"), "Credentials { user: \"anna\", .. }");
    }

    #[test]
    fn a_name_that_was_pointed_here_is_not_this_machine() {
        let ours = |host: &str| is_for_this_machine(&headers(&[("host", host)]));
        for host in
            ["localhost", "localhost:15672", "LocalHost:1", "127.0.0.1:15672", "[::1]:15672"]
        {
            assert!(ours(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:15672",
            "localhost.evil.example",
            "",
            ":15672",
            "[::1].evil.example",
            "[::1].evil.example:15672",
            "[::1]evil.example",
            "[::1",
            "[127.0.0.1]",
            "127.0.0.1.evil.example",
            "127.0.0.1:evil.example",
            "127.0.0.1:1:1",
            "localhost:",
            "evil.example@localhost",
            "::1",
        ] {
            assert!(!ours(host), "{host}");
        }
        assert!(is_for_this_machine(&headers(&[])));
    }

    #[test]
    fn other_sites_change_nothing() {
        let host = ("host", "broker:15672");
        let other = |pair| is_from_another_site(&headers(&[host, pair]));
        assert!(other(("origin", "http://evil.example")));
        assert!(other(("origin", "null")));
        assert!(other(("sec-fetch-site", "cross-site")));
        assert!(other(("sec-fetch-site", "same-site")));
        assert!(!other(("origin", "https://broker:15672")));
        assert!(!other(("sec-fetch-site", "same-origin")));
        assert!(!is_from_another_site(&headers(&[host])));
    }

    #[test]
    fn json_is_accepted_in_every_wording() {
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

    #[test]
    fn tags_open_what_they_open() {
        let caller = |tag: &str| Caller {
            name: "anna".to_owned(),
            tags: vec!["other".to_owned(), tag.to_owned()],
            vhosts: vec!["hers".to_owned()],
            is_loopback_only: false,
            is_local_administrator: false,
        };
        let opens = |tag| {
            let caller = caller(tag);
            assert!(caller.sees("hers") && caller.looks_into("hers"));
            let others = (caller.sees("his"), caller.looks_into("his"));
            let tags = (caller.is_management(), caller.is_policymaker(), caller.is_monitor());
            (tags, caller.is_administrator(), others)
        };
        assert_eq!(opens("impersonator"), ((false, false, false), false, (false, false)));
        assert_eq!(opens("management"), ((true, false, false), false, (false, false)));
        assert_eq!(opens("policymaker"), ((true, true, false), false, (false, false)));
        assert_eq!(opens("monitoring"), ((true, false, true), false, (true, false)));
        assert_eq!(opens("administrator"), ((true, true, true), true, (true, true)));
    }
}

//! Answers: JSON, also for what is wrong.

use amqp::reply_code::ReplyCode;
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::refusal::Refusal;
use serde_json::{Value, json};

use crate::node::ChangeError;

/// What browsers and clients are asked for a login with.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Basic realm=\"RabbitMQ Management\"");

/// A JSON document.
#[derive(Debug)]
pub(crate) struct Json(pub(crate) StatusCode, pub(crate) Value);

impl Json {
    /// Everything is well.
    pub(crate) fn ok(value: Value) -> Self {
        Self(StatusCode::OK, value)
    }
}

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        let Self(status, value) = self;
        (status, [(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
    }
}

/// What is answered when something was made, or was there and is now as was asked.
pub(crate) fn made(is_new: bool) -> StatusCode {
    if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT }
}

/// What is answered when something was to be removed that was there, or was not.
///
/// # Errors
/// It was not: not found.
pub(crate) fn removed(existed: bool) -> Result<StatusCode, ApiError> {
    if existed { Ok(StatusCode::NO_CONTENT) } else { Err(ApiError::not_found()) }
}

/// Why a request is not answered with what it asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    error: &'static str,
    /// A text; for some mistakes of form RabbitMQ's clients get a list.
    reason: Value,
    /// A login is asked for.
    is_challenge: bool,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, error: &'static str, reason: impl Into<Value>) -> Self {
        Self { status, error, reason: reason.into(), is_challenge: false }
    }

    /// There is no such thing.
    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Object Not Found", "Not Found")
    }

    /// The vhost in which something is to be made is not there.
    pub(crate) fn no_such_vhost() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "vhost_not_found")
    }

    /// The user has no business in the vhost.
    pub(crate) fn no_entry() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "Not Found")
    }

    /// The body is larger than any honest one; RabbitMQ's answer is no 413.
    pub(crate) fn body_too_large() -> Self {
        Self::bad_request("Exceeded HTTP request body size limit")
    }

    /// The request cannot be understood.
    pub(crate) fn bad_request(reason: impl Into<Value>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", reason)
    }

    /// The node cannot do it, for no fault of the request.
    pub(crate) fn internal(reason: impl Into<Value>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_server_error", reason)
    }

    /// Nobody has logged in.
    pub(crate) fn login_required() -> Self {
        Self { is_challenge: true, ..Self::wrong_login() }
    }

    /// The login is refused.
    pub(crate) fn wrong_login() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "not_authorized", "Not_Authorized")
    }

    /// What is wrong, for a test.
    #[cfg(test)]
    pub(crate) fn reason(&self) -> &str {
        self.reason.as_str().unwrap_or_default()
    }

    /// The user is known and may not do this.
    pub(crate) fn not_authorised(reason: impl Into<Value>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "not_authorised", reason)
    }

    /// The user may look at this and not change it.
    pub(crate) fn access_refused() -> Self {
        Self::not_authorised("Access refused.")
    }

    /// What the request needs is not there.
    pub(crate) fn missing(reason: impl Into<Value>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", reason)
    }
}

/// A refused get, browse or redrive, with the whole text that AMQP would send.
pub(crate) fn refused_read(refusal: &Refusal) -> ApiError {
    match refusal.code {
        ReplyCode::NotFound => ApiError::missing(refusal.to_string()),
        ReplyCode::AccessRefused => ApiError::not_authorised(refusal.to_string()),
        code => ApiError::bad_request(format!("{} {refusal}", code.code())),
    }
}

/// What the core refuses, as RabbitMQ tells it of changes to the topology: what somebody may not do
/// without saying why.
impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let code = refusal.code;
        if code == ReplyCode::NotFound {
            Self::missing(refusal.explanation)
        } else if code == ReplyCode::AccessRefused || code == ReplyCode::NotAllowed {
            Self::access_refused()
        } else {
            Self::bad_request(refusal.explanation)
        }
    }
}

impl From<ChangeError> for ApiError {
    fn from(unchanged: ChangeError) -> Self {
        match unchanged {
            ChangeError::NoSuchUser | ChangeError::NoSuchExchange => Self::not_found(),
            ChangeError::NoSuchVhost => Self::no_such_vhost(),
            ChangeError::Protected(vhost) => {
                let reason = format!(
                    "Refusing to delete virtual host '{vhost}' because it is protected from deletion"
                );
                Self::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", reason)
            }
            ChangeError::Invalid(reason) => Self::bad_request(reason),
            ChangeError::Unable(reason) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", reason)
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { status, error, reason, is_challenge } = self;
        let mut response = Json(status, json!({"error": error, "reason": reason})).into_response();
        if is_challenge {
            response.headers_mut().insert(WWW_AUTHENTICATE, CHALLENGE);
        }
        response
    }
}

/// The path exists and not for this method; axum adds `Allow`.
pub(crate) async fn wrong_method(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::OK.into_response();
    }
    let reason = format!("{method} is not possible here");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", reason).into_response()
}

pub(crate) async fn no_such_path() -> ApiError {
    ApiError::not_found()
}

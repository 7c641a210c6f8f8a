//! Answers in JSON, with errors in RabbitMQ's words.

use amqp::reply_code::ReplyCode;
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::refusal::Refusal;
use serde_json::{Value, json};
use server::http_budget::{OverBudget, Pool};
use server::requests::ChangeError;

/// The challenge for a login.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Basic realm=\"RabbitMQ Management\"");

/// A status and a JSON document.
#[derive(Debug)]
pub(crate) struct Json(pub(crate) StatusCode, pub(crate) Value);

impl Json {
    /// Status 200.
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

/// The status after a PUT: 201 for a new object, 204 for an existing one.
pub(crate) fn made(is_new: bool) -> StatusCode {
    if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT }
}

/// The status after a DELETE: 204.
///
/// # Errors
/// 404 if the object did not exist.
pub(crate) fn removed(existed: bool) -> Result<StatusCode, ApiError> {
    if existed { Ok(StatusCode::NO_CONTENT) } else { Err(ApiError::not_found()) }
}

/// An error answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    error: &'static str,
    /// A string; for some errors RabbitMQ sends a list.
    reason: Value,
    /// True if the answer asks for a login.
    is_challenge: bool,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, error: &'static str, reason: impl Into<Value>) -> Self {
        Self { status, error, reason: reason.into(), is_challenge: false }
    }

    /// 404: no such object.
    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Object Not Found", "Not Found")
    }

    /// 404: no such vhost to create an object in.
    pub(crate) fn no_such_vhost() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "vhost_not_found")
    }

    /// 404: the user has no permissions in the vhost.
    pub(crate) fn no_entry() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "Not Found")
    }

    /// 400: the body is too large; RabbitMQ does not answer 413.
    pub(crate) fn body_too_large() -> Self {
        Self::bad_request("Exceeded HTTP request body size limit")
    }

    /// 400: the request is invalid.
    pub(crate) fn bad_request(reason: impl Into<Value>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", reason)
    }

    /// 500: the node failed.
    pub(crate) fn internal(reason: impl Into<Value>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_server_error", reason)
    }

    /// 503: the node cannot do this now.
    pub(crate) fn unavailable(reason: impl Into<Value>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", reason)
    }

    /// 401: the request has no login; asks for one.
    pub(crate) fn login_required() -> Self {
        Self { is_challenge: true, ..Self::wrong_login() }
    }

    /// 401: the login is refused.
    pub(crate) fn wrong_login() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "not_authorized", "Not_Authorized")
    }

    /// The reason as text, for tests.
    #[cfg(test)]
    pub(crate) fn reason(&self) -> &str {
        self.reason.as_str().unwrap_or_default()
    }

    /// 401: the user is not allowed to do this.
    pub(crate) fn not_authorised(reason: impl Into<Value>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "not_authorised", reason)
    }

    /// 401: the user may read the object but not change it.
    pub(crate) fn access_refused() -> Self {
        Self::not_authorised("Access refused.")
    }

    /// 404 with a reason.
    pub(crate) fn missing(reason: impl Into<Value>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", reason)
    }
}

/// True if the request is as good as any, and the node cannot serve it now: the vhost has no leader, or another one.
fn is_of_node(code: ReplyCode) -> bool {
    code == ReplyCode::InternalError || code == ReplyCode::ConnectionForced
}

/// A refused get, browse or redrive, with the whole text that AMQP would send.
pub(crate) fn refused_read(refusal: &Refusal) -> ApiError {
    let code = refusal.code;
    if code == ReplyCode::NotFound {
        ApiError::missing(refusal.to_string())
    } else if code == ReplyCode::AccessRefused {
        ApiError::not_authorised(refusal.to_string())
    } else if is_of_node(code) {
        ApiError::unavailable(refusal.explanation.clone())
    } else {
        ApiError::bad_request(format!("{} {refusal}", code.code()))
    }
}

/// The core's refusal of a change to the topology. As in RabbitMQ, a missing permission is not explained.
impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let code = refusal.code;
        if code == ReplyCode::NotFound {
            Self::missing(refusal.explanation)
        } else if code == ReplyCode::AccessRefused || code == ReplyCode::NotAllowed {
            Self::access_refused()
        } else if is_of_node(code) {
            Self::unavailable(refusal.explanation)
        } else {
            Self::bad_request(refusal.explanation)
        }
    }
}

impl From<OverBudget> for ApiError {
    fn from(OverBudget(pool): OverBudget) -> Self {
        let what = match pool {
            Pool::Bodies => "bodies of requests",
            Pool::Answers => "answers",
            Pool::Metrics => "answers to scrapers",
        };
        Self::unavailable(format!("{what} take all the memory that they may take; try again"))
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
            ChangeError::Unable(reason) => Self::unavailable(reason),
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

/// The answer to an unsupported method; axum adds `Allow`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_leader_is_no_fault_of_the_request() {
        let lost = Refusal::new(ReplyCode::ConnectionForced, "the leader of vhost '/' has changed");
        for error in [refused_read(&lost), ApiError::from(lost.clone())] {
            assert_eq!(error.reason(), "the leader of vhost '/' has changed");
            assert_eq!(error.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
        }
    }
}

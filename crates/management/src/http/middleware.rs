//! Checks of every request, and headers of every answer.
//!
//! Requests that are too large, or that two parsers may read differently, are refused before any handler
//! sees them. As in RabbitMQ, a slash at the end of a path is ignored. Browsers are told not to frame, run,
//! guess or store answers, unless an answer allows it.

use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HOST,
    REFERRER_POLICY, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use server::limits::LOCAL_BODY_BYTES_MAX;

use crate::http::answer::ApiError;
use crate::http::extract::SharedNode;
use crate::http::forward::Forwarded;
use crate::http::unread_body::UnreadBody;
use crate::limits::{HEADER_BYTES_MAX, URI_BYTES_MAX};

/// Headers of every answer.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
];

/// Default for answers without a cache policy.
const NOT_STORED: HeaderValue = HeaderValue::from_static("no-store");

/// The time of an answer by the clock of the broker, in milliseconds since the Unix epoch.
const TIME: HeaderName = HeaderName::from_static("leveret-time-ms");

/// Adds the time to an answer: the web page computes ages and countdowns with the clock of the broker.
pub(crate) async fn tell_time(
    State(node): State<SharedNode>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(TIME, HeaderValue::from(node.now_ms()));
    response
}

/// Checks a request, whose body has `body_bytes_max` bytes at most, calls the router and adds headers to the answer.
pub(crate) async fn pass(
    State(body_bytes_max): State<usize>,
    mut request: Request,
    next: Next,
) -> Response {
    let rest = UnreadBody::take_from(&mut request);
    // A tool of this machine, or of that of the node which passes the request on, may send more. Whether it is one is known
    // later, and the body is read then.
    let is_token = |value: &HeaderValue| value.as_bytes().starts_with(b"Bearer ");
    let may_be_tool = request.headers().get(AUTHORIZATION).is_some_and(is_token)
        || request.extensions().get::<Forwarded>().is_some();
    let body_bytes_max = if may_be_tool { LOCAL_BODY_BYTES_MAX } else { body_bytes_max };
    let mut response = match check(request.uri(), request.headers(), body_bytes_max) {
        Ok(()) => {
            if let Some(uri) = without_last_slash(request.uri()) {
                *request.uri_mut() = uri;
            }
            next.run(request).await
        }
        Err(error) => {
            let mut response = error.into_response();
            // The following bytes may be part of the refused request.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            response
        }
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response.headers_mut().entry(CACHE_CONTROL).or_insert(NOT_STORED);
    if let Some(rest) = rest {
        rest.drop_all().await;
    }
    response
}

/// Refuses requests that are too large or ambiguous.
fn check(uri: &Uri, headers: &HeaderMap, body_bytes_max: usize) -> Result<(), ApiError> {
    let too_long = |status, error, what, max: usize| {
        Err(ApiError::new(status, error, format!("{what} may have at most {max} bytes")))
    };
    if uri.path().len() + uri.query().map_or(0, str::len) > URI_BYTES_MAX {
        return too_long(StatusCode::URI_TOO_LONG, "uri_too_long", "a path", URI_BYTES_MAX);
    }
    let bytes: usize = headers.iter().map(|(name, v)| name.as_str().len() + v.len()).sum();
    if bytes > HEADER_BYTES_MAX {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return too_long(status, "headers_too_large", "headers", HEADER_BYTES_MAX);
    }
    let is_twofold = |name| headers.get_all(name).iter().count() > 1;
    if is_twofold(HOST) || is_twofold(AUTHORIZATION) || is_twofold(TRANSFER_ENCODING) {
        return Err(ApiError::bad_request("headers contradict each other"));
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    if !codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        return Err(ApiError::bad_request("no transfer coding but chunked is known"));
    }
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if announced
        .and_then(|text| text.parse::<u64>().ok())
        .is_some_and(|n| n > body_bytes_max as u64)
    {
        return Err(ApiError::body_too_large());
    }
    Ok(())
}

/// The URI without the slash at the end of its path; none without such a slash.
fn without_last_slash(uri: &Uri) -> Option<Uri> {
    let path = uri.path().strip_suffix('/').filter(|path| !path.is_empty())?;
    match uri.query() {
        Some(query) => format!("{path}?{query}").parse().ok(),
        None => path.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_slash_is_removed() {
        let without =
            |uri: &'static str| without_last_slash(&Uri::from_static(uri)).map(|u| u.to_string());
        assert_eq!(without("/api/vhosts/%2F/").as_deref(), Some("/api/vhosts/%2F"));
        assert_eq!(without("/api/overview/?a=b/").as_deref(), Some("/api/overview?a=b/"));
        assert_eq!(without("/api/overview?a=b/"), None);
        assert_eq!(without("/"), None);
    }

    #[test]
    fn ambiguous_headers_are_refused() {
        let refused = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_static(value));
            }
            check(&Uri::from_static("/"), &headers, 10).is_err()
        };
        assert!(refused(&[("host", "localhost"), ("host", "evil.example")]));
        assert!(refused(&[("authorization", "Basic YTpi"), ("authorization", "Basic YTpi")]));
        assert!(refused(&[("transfer-encoding", "chunked, chunked")]));
        assert!(refused(&[("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")]));
        assert!(!refused(&[("transfer-encoding", "Chunked")]));
        assert!(!refused(&[("host", "localhost"), ("content-length", "4"), ("accept", "*/*")]));
    }

    #[test]
    fn oversized_requests_are_refused_by_their_headers() {
        let status = |uri: &str, header: Option<(&'static str, String)>| {
            let mut headers = HeaderMap::new();
            if let Some((name, value)) = header {
                headers.insert(name, value.parse().unwrap());
            }
            check(&uri.parse().unwrap(), &headers, 10)
                .err()
                .map(|e| e.into_response().status().as_u16())
        };
        assert_eq!(status("/api/overview", None), None);
        assert_eq!(status(&format!("/{}", "a".repeat(URI_BYTES_MAX)), None), Some(414));
        assert_eq!(status(&format!("/a?{}", "b".repeat(URI_BYTES_MAX)), None), Some(414));
        assert_eq!(status("/a", Some(("x", "y".repeat(HEADER_BYTES_MAX)))), Some(431));
        let announces = |bytes: usize| status("/a", Some(("content-length", bytes.to_string())));
        assert_eq!((announces(10), announces(11)), (None, Some(400)));
    }
}

//! The management API: any request is answered, in JSON where it is one of the API.
//!
//! The first line is a method and a path, the second chooses who asks, the rest is the body.

use std::cell::RefCell;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, Uri};

use crate::node::Node;

/// Author of a request: the administrator, a user with few permissions, an unknown user, or none.
#[derive(Clone, Copy)]
enum Login {
    Administrator,
    Bob,
    Nobody,
    Absent,
}

/// By the second line's first byte.
const LOGINS: [Login; 4] = [Login::Administrator, Login::Bob, Login::Nobody, Login::Absent];

thread_local! {
    /// The node, until a request changes it.
    static NODE: RefCell<Option<Node>> = const { RefCell::new(None) };
}

/// Checks one request.
pub fn check(input: &[u8]) {
    let mut parts = input.splitn(3, |byte| *byte == b'\n');
    let (line, login) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let body = parts.next().unwrap_or_default();
    let Some((method, uri)) = method_and_uri(line) else { return };
    let changes = !matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
    let is_api = uri.path().starts_with("/api/");
    let mut request =
        Request::builder().method(method.clone()).uri(uri).header("host", "localhost");
    let login = login.first().copied().unwrap_or_default();
    let node = NODE.take().unwrap_or_else(Node::new);
    let authorization = match LOGINS[usize::from(login) % LOGINS.len()] {
        Login::Administrator => Some(node.login()),
        Login::Bob => Some("Basic Ym9iOmJvYg==".to_owned()),
        Login::Nobody => Some("Bearer 0".to_owned()),
        Login::Absent => None,
    };
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    let request = request.body(Body::from(body.to_vec())).expect("a request");
    let (status, headers, answer) = node.ask(request);
    assert!(!status.is_server_error() || status == StatusCode::SERVICE_UNAVAILABLE, "{status}");
    // The page and the documentation may be kept, and are asked for again; answers of the API may not.
    let is_kept = !is_api && headers["cache-control"] == "no-cache";
    assert!(is_kept || headers["cache-control"] == "no-store", "{headers:?}");
    if method == Method::HEAD {
        assert!(answer.is_empty());
    } else if is_api && headers.get("content-type").is_some_and(|kind| kind == "application/json") {
        let json = serde_json::from_slice::<serde_json::Value>(&answer);
        assert!(json.is_ok(), "{}", answer.escape_ascii());
    }
    if !changes || status.is_client_error() {
        NODE.set(Some(node));
    }
}

/// Method and path in the first line of a request.
fn method_and_uri(line: &[u8]) -> Option<(Method, Uri)> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let method = Method::from_bytes(&line[..space]).ok()?;
    let uri = Uri::try_from(&line[space + 1..]).ok()?;
    uri.path().starts_with('/').then_some((method, uri))
}

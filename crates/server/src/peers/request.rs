//! A request that one node sends to another, and the answer: the headers that name the caller, and those that concern a
//! connection alone.

use std::fmt::Display;
use std::net::SocketAddr;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, ORIGIN, PROXY_AUTHORIZATION,
    REFERER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::Response;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::limits::PEER_ANSWER_BYTES_MAX;

/// Name of the user, encoded as in a form. A user may have any name, also none.
pub const USER: HeaderName = HeaderName::from_static("leveret-user");
/// There instead of a user's name: the caller is the administrator of the other node's machine.
pub const ADMINISTRATOR: HeaderName = HeaderName::from_static("leveret-administrator");
/// Address of the client.
pub const CLIENT: HeaderName = HeaderName::from_static("leveret-client");
/// Confines the answer to the vhosts that the node leads.
pub const PART: HeaderName = HeaderName::from_static("leveret-part");

/// The query of a list of all nodes, of which the answer is a part: the part is filtered, in order, and ends with the page.
/// A node without this header's meaning sends its whole list.
pub const LIST: HeaderName = HeaderName::from_static("leveret-list");

/// Headers that concern a connection, or the authentication by the first node.
pub const NOT_SENT: [HeaderName; 13] = [
    AUTHORIZATION,
    CONNECTION,
    COOKIE,
    EXPECT,
    HeaderName::from_static("keep-alive"),
    HOST,
    ORIGIN,
    PROXY_AUTHORIZATION,
    REFERER,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Headers that tell the caller to the other node, and nobody else may send.
pub const CALLER: [HeaderName; 5] = [USER, ADMINISTRATOR, CLIENT, PART, LIST];

/// A name as a segment of a path.
pub fn segment(name: &str) -> impl Display {
    utf8_percent_encode(name, NON_ALPHANUMERIC)
}

/// A request that a node makes for itself, as the administrator of its machine.
#[must_use]
pub fn request_of_node(method: Method, path: &str, body: Vec<u8>) -> Request {
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().expect("a path of this program");
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    sent_by(request, None, nowhere)
}

/// The request of `user`, or of the administrator of this machine.
pub fn sent_by(request: Request, user: Option<&str>, client: SocketAddr) -> Request {
    let (mut parts, body) = request.into_parts();
    remove_own_headers(&mut parts.headers);
    // The length of the body that is sent, which is not always the client's, is told by the body.
    parts.headers.remove(CONTENT_LENGTH);
    let value = |text: &str| HeaderValue::from_str(text).expect("the text is ASCII");
    parts.headers.insert(HOST, HeaderValue::from_static("cluster"));
    match user {
        Some(name) => {
            let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
            parts.headers.insert(USER, value(&name));
        }
        None => {
            parts.headers.insert(ADMINISTRATOR, value("true"));
        }
    }
    parts.headers.insert(CLIENT, value(&client.to_string()));
    parts.extensions.clear();
    Request::from_parts(parts, body)
}

/// Removes the headers that concern a connection alone, and those that name a caller.
pub fn remove_own_headers(headers: &mut HeaderMap) {
    NOT_SENT.iter().chain(&CALLER).for_each(|name| {
        headers.remove(name);
    });
}

/// The body of an answer as JSON; none if it is none, or too long.
pub async fn json_of(response: Response) -> Option<Value> {
    let bytes = to_bytes(response.into_body(), PEER_ANSWER_BYTES_MAX).await.ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The reason in the answer of a node that refuses a request; empty without one.
pub async fn reason_of(answer: Response) -> String {
    let said = json_of(answer).await.unwrap_or_default();
    said.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned()
}

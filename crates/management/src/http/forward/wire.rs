//! A request and its answer between two nodes: headers that tell the caller, and those that concern a connection alone.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, HOST, ORIGIN,
    PROXY_AUTHORIZATION, REFERER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::api::PART as PART_IN_LINES;
use crate::http::answer::ApiError;
use crate::node::{Caller, Leader, LoginRefused, Node};

/// Name of the user, encoded as in a form. A user may have any name, also none.
const USER: HeaderName = HeaderName::from_static("leveret-user");
/// There instead of a user's name: the caller is the administrator of the other node's machine.
const ADMINISTRATOR: HeaderName = HeaderName::from_static("leveret-administrator");
/// Address of the client.
const CLIENT: HeaderName = HeaderName::from_static("leveret-client");
/// Confines the answer to the vhosts that the node leads.
const PART: HeaderName = HeaderName::from_static("leveret-part");

/// The query of a list of all nodes, of which the answer is a part: the part is filtered, in order, and ends with the page.
/// A node without this header's meaning sends its whole list.
const LIST: HeaderName = HeaderName::from_static("leveret-list");

/// Headers that concern a connection, or the authentication by the first node.
const NOT_SENT: [HeaderName; 13] = [
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
const CALLER: [HeaderName; 5] = [USER, ADMINISTRATOR, CLIENT, PART, LIST];

/// The caller of a request that another node has passed on.
#[derive(Clone, Debug)]
pub(crate) struct Forwarded {
    /// Name of the user; none for the administrator of the other node's machine.
    user: Option<String>,
    /// True if the answer is confined to the vhosts that this node leads, and put together with those of other nodes.
    pub(super) is_part: bool,
    /// The query of the list that the part is put into.
    pub(super) list: Option<PartOfList>,
}

/// The query of a list of all nodes, for a handler that answers with a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PartOfList(pub(crate) String);

impl Forwarded {
    /// The user, who was authenticated by the other node.
    ///
    /// # Errors
    /// [`LoginRefused::Credentials`] if there is no such user here.
    pub(crate) fn caller(&self, node: &dyn Node) -> Result<Caller, LoginRefused> {
        let caller = match &self.user {
            Some(user) => node.known_caller(user).ok_or(LoginRefused::Credentials)?,
            None => node.administrator_of_peer(),
        };
        if !self.is_part {
            return Ok(caller);
        }
        let names = node.vhost_names().into_iter();
        let led = names.filter(|vhost| node.leader_of_vhost(vhost) == Leader::Here).collect();
        Ok(Caller { only_vhosts: Some(Arc::new(led)), ..caller })
    }
}

/// The request as it is sent to another node.
pub(super) fn sent(
    request: Request,
    caller: &Caller,
    client: SocketAddr,
    part: Part<'_>,
) -> Request {
    let mut request = request;
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    let user = (!caller.is_local_administrator).then_some(&*caller.name);
    let mut request = sent_by(request, user, client);
    if part != Part::None {
        request.headers_mut().insert(PART, HeaderValue::from_static("true"));
    }
    if let Part::OfList(PartOfList(query)) = part
        && let Ok(query) = HeaderValue::from_str(query)
    {
        request.headers_mut().insert(LIST, query);
    }
    request
}

/// The part of an answer that another node is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part<'a> {
    /// The whole answer.
    None,
    /// The vhosts that the node leads.
    OfVhosts,
    /// The same of a list with this query.
    OfList(&'a PartOfList),
}

/// A name as a segment of a path.
pub(crate) fn segment(name: &str) -> impl Display {
    utf8_percent_encode(name, NON_ALPHANUMERIC)
}

/// A request that a node makes for itself, as the administrator of its machine.
pub fn request_of_node(method: Method, path: &str, body: Vec<u8>) -> Request {
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().expect("a path of this program");
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    sent_by(request, None, nowhere)
}

/// The request of `user`, or of the administrator of this machine.
fn sent_by(request: Request, user: Option<&str>, client: SocketAddr) -> Request {
    let (mut parts, body) = request.into_parts();
    remove(&mut parts.headers);
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

/// The answer of another node, for the client.
pub(super) fn answered(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    remove(&mut parts.headers);
    Response::from_parts(parts, Body::new(body))
}

/// True if an answer is a part in lines.
pub(super) fn is_in_lines(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == PART_IN_LINES)
}

fn remove(headers: &mut HeaderMap) {
    NOT_SENT.iter().chain(&CALLER).for_each(|name| {
        headers.remove(name);
    });
}

/// Takes the caller out of the headers of a request from another node.
pub(crate) async fn receive(mut request: Request, next: Next) -> Response {
    let Some((forwarded, client)) = told(request.headers()) else {
        return ApiError::bad_request("a request between nodes without its caller").into_response();
    };
    remove(request.headers_mut());
    request.extensions_mut().insert(forwarded);
    request.extensions_mut().insert(ConnectInfo(client));
    next.run(request).await
}

fn told(headers: &HeaderMap) -> Option<(Forwarded, SocketAddr)> {
    let text = |name: &HeaderName| headers.get(name)?.to_str().ok();
    let user = match (text(&USER), headers.contains_key(ADMINISTRATOR)) {
        (Some(name), false) => {
            let name = form_urlencoded::parse(name.as_bytes()).next();
            Some(name.map_or_else(String::new, |(name, _)| name.into_owned()))
        }
        (None, true) => None,
        // Nobody, or two callers.
        (None, false) | (Some(_), true) => return None,
    };
    let client = text(&CLIENT)?.parse().ok()?;
    let list = text(&LIST).map(|query| PartOfList(query.to_owned()));
    Some((Forwarded { user, is_part: headers.contains_key(PART), list }, client))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str, is_local_administrator: bool) -> Caller {
        Caller {
            name: name.to_owned(),
            tags: Vec::new(),
            vhosts: Vec::new(),
            is_loopback_only: false,
            is_local_administrator,
            only_vhosts: None,
        }
    }

    #[test]
    fn caller_arrives_and_no_password_passes_on() {
        let client = SocketAddr::from(([10, 0, 0, 1], 5));
        for (name, is_local, is_part) in [
            ("anna", false, true),
            ("\u{e9} =&+%", false, false),
            ("", true, false),
            ("", false, true),
        ] {
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = Uri::from_static("http://a:15672/api/queues?page=1");
            for name in NOT_SENT.iter().chain(&CALLER).chain(&[CONTENT_LENGTH]) {
                request.headers_mut().insert(name, HeaderValue::from_static("forged"));
            }
            let list = PartOfList("page=1&name=%20".to_owned());
            let part = if is_part { Part::OfList(&list) } else { Part::None };
            let sent = sent(request, &caller(name, is_local), client, part);
            assert_eq!(sent.uri().to_string(), "/api/queues?page=1");
            assert!(!sent.headers().values().any(|value| value == "forged"));
            let (forwarded, from) = told(sent.headers()).unwrap();
            assert_eq!((forwarded.is_part, from), (is_part, client));
            assert_eq!(forwarded.list, is_part.then_some(list));
            assert_eq!(forwarded.user, (!is_local).then(|| name.to_owned()));
        }
        assert!(told(&HeaderMap::new()).is_none());
        // Neither nobody nor two callers.
        let client = || (CLIENT, HeaderValue::from_static("10.0.0.1:5"));
        assert!(told(&HeaderMap::from_iter([client()])).is_none());
        let both = [
            client(),
            (USER, HeaderValue::from_static("")),
            (ADMINISTRATOR, HeaderValue::from_static("true")),
        ];
        assert!(told(&HeaderMap::from_iter(both)).is_none());
    }
}

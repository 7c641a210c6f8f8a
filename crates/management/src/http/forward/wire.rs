//! A request and its answer between two nodes: headers that tell the caller, and those that concern a connection alone.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use server::Node;
use server::peers::request::{
    ADMINISTRATOR, CLIENT, LIST, PART, USER, remove_own_headers, sent_by,
};
use server::requests::{Caller, Leader, LoginRefused};

use crate::api::PART as PART_IN_LINES;
use crate::http::answer::ApiError;

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
    pub(crate) fn caller(&self, node: &Node) -> Result<Caller, LoginRefused> {
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

/// The answer of another node, for the client.
pub(super) fn answered(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    remove_own_headers(&mut parts.headers);
    Response::from_parts(parts, Body::new(body))
}

/// True if an answer is a part in lines.
pub(super) fn is_in_lines(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == PART_IN_LINES)
}

/// Takes the caller out of the headers of a request from another node.
pub(crate) async fn receive(mut request: Request, next: Next) -> Response {
    let Some((forwarded, client)) = told(request.headers()) else {
        return ApiError::bad_request("a request between nodes without its caller").into_response();
    };
    remove_own_headers(request.headers_mut());
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
    use axum::http::header::CONTENT_LENGTH;
    use server::peers::request::{CALLER, NOT_SENT};

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

//! HTTP between the nodes of a cluster, on streams of their own: connections to the other nodes, and those of them.

pub(crate) mod barriers;
pub(crate) mod questions;
pub mod request;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use futures::{StreamExt as _, stream};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::server::conn::http1;
use hyper_tokio::rt::TokioIo;
use hyper_tokio::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::cluster::{Links, NodeStream, Purpose, StreamHandler};
use crate::limits::IDLE_PEER_CONNECTIONS_MAX;
use crate::membership::ids::NodeId;

/// The reason why a node that is away gives no answer.
const AWAY: &str = "the node is away";

/// Connections to the other nodes.
#[derive(Debug)]
pub(crate) struct HttpPeers {
    links: Arc<Links>,
    /// Connections without a request, by node.
    idle: Mutex<BTreeMap<NodeId, Vec<SendRequest<Body>>>>,
}

impl HttpPeers {
    /// Connections on streams of these links; none yet.
    pub(crate) fn new(links: Arc<Links>) -> Self {
        Self { links, idle: Mutex::default() }
    }

    /// The answer of a node to a request.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        node: &str,
        request: Request,
        limit: Duration,
    ) -> Result<Response, String> {
        let id = NodeId::of(node);
        let (connection, response) = tokio::select! {
            sent = within(limit, self.send(id, request)) => sent,
            () = self.links.peer_away(id) => Err(AWAY.to_owned()),
        }?;
        let (peers, links) = (Arc::clone(self), Arc::clone(&self.links));
        let away = async move { links.peer_away(id).await };
        Ok(read_within(response, limit, away, move || {
            // The connection is free once its task has seen the end of the answer, too.
            tokio::spawn(async move {
                let mut connection = connection;
                if connection.ready().await.is_ok() {
                    peers.keep(id, connection);
                }
            });
        }))
    }

    /// Sends a request on a connection that is idle, or on a new one.
    async fn send(
        &self,
        node: NodeId,
        mut request: Request,
    ) -> Result<(SendRequest<Body>, hyper::Response<Incoming>), String> {
        while let Some(mut connection) = self.take(node) {
            match connection.try_send_request(request).await {
                Ok(response) => return Ok((connection, response)),
                Err(mut failed) => match failed.take_message() {
                    // The other node had closed the connection.
                    Some(unsent) => request = unsent,
                    None => return Err(failed.into_error().to_string()),
                },
            }
        }
        let stream =
            self.links.dial(node, Purpose::Http).await.map_err(|error| error.to_string())?;
        send_on(stream, request).await
    }

    fn take(&self, node: NodeId) -> Option<SendRequest<Body>> {
        let mut idle = self.idle.lock();
        let of_node = idle.get_mut(&node)?;
        of_node.retain(|connection| !connection.is_closed());
        of_node.pop()
    }

    fn keep(&self, node: NodeId, connection: SendRequest<Body>) {
        let mut idle = self.idle.lock();
        let of_node = idle.entry(node).or_default();
        if of_node.len() < IDLE_PEER_CONNECTIONS_MAX {
            of_node.push(connection);
        }
    }
}

/// The answer to the only request on a stream.
///
/// # Errors
/// The reason why there is none.
pub(crate) async fn answer_on(
    stream: NodeStream,
    request: Request,
    limit: Duration,
) -> Result<Response, String> {
    let (connection, response) = within(limit, send_on(stream, request)).await?;
    Ok(read_within(response, limit, std::future::pending(), move || drop(connection)))
}

/// Sends the first request on a stream.
async fn send_on(
    stream: NodeStream,
    request: Request,
) -> Result<(SendRequest<Body>, hyper::Response<Incoming>), String> {
    let (mut sender, connection) =
        handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    Ok((sender, response))
}

/// The answer, whose pieces are read when they are wanted. It fails when there is none within the limit, or when `away`
/// completes. After the last one `at_end` is called.
fn read_within(
    response: hyper::Response<Incoming>,
    limit: Duration,
    away: impl Future<Output = ()> + Send + 'static,
    at_end: impl FnOnce() + Send + 'static,
) -> Response {
    let (parts, body) = response.into_parts();
    let body = Body::new(body).into_data_stream();
    let begin = (body, Box::pin(away), at_end);
    let pieces = stream::unfold(begin, move |(mut body, mut away, at_end)| async move {
        let piece = tokio::select! {
            piece = tokio::time::timeout(limit, body.next()) => piece.map_err(axum::Error::new),
            () = &mut away => Err(axum::Error::new(AWAY)),
        };
        match piece {
            Ok(Some(piece)) => Some((piece, (body, away, at_end))),
            Ok(None) => {
                at_end();
                None
            }
            Err(problem) => Some((Err(problem), (body, away, at_end))),
        }
    });
    Response::from_parts(parts, Body::from_stream(pieces))
}

async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let late = |_| format!("no answer within {} ms", limit.as_millis());
    tokio::time::timeout(limit, answer).await.map_err(late)?
}

/// Serves requests of the other nodes.
pub(crate) struct ServedPeers {
    pub(crate) router: Router,
    /// The runtime whose threads answer.
    pub(crate) runtime: Handle,
    pub(crate) links: Arc<Links>,
}

impl StreamHandler for ServedPeers {
    fn accepted(&self, stream: NodeStream) {
        let service = TowerToHyperService::new(self.router.clone());
        let links = Arc::clone(&self.links);
        self.runtime.spawn(async move {
            let peer = stream.peer.node.name.clone();
            let away = links.peer_away(stream.peer.id);
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                served = served => {
                    if let Err(error) = served {
                        tracing::debug!(peer, %error, "a connection for requests of a node has ended");
                    }
                }
                // Nobody gets the answer: what is done for it ends.
                () = away => tracing::debug!(peer, "the requests of a node that is away end"),
            }
        });
    }
}

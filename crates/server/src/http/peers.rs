//! HTTP between the nodes of a cluster, on streams of their own: connections to the other nodes, and those of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::server::conn::http1;
use hyper_tokio::rt::TokioIo;
use hyper_tokio::service::TowerToHyperService;
use management::limits::PEER_ANSWER_BYTES_MAX;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::cluster::ids::NodeId;
use crate::cluster::{Links, NodeStream, Purpose, StreamHandler};
use crate::limits::IDLE_PEER_CONNECTIONS_MAX;

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
        &self,
        node: &str,
        request: Request,
        limit: Duration,
    ) -> Result<Response, String> {
        let id = NodeId::of(node);
        let answer = async {
            let answered = async {
                let (connection, response) = self.send(id, request).await?;
                Ok((connection, whole(response).await?))
            };
            let (mut connection, response) = tokio::select! {
                answered = answered => answered,
                () = self.links.peer_away(id) => Err("the node is away".to_owned()),
            }?;
            if connection.ready().await.is_ok() {
                self.keep(id, connection);
            }
            Ok(response)
        };
        within(limit, answer).await
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
    within(limit, async {
        let (_connection, response) = send_on(stream, request).await?;
        whole(response).await
    })
    .await
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

/// The answer with its whole body.
async fn whole(response: hyper::Response<Incoming>) -> Result<Response, String> {
    let (parts, body) = response.into_parts();
    let body = to_bytes(Body::new(body), PEER_ANSWER_BYTES_MAX).await;
    let body = body.map_err(|error| error.to_string())?;
    Ok(Response::from_parts(parts, Body::from(body)))
}

async fn within(
    limit: Duration,
    answer: impl Future<Output = Result<Response, String>>,
) -> Result<Response, String> {
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

//! Listening sockets: bound before the broker says it has started, accepted from until it stops.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::connection;
use crate::limits::ACCEPT_PAUSE;
use crate::node::{Node, StartError};

/// Binds a listener.
///
/// # Errors
/// When the address is taken or not ours; it names the address.
pub(crate) async fn bind(
    what: &'static str,
    address: SocketAddr,
) -> Result<TcpListener, StartError> {
    let refused = |error| StartError::Listen { what, address, error };
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        // A machine without IPv6 listens on all of IPv4.
        Err(_) if address.ip().is_unspecified() && address.is_ipv6() => {
            let all = SocketAddr::from(([0, 0, 0, 0], address.port()));
            TcpListener::bind(all).await.map_err(refused)
        }
        Err(error) => Err(refused(error)),
    }
}

/// Accepts AMQP clients until the broker stops. Each holds a clone of `alive` for as long as it lasts.
pub(crate) async fn accept(
    listener: TcpListener,
    node: Arc<Node>,
    alive: mpsc::Sender<()>,
    mut stopping: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    let (node, alive) = (Arc::clone(&node), alive.clone());
                    tokio::spawn(async move {
                        connection::serve(socket, peer, node).await;
                        drop(alive);
                    });
                }
                Err(error) => {
                    // No file descriptors, most likely: clients that leave give theirs back.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            _ = stopping.changed() => return,
        }
    }
}
